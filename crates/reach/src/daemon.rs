//! The first words on a connection to a daemon: which service is wanted, and in which version.
//!
//! One port has several services. The client opens a stream, sends one [`Wish`], and reads one [`Answer`]; then both
//! ends finish the stream, and the connection belongs to the service. The form of these two messages never changes.

use crate::carrier::{Connection, Stream};
use crate::speaks::{Agreed, Versions};
use crate::talk::{TalkError, talk};
use hikyaku_net::blocking::{Cut, Stop, block_on, wait};
use hikyaku_net::{CloseReason, OpenError};
use hikyaku_transfer::decode;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// What a client wants of a daemon.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Wish {
    /// The name of the service: `store`.
    pub service: String,
    /// The oldest and the newest version of the service's protocol that the client speaks.
    pub versions: (u32, u32),
    /// Features of it that the client has. Names that the daemon does not know are ignored.
    pub features: BTreeSet<String>,
    /// The version of the client's program, for people.
    pub program: String,
}

/// What the daemon answers.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Answer {
    /// The service begins.
    Welcome {
        /// The version that both speak.
        version: u32,
        /// The features that both have.
        features: BTreeSet<String>,
    },
    /// The daemon does not offer it.
    Refused {
        /// Why, and what to do, for people.
        text: String,
    },
}

/// A service of a daemon, as this program speaks it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offered<'a> {
    /// Its name on the wire.
    pub name: &'static str,
    /// The versions of its protocol.
    pub versions: Versions,
    /// Its features that an older program of the same versions may lack.
    pub features: &'a [&'static str],
}

/// Files of a store (`hikyaku-remote`).
pub const STORE: Offered<'static> = Offered {
    name: "store",
    versions: Versions::only(1),
    features: &[
        GIVE_UPS,
        HOMES,
        IMAGES,
        LEASES,
        LOCKS,
        MOUNTS,
        PICKS,
        REPORTS,
        SUCCESSORS,
        UNSIZED_UPLOADS,
        UPLOADS,
        WITHDRAWALS,
        WRITES,
    ],
};

/// TCP connections to targets that the daemon allows (`hikyaku-forward`).
pub const FORWARD: Offered<'static> =
    Offered { name: "forward", versions: Versions::only(1), features: &[] };

/// The feature of [`STORE`] that a mount needs: listings of directories, short ranges, texts of links, space.
// spec: store-feature-1
pub const MOUNTS: &str = "mounts";
/// The feature of a server that lets its clients change files.
// spec: store-write-1
pub const WRITES: &str = "writes";
/// The feature of a server all of whose files are changed through it, so that it can grant leases of directories.
// spec: store-feature-5
pub const LEASES: &str = "leases";
/// The feature of a server that has locks of byte ranges, and appends at the end of a file.
// spec: store-feature-6
pub const LOCKS: &str = "locks";
/// The feature of a server of which a client can wish no more for a lock that it waits for.
// spec: store-feature-9
pub const GIVE_UPS: &str = "give-ups";
/// The feature of a server that takes uploads: whole small files, and large ones in pieces.
// spec: store-feature-4
pub const UPLOADS: &str = "uploads";
/// The feature of a server that takes uploads whose size and metadata come after their bytes.
// spec: store-feature-10
pub const UNSIZED_UPLOADS: &str = "unsized-uploads";
/// The feature of a server that serves all files of its machine to a user who has logged in, and knows that user's directory.
// spec: store-feature-11
pub const HOMES: &str = "homes";
/// The feature of a server that is told which processes of a client have ended.
// spec: store-feature-8
pub const SUCCESSORS: &str = "successors";
/// The feature of a server that keeps files whose names a client has removed, for as long as that client goes on with them.
// spec: store-feature-7
pub const WITHDRAWALS: &str = "withdrawals";
/// The feature of [`STORE`] that ranges which need not lie along segments may be asked for.
// spec: store-feature-2
pub const PICKS: &str = "picks";

/// The feature of a server that tells the state of its machine.
// spec: store-report-1
pub const REPORTS: &str = "reports";

/// The feature of a server that decodes pictures and sends windows of them.
// spec: store-feature-3
pub const IMAGES: &str = "images";

/// Codes with which a daemon closes a connection.
pub mod codes {
    use hikyaku_net::code::APPLICATION;

    /// The client's key is not authorised.
    pub const NOT_AUTHORISED: u64 = APPLICATION + 3;
    /// The daemon ends: the same request may succeed elsewhere, or here later.
    pub const ENDS: u64 = APPLICATION + 4;
    /// The daemon has as many sessions as it may have.
    pub const FULL: u64 = APPLICATION + 5;
    /// The client's key is in the list, but what its line says of it cannot be had.
    pub const NOT_SERVED: u64 = APPLICATION + 6;
}

