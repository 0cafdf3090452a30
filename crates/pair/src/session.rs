//! The session of two ends: the order of the near end, the copy, and the reason of its end.

use crate::ends::{Ends, Options};
use crate::error::PairError;
use crate::failure::Fatal;
use crate::fault::{Fault, kind_of_close};
use crate::flush::SyncEvery;
use crate::landing::Descriptors;
use crate::receive::{Writing, receive};
use crate::send::send;
use crate::slots::places;
use crate::through::{Party, Terms, through};
use crate::walk::Roots;
use hikyaku_console::{Kept, Registration, Scope};
use hikyaku_fs::{Shown, sentence};
use hikyaku_job::{Allowed, Claimant, End, Meter};
use hikyaku_net::blocking::block_on;
use hikyaku_net::{CloseReason, code};
use hikyaku_reach::{Connection, Fate, GONE, Gone, In, Out, Stream, TalkError, Writer, talk};
use hikyaku_transfer::FailureKind;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::time::Duration;

/// Objects that a sender may have open: it opens one after the other.
pub(crate) const MOST_OBJECTS: u32 = 16;

/// The longest order: a million paths of 48 bytes.
const ORDER_BYTES_MAX: usize = 48 << 20;

const LIST_TOO_LONG: &str =
    "the list of files is too long for one copy: it may have 48 MiB of paths";
const SHORTER_LISTS: &str = "try: several commands, each with a part of the list";

/// The order of the near end to the far one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Order {
    /// Write what comes to this path.
    Put {
        /// The path as the user wrote it.
        target: Vec<u8>,
        /// The rules of the copy.
        options: Options,
    },
    /// Send what these paths and patterns mean.
    Get {
        /// The paths and patterns as the user wrote them.
        sources: Vec<Vec<u8>>,
        /// The rules of the copy.
        options: Options,
    },
}

/// An end of a connection of which each end knows the other by its key.
pub struct Session {
    connection: Connection,
    incoming: In,
    outgoing: Out,
    writer: Writer,
    ending: Ending,
    fate: Fate,
    scope: Scope,
}

/// Nothing came for longer than an outage is sat out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("nothing was heard from the other end for too long")]
pub struct LostConnection;

/// The other end cannot continue, and has sent the reason.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct Refused {
    /// Which of the two, where this machine is neither.
    pub end: End,
    /// The kind of the failure.
    pub kind: FailureKind,
    text: String,
    /// The remedy that the other end has sent.
    pub(crate) remedy: Option<String>,
}

impl Refused {
    /// A path of this end, and why it ends the copy.
    pub fn of_path(end: End, path: &[u8], kind: FailureKind, why: &str) -> Self {
        Self { end, kind, text: format!("{}: {why}", Shown::new(path)), remedy: None }
    }

    /// The text for the user of another host.
    pub fn on(&self, host: &str) -> String {
        let Self { kind, text, .. } = self;
        match kind {
            FailureKind::Other | FailureKind::Unsupported | FailureKind::Damaged => {
                format!("{host}: {text}")
            }
            // It begins with a path.
            _ => format!("{host}:{text}"),
        }
    }
}

/// The last step of an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    /// Its user waits for it.
    Leaves,
    /// The other end waits for its last word.
    Waits,
}

impl Session {
    /// The near end: opens the stream of messages and sends the order.
    pub(crate) fn order(
        connection: Connection,
        order: &Order,
        fate: Fate,
    ) -> Result<Self, PairError> {
        let stream = block_on(connection.open_stream())?;
        let session = Self::new(connection, stream, (Ending::Leaves, fate))?;
        let said = session.outgoing.say_long(order, ORDER_BYTES_MAX);
        said.map_err(|error| match error {
            TalkError::TooLong => PairError::from(
                Fatal::of(FailureKind::Other, LIST_TOO_LONG.to_owned()).with_remedy(SHORTER_LISTS),
            ),
            other => other.into(),
        })?;
        Ok(session)
    }

    /// The far end: receives the order from the stream of messages.
    pub(crate) fn obey(connection: Connection, stream: Stream) -> Result<(Self, Order), PairError> {
        let mut session = Self::new(connection, stream, (Ending::Waits, Fate::default()))?;
        // spec: copy-order-1
        let order = session.incoming.hear_long(ORDER_BYTES_MAX)?;
        Ok((session, order))
    }

    fn new(
        connection: Connection,
        stream: Stream,
        (ending, fate): (Ending, Fate),
    ) -> Result<Self, PairError> {
        let (incoming, outgoing, writer) =
            talk(stream).map_err(|source| PairError::System { what: "start a thread", source })?;
        let scope = Scope::default();
        Ok(Self { connection, incoming, outgoing, writer, ending, fate, scope })
    }

    /// Ends when `scope` is stopped. By default it ends with the process.
    pub fn ended_with(self, scope: &Scope) -> Self {
        Self { scope: scope.clone(), ..self }
    }

    /// Reads: sends what is beneath `roots`, until the other end has all of it.
    pub fn send(
        self,
        roots: &Roots,
        options: &Options,
        claims: Claimant<'_>,
        meter: &Meter,
    ) -> Result<(), PairError> {
        let allowed = Allowed::anything();
        self.run((options, &allowed, claims), meter, |ends| send(ends, roots))
    }

