//! The far side of a copy: a program that ssh has started, or a thread of this one.

use crate::ends::Options;
use crate::error::PairError;
use crate::failure::Fatal;
use crate::fault::close_code;
use crate::home::expanded;
use crate::landing::Descriptors;
use crate::session::{MOST_OBJECTS, Order, Session};
use crate::walk::Roots;
use hikyaku_job::{Allowed, Claimant, Meter, expand, is_home, is_users_home};
use hikyaku_reach::{
    Agreed, Arrival, Connection, Destination, FarSide, Loss, PathMemory, Reached, Readers, Service,
    Stream, TIMES_ALONE, Way, here,
};
use hikyaku_transfer::{FailureKind, Preserve};
use hikyaku_units::Rate;
use std::path::PathBuf;
use std::time::Duration;

/// The service that a far side of a copy is.
pub const SERVICE: Service = Service {
    name: "copy",
    streams_max: MOST_OBJECTS,
    readers: Readers::One,
    path_memory: PathMemory::OfUser,
    loss: Loss::BeginsAnew,
};

/// How long a program that ends waits until ssh has taken its last word.
const LAST_WORD: Duration = Duration::from_secs(5);
/// Names that may come of a list and of the sources that it is relative to.
const MOST_LISTED: usize = 1 << 20;

/// A far side that has been given its order. Dropping it ends it.
pub struct Far {
    /// The session, until the caller takes it.
    pub session: Option<Session>,
    /// Advice for the user on a faster copy.
    pub advice: Option<String>,
    _side: FarSide,
}

impl Far {
    /// Starts the far side at `destination` and gives it `order`.
    pub fn there(way: &Way, destination: &Destination, order: &Order) -> Result<Self, PairError> {
        Self::ordered(way.open(destination)?, order)
    }

    /// Starts a far side on this machine, sends it `order`, and limits the rate of the copy.
    pub fn here(order: &Order, limit: Option<Rate>) -> Result<Self, PairError> {
        let reached = here(&SERVICE, limit, |connection, stream| {
            // The other end has the same user, and reports the error.
            let _ = obey(connection, stream, Descriptors::Users);
        })
        .map_err(|source| PairError::System { what: "connect the two ends", source })?;
        Self::ordered(reached, order)
    }

    fn ordered(reached: Reached, order: &Order) -> Result<Self, PairError> {
        let Reached { connection, agreed, fate, advice, side } = reached;
        refuse_what_it_lacks(order, &agreed)?;
        let session = Session::order(connection, order, fate)?;
        Ok(Self { session: Some(session), advice, _side: side })
    }
}

/// An order that a far side would not understand is not given to it.
// spec: copy-feature-1
fn refuse_what_it_lacks(order: &Order, agreed: &Agreed) -> Result<(), PairError> {
    let (Order::Put { options, .. } | Order::Get { options, .. }) = order;
    if options.rules.preserve != Preserve::Times || agreed.has(TIMES_ALONE) {
        return Ok(());
    }
    let text = "the hikyaku of the far side is older than this one, and keeps times only together with modes";
    let remedy = "try: -p, or a newer hikyaku on the far side";
    Err(Fatal::of(FailureKind::Unsupported, text.to_owned()).with_remedy(remedy).into())
}

/// Serves one copy to a near side that has come through ssh.
pub fn attend(arrival: Arrival) -> Result<(), PairError> {
    hikyaku_console::survive_file_size_limit()
        .map_err(|source| PairError::System { what: "handle a signal", source })?;
    let (connection, stream, _door) = arrival.split();
    obey(connection, stream, Descriptors::Carrier)
}

/// Does what the other end of `connection` wants, which has begun to speak on `stream`.
fn obey(connection: Connection, stream: Stream, descriptors: Descriptors) -> Result<(), PairError> {
    let (session, order) = Session::obey(connection.clone(), stream)?;
    let refuse = |error: &PairError| connection.close(close_code(error), &error.one_line());
    match Work::of(&order, descriptors) {
        Ok(work) => {
            // A failure closes the connection; this is for what fails before or behind the copy itself.
            let _ = work.run(session).inspect_err(refuse);
        }
        Err(error) => {
            // The connection is closed before the session is dropped, which ends its stream: the other end would see that only.
            refuse(&error);
            drop(session);
        }
    }
    if connection.close_reason().is_some() {
        connection.flush(LAST_WORD);
    }
    // The other end has a user, and reports the error.
    Ok(())
}

/// An order, when it is known which files it means here.
enum Work<'a> {
    Receive { target: PathBuf, options: &'a Options, descriptors: Descriptors },
    Send { roots: Roots, options: &'a Options },
}

impl<'a> Work<'a> {
    fn of(order: &'a Order, descriptors: Descriptors) -> Result<Self, PairError> {
        Ok(match order {
            Order::Put { target, options } => {
                Self::Receive { target: expanded(target)?, options, descriptors }
            }
            Order::Get { sources, options } => {
                let mut paths = Vec::new();
                for source in sources {
                    let path = expanded(source)?;
                    paths.extend(
                        match is_home(source) || (is_users_home(source) && path.is_dir()) {
                            // As with scp that is what is in it: the near side does not know its name.
                            true => vec![path.join(".")],
                            false => expand(&path),
                        },
                    );
                }
                let names = paths.len().saturating_mul(options.files.len());
                if names > MOST_LISTED {
                    let text = format_args!("a list of {names} names is too long");
                    return Err(PairError::ended(text));
                }
                Self::Send { roots: Roots::new(&paths, &options.files, descriptors), options }
            }
        })
    }

    fn run(self, session: Session) -> Result<(), PairError> {
        let meter = Meter::default();
        match self {
            Self::Receive { target, options, descriptors } => {
                let writes = (&meter, descriptors);
                // The near side knows the names that other parts of the copy have made.
                let asked = (&Allowed::anything(), Claimant::only());
                session.receive(&target, asked, options, writes)
            }
            Self::Send { roots, options } => {
                session.send(&roots, options, Claimant::only(), &meter)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_transfer::{Rules, encode};

    // spec: copy-feature-1
    #[test]
    fn times_alone_are_asked_only_of_a_far_side_that_knows_them() {
        let old = [Preserve::Nothing, Preserve::All, Preserve::Times].map(|preserve| {
            let options =
                Options { rules: Rules { preserve, ..Rules::default() }, ..Options::default() };
            let order = Order::Put { target: Vec::new(), options };
            let agreed = |features: &[&str]| Agreed {
                protocol: 6,
                features: features.iter().map(|name| (*name).to_owned()).collect(),
            };
            assert!(refuse_what_it_lacks(&order, &agreed(&[TIMES_ALONE])).is_ok());
            refuse_what_it_lacks(&order, &agreed(&["another"])).is_ok()
        });
        assert_eq!(old, [true, true, false]);
        // An older program reads a bool.
        assert_eq!(encode(&Preserve::Nothing, &[]), encode(&false, &[]));
        assert_eq!(encode(&Preserve::All, &[]), encode(&true, &[]));
    }
}