/// Why there is no service on a connection.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoService {
    /// The daemon said why.
    #[error("{0}")]
    Refused(String),
    /// The daemon offers the service, in versions that this program does not speak. The text says which, and what to do.
    #[error("{0}")]
    OtherVersion(String),
    /// The client's key is not in the daemon's list.
    #[error("{0}")]
    NotAuthorised(String),
    /// The client's key is in the daemon's list, but what the list says of it cannot be had.
    #[error("{0}")]
    NotServed(String),
    /// The daemon cannot attend now: it ends.
    #[error("{0}")]
    Later(String),
    /// The daemon has as many clients as it may have.
    #[error("{0}")]
    Full(String),
    /// The connection ended.
    #[error("the connection has ended: {}", .0.as_ref().map_or_else(|| "no reason".to_owned(), ToString::to_string))]
    Closed(Option<CloseReason>),
    /// The other end said nothing for too long.
    #[error("the server did not answer within {} s", .0.as_secs())]
    Silent(Duration),
    /// It said what no daemon says.
    #[error("another program answers than hikyaku serve")]
    Malformed,
}

/// A refusal has these words if the two ends share no version. A refusal is a text, whose form never changes, so a client
/// tells by them what it was.
const VERSIONS: &str = ", which speaks version ";
/// The program's version, for messages to people.
const PROGRAM: &str = env!("CARGO_PKG_VERSION");
/// How long the reason of an end may come behind it.
const REASON: Duration = Duration::from_millis(500);
/// Characters of a name or a version that an error shows.
const SHOWN: usize = 40;

/// Asks for a service; returns the version and the features that both ends speak.
///
/// # Errors
///
/// The daemon refuses, does not answer within `patience`, or is none.
pub fn ask(
    connection: &Connection,
    service: &Offered<'_>,
    patience: Duration,
) -> Result<Agreed, NoService> {
    let closed = || closed(connection);
    let until = Instant::now() + patience;
    let stream = block_on(connection.open_stream()).map_err(|_| closed())?;
    let (mut incoming, out, _writer) = talk(stream).map_err(|_| closed())?;
    let wish = Wish {
        service: service.name.to_owned(),
        versions: service.versions.into(),
        features: service.names(),
        program: PROGRAM.to_owned(),
    };
    out.say(&wish).map_err(|_| closed())?;
    let answer = match incoming.hear_by(until) {
        Ok(Some(body)) => decode::<Answer>(body).map_err(|_| NoService::Malformed)?.0,
        Ok(None) if Instant::now() >= until => return Err(NoService::Silent(patience)),
        Ok(None) | Err(TalkError::Read(_) | TalkError::Write(_)) => return Err(closed()),
        Err(_) => return Err(NoService::Malformed),
    };
    match answer {
        Answer::Welcome { version, features } if service.versions.contains(version) => {
            let features = features.intersection(&service.names()).cloned().collect();
            Ok(Agreed { protocol: version, features })
        }
        Answer::Welcome { .. } => Err(NoService::Malformed),
        Answer::Refused { text } if text.contains(VERSIONS) => {
            Err(NoService::OtherVersion(hikyaku_fs::sentence(&text)))
        }
        Answer::Refused { text } => Err(NoService::Refused(hikyaku_fs::sentence(&text))),
    }
}

impl Offered<'_> {
    fn names(&self) -> BTreeSet<String> {
        self.features.iter().map(|name| (*name).to_owned()).collect()
    }
}

/// What the end of a connection says of the service.
fn closed(connection: &Connection) -> NoService {
    // A stream may end just before it is known why.
    let until = Some(Instant::now() + REASON);
    let reason = wait(connection.closed(), &Stop::default(), until).ok();
    match reason {
        Some(CloseReason::Peer { code: codes::NOT_AUTHORISED, reason }) => {
            NoService::NotAuthorised(hikyaku_fs::sentence(&reason))
        }
        Some(CloseReason::Peer { code: codes::NOT_SERVED, reason }) => {
            NoService::NotServed(hikyaku_fs::sentence(&reason))
        }
        Some(CloseReason::Peer { code: codes::FULL, reason }) => {
            NoService::Full(hikyaku_fs::sentence(&reason))
        }
        Some(CloseReason::Peer { code: codes::ENDS, reason }) => {
            NoService::Later(hikyaku_fs::sentence(&reason))
        }
        reason => NoService::Closed(reason),
    }
}

