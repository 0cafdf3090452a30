//! The commands of applications to a driver.

use crate::driver::{ConnectRequest, Connected};
use crate::error::{ConnectError, OpenError};
use crate::link::StreamLink;
use crate::reply::Reply;
use hikyaku_proto::{PathHint, Stats, StreamKind};
use hikyaku_udp::RecvMeta;
use hikyaku_units::Rate;
use std::sync::Arc;
use std::time::Duration;

/// A connection's place in the driver: a slot, and a serial number. A late command for a connection
/// that was removed does not reach the next connection in its slot.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) slot: u32,
    pub(crate) serial: u32,
}

/// A command of an application.
pub(crate) enum Command {
    /// Connect to a peer.
    Connect(Box<ConnectRequest>, Reply<Result<Connected, ConnectError>>),
    /// Something to do for one connection.
    For(Key, Order),
    /// The listener takes no more connections.
    StopListening,
    /// The endpoint was shut down or dropped: deliver what was finished, close all connections, end.
    Stop,
}

/// A message that another driver of the port has received.
pub(crate) struct Stray {
    pub(crate) meta: RecvMeta,
    /// Its bytes, and perhaps more behind them.
    pub(crate) bytes: Vec<u8>,
}

/// A command for one connection.
pub(crate) enum Order {
    /// Look at the streams that are listed in its link.
    Touch,
    /// Open a stream.
    Open(StreamKind, Reply<Result<Arc<StreamLink>, OpenError>>),
    /// Reply with its statistics.
    Stats(Reply<Stats>),
    /// Reply with the hint for its path.
    Hint(Reply<Option<PathHint>>),
    /// Reply with the time since the last packet of the peer.
    Silence(Reply<Duration>),
    /// Limit the rate of payload.
    SetPayloadRate(Option<Rate>),
    /// Close it with this code and reason.
    Close(u64, String),
    /// Its last handle was dropped.
    Abandon,
}
