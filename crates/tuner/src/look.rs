//! The measurements of a transfer's connections, several times a second.

use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// A look at a transfer. Counters begin with the transfer and never fall.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Look<'a> {
    /// When it is.
    pub now: Instant,
    /// Bytes that all connections have carried, closed ones included.
    pub bytes: DataSize,
    /// Time that connections have waited for this end, such as for its disk or a limit of the user's, summed over them.
    pub held_up: Duration,
    /// The shortest time of a handshake.
    pub round_trip: Duration,
    /// Bytes that are missing; `None` if that is not known. Nothing is tried that cannot pay before the end.
    pub left: Option<DataSize>,
    /// The connections that carry bytes, in any order; also those that end after the rest of a request.
    pub connections: &'a [Carried],
}

/// A connection that carries bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Its number. A number may be used again once its connection is closed.
    pub id: u32,
    /// Bytes that connections of this number have carried.
    pub bytes: DataSize,
    /// The round-trip time of now, queues included. `None` where the system does not report it.
    pub round_trip: Option<Duration>,
}

/// The measurement of a time in which the number of connections did not grow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Measured {
    /// Connections that carried bytes, on average.
    pub connections: f64,
    /// Bytes that came.
    pub bytes: DataSize,
    /// How long it was.
    pub elapsed: Duration,
    /// The mean time that packets have waited in queues; `None` if round trips are not known.
    pub queue: Option<Duration>,
    /// Whether that is a queue.
    pub standing: Standing,
    /// The rate of a connection that was added, as a share of what the ones before brought at the same age.
    pub added: Option<f64>,
    /// The number of connections that was chosen after it.
    pub asked: u32,
}

/// A number of connections that was held for some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Held {
    /// This one, while no queue stood.
    WithoutQueue(u32),
    /// Any, while a queue stood.
    WithQueue,
}

impl Held {
    /// The number for a later transfer, unless a queue stood.
    pub const fn remembered(self) -> Option<u32> {
        match self {
            Self::WithoutQueue(n) => Some(n),
            Self::WithQueue => None,
        }
    }
}

/// Whether packets wait in a queue of the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Standing {
    /// They do.
    Yes,
    /// They do not, or the server delays them.
    No,
    /// Round trips are not known.
    Unknown,
}

impl Measured {
    /// Bytes a second.
    pub fn goodput(&self) -> f64 {
        self.bytes.bytes() as f64 / self.elapsed.as_secs_f64().max(1e-6)
    }
}