    /// Writes: receives what comes into `target`, as far as it may be called so.
    pub fn receive(
        self,
        target: &Path,
        (allowed, claims): (&Allowed, Claimant<'_>),
        options: &Options,
        (meter, descriptors): (&Meter, Descriptors),
    ) -> Result<(), PairError> {
        let writing = Writing { descriptors, sync_every: sync_every(), places: places() };
        self.run((options, allowed, claims), meter, |ends| receive(ends, target, writing))
    }

    /// Carries what this end sends to `to`, which writes it.
    pub fn through(self, to: Self, terms: Terms<'_>, meter: &Meter) -> Result<(), PairError> {
        let all = vec![self.connection.clone(), to.connection.clone()];
        let (fault, scope) = (Fault::new(all), self.scope.clone());
        let _registrations = [&self, &to].map(|session| close_with(&scope, &session.connection));
        let (from_fate, to_fate) = (self.fate.clone(), to.fate.clone());
        let party = |session: Self| (session.connection, session.incoming, session.outgoing);
        let (from_connection, incoming, outgoing) = party(self);
        let from = Party { connection: &from_connection, incoming, outgoing };
        let (to_connection, incoming, outgoing) = party(to);
        let to = Party { connection: &to_connection, incoming, outgoing };
        through(from, to, terms, meter, &fault);
        match fault.take() {
            Some(_) if scope.stop_cause().is_some() => Err(kept(meter).into()),
            // Whichever of the two closed first knows why.
            Some(cause) => {
                let cause = explain(cause, (&from_connection, End::From), &from_fate);
                Err(explain(cause, (&to_connection, End::To), &to_fate))
            }
            None => Ok(()),
        }
    }

    fn run(
        self,
        (options, allowed, claims): (&Options, &Allowed, Claimant<'_>),
        meter: &Meter,
        work: impl FnOnce(Ends<'_>),
    ) -> Result<(), PairError> {
        let Self { connection, incoming, outgoing, writer, ending, fate, scope } = self;
        let fault = Fault::new(vec![connection.clone()]);
        let _registration = close_with(&scope, &connection);
        work(Ends {
            connection: &connection,
            incoming,
            outgoing,
            fault: &fault,
            meter,
            options,
            allowed,
            claims,
        });
        if let Some(cause) = fault.take() {
            if scope.stop_cause().is_some() {
                return Err(kept(meter).into());
            }
            return Err(explain(cause, (&connection, End::There), &fate));
        }
        match ending {
            // The other end has finished, or learns by this that we have.
            Ending::Leaves => connection.close(code::DONE, ""),
            // Our last word must arrive, or the other end has gone without it.
            Ending::Waits => drop(writer.join()),
        }
        Ok(())
    }
}

/// Closes the connection when `scope` is stopped.
fn close_with(scope: &Scope, connection: &Connection) -> Registration {
    let connection = connection.clone();
    scope.on_stop(move || connection.close(code::APPLICATION, "stopped by the user"))
}

/// How often what is written is brought to the disk: `HIKYAKU_SYNC_PERIOD_MS`, for tests of what a failure
/// of the disk costs, or as usual.
fn sync_every() -> SyncEvery {
    let text = std::env::var("HIKYAKU_SYNC_PERIOD_MS").ok();
    let period = text.and_then(|text| text.parse().ok()).map(Duration::from_millis);
    let usual = SyncEvery::default();
    SyncEvery { time: period.unwrap_or(usual.time), ..usual }
}

/// The close reason of the connection, or the end of the far program, is more exact than the error of the interrupted work.
fn explain(cause: PairError, (connection, end): (&Connection, End), fate: &Fate) -> PairError {
    match (connection.close_reason(), fate.get()) {
        (Some(CloseReason::TimedOut), Some(Gone::Ended(who))) => {
            PairError::ended(format_args!("{who} has ended"))
        }
        (Some(CloseReason::Peer { code: GONE, .. }), _)
        | (Some(CloseReason::TimedOut | CloseReason::Unreachable), _)
        | (Some(CloseReason::Local), Some(Gone::Lost)) => LostConnection.into(),
        (Some(CloseReason::Peer { code, reason }), _) if code >= code::APPLICATION => {
            let kind = kind_of_close(code).unwrap_or(FailureKind::Other);
            let reason = sentence(&reason);
            let (text, remedy) = match reason.split_once(": try: ") {
                Some((text, remedy)) => (text.to_owned(), Some(format!("try: {remedy}"))),
                None => (reason, None),
            };
            Refused { end, kind, text, remedy }.into()
        }
        (Some(CloseReason::Local), Some(Gone::Ended(who))) => {
            PairError::ended(format_args!("{who} has ended"))
        }
        _ => cause,
    }
}

/// The files that an interrupted copy has kept.
fn kept(meter: &Meter) -> Kept {
    if meter.is_spent() || meter.has_streamed() { Kept::Spent } else { Kept::Everything }
}
