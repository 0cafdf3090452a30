//! The questions and orders of applications to a driver.

use crate::driver::{ConnectRequest, Connected};
use crate::error::{ConnectError, OpenError};
use crate::link::StreamLink;
use crate::reply::Reply;
use hikyaku_proto::{PathHint, Stats, StreamKind};
use hikyaku_units::Rate;
use std::sync::Arc;

/// A connection's place in the driver: a slot and a serial number, so that a late command does not
/// reach the slot's next tenant.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    pub(crate) slot: u32,
    pub(crate) serial: u32,
}

/// What an application says.
pub(crate) enum Command {
    /// Connect to a peer.
    Connect(Box<ConnectRequest>, Reply<Result<Connected, ConnectError>>),
    /// Something to do for one connection.
    For(Key, Order),
    /// The listener takes no more connections.
    StopListening,
    /// The endpoint's handle is gone: finish what is under way, then end.
    Stop,
}

/// What an application says about one connection.
pub(crate) enum Order {
    /// Some of its streams want attention.
    Touch,
    /// Open a stream.
    Open(StreamKind, Reply<Result<Arc<StreamLink>, OpenError>>),
    /// Give a snapshot.
    Stats(Reply<Stats>),
    /// Say what is worth remembering of the path.
    Hint(Reply<Option<PathHint>>),
    /// Cap the payload.
    SetPayloadRate(Option<Rate>),
    /// End the connection.
    Close(u64, String),
    /// Its last handle is gone.
    Abandon,
}