/// Hears what the client of `connection` wants, of these services, and answers. Returns the service and the version.
///
/// # Errors
///
/// The client wants something else, says nothing within `patience`, or is none. A client that can be told is told.
pub fn offer<'a>(
    connection: &Connection,
    services: &'a [Offered<'a>],
    patience: Duration,
) -> Result<(&'a Offered<'a>, u32), NoService> {
    let until = Instant::now() + patience;
    let stream: Stream = match wait(connection.accept_stream(), &Stop::default(), Some(until)) {
        Ok(Ok(stream)) => stream,
        Ok(Err(OpenError::Closed(reason))) => return Err(NoService::Closed(Some(reason))),
        Ok(Err(_)) | Err(Cut::Stopped) => {
            return Err(NoService::Closed(connection.close_reason()));
        }
        Err(Cut::TooLate) => return Err(NoService::Silent(patience)),
    };
    offer_on(connection, stream, services, patience)
}

/// As [`offer`], on the first stream of the client, which is open.
///
/// # Errors
///
/// Those of [`offer`].
pub fn offer_on<'a>(
    connection: &Connection,
    stream: Stream,
    services: &'a [Offered<'a>],
    patience: Duration,
) -> Result<(&'a Offered<'a>, u32), NoService> {
    let closed = || NoService::Closed(connection.close_reason());
    let until = Instant::now() + patience;
    let (mut incoming, out, writer) = talk(stream).map_err(|_| closed())?;
    let wish = match incoming.hear_by(until) {
        Ok(Some(body)) => decode::<Wish>(body).map_err(|_| NoService::Malformed)?.0,
        Ok(None) if Instant::now() >= until => return Err(NoService::Silent(patience)),
        Ok(None) => return Err(closed()),
        Err(_) => return Err(NoService::Malformed),
    };
    let chosen = choose(services, &wish);
    let answer = match &chosen {
        Ok((service, version)) => {
            let features = wish.features.intersection(&service.names()).cloned().collect();
            Answer::Welcome { version: *version, features }
        }
        Err(text) => Answer::Refused { text: text.clone() },
    };
    out.say(&answer).map_err(|_| closed())?;
    drop(out);
    match chosen {
        Ok(chosen) => Ok(chosen),
        Err(text) => {
            // The last word must arrive before the connection is closed.
            let _ = writer.join();
            Err(NoService::Refused(text))
        }
    }
}

/// The service that is wished for, in the newest version that both speak; or what to tell the client.
fn choose<'a>(services: &'a [Offered<'a>], wish: &Wish) -> Result<(&'a Offered<'a>, u32), String> {
    let shown = |text: &str| {
        let text: String = text.chars().take(SHOWN).collect();
        hikyaku_fs::Shown::new(text.as_bytes()).to_string()
    };
    let Some(service) = services.iter().find(|service| service.name == wish.service) else {
        let names: Vec<_> = services.iter().map(|service| service.name).collect();
        return Err(format!(
            "this server does not offer '{}': it offers {}",
            shown(&wish.service),
            names.join(", ")
        ));
    };
    let (oldest, newest) = wish.versions;
    let theirs = Versions::new(oldest, newest);
    if let Some(version) = theirs.and_then(|theirs| service.versions.common(theirs)) {
        return Ok((service, version));
    }
    let remedy = match theirs.is_some_and(|theirs| theirs < service.versions) {
        true => "a newer hikyaku at the client",
        false => "a newer hikyaku at the server",
    };
    Err(format!(
        "this server has hikyaku {PROGRAM}{VERSIONS}{} of '{}'; the client has hikyaku {}, which \
         speaks {oldest} to {newest}: try: {remedy}",
        service.versions,
        service.name,
        shown(&wish.program),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn services() -> [Offered<'static>; 2] {
        let versions = Versions::new(2, 4).unwrap();
        [
            Offered { name: "store", versions, features: &["a", "b"] },
            Offered { name: "perf", versions: Versions::only(1), features: &[] },
        ]
    }

    fn wish(service: &str, versions: (u32, u32)) -> Wish {
        let (service, program) = (service.to_owned(), "0.9".to_owned());
        Wish { service, versions, features: BTreeSet::new(), program }
    }

    #[test]
    fn both_speak_the_newest_version_that_they_share() {
        for (versions, wanted) in [((2, 4), 4), ((1, 2), 2), ((3, 9), 4), ((1, 3), 3)] {
            let services = services();
            let (service, version) = choose(&services, &wish("store", versions)).unwrap();
            assert_eq!((service.name, version), ("store", wanted), "{versions:?}");
        }
    }

    #[test]
    fn whoever_shares_none_is_told_what_to_do() {
        for (versions, remedy) in
            [((0, 1), "at the client"), ((5, 7), "at the server"), ((4, 2), "at the server")]
        {
            let text = choose(&services(), &wish("store", versions)).unwrap_err();
            assert!(text.contains(remedy) && text.contains("hikyaku 0.9"), "{text}");
        }
        let text = choose(&services(), &wish("sto\x1b[2Jre", (1, 1))).unwrap_err();
        assert!(text.contains("it offers store, perf") && !text.contains('\x1b'), "{text}");
    }
}
