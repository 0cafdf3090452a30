//! The shell around the transport: a thread that drives a socket, and handles for programs.
//!
//! An [`Endpoint`] connects, a [`Listener`] accepts; both give a [`Connection`], which carries any
//! number of [`Stream`]s (ordered bytes, both ways) and objects ([`ObjectReceiver`]: bytes with
//! their offsets, as they come). Every async function works on any executor, since nothing here
//! needs a reactor: the driver thread wakes the task. [`blocking`] has the same without async.
//!
//! ```text
//!   handles ── queues, counters ──▶ driver thread ── owns ──▶ socket, all connections
//!      ◀──────── queues, wakers ────────┘
//! ```
//!
//! Application and driver share no lock. A writer is held back when the driver has enough to send,
//! a peer when the reader has enough to read. Reading never ends quietly in the middle: the end of
//! a stream is reported only if the peer finished it and all of it was read.
#![forbid(unsafe_code)]

pub mod blocking;
mod clock;
mod command;
mod config;
mod connect;
mod connection;
mod driver;
mod endpoint;
mod error;
mod inbox;
mod link;
mod listener;
mod lobby;
mod mailbox;
mod notify;
mod object;
mod outbox;
mod paths;
mod pool;
mod receive_half;
mod reply;
mod route;
mod send_half;
mod stream;
mod sync;
mod target;
mod tune;

pub use config::{ConnectConfig, EndpointConfig, ListenerConfig};
pub use connection::Connection;
pub use endpoint::Endpoint;
pub use error::{AcceptError, ConnectError, EndpointError, OpenError, ReadError, WriteError};
pub use listener::Listener;
pub use object::{ObjectReceiver, ObjectSender};
pub use paths::{Memory, PathCache};
pub use receive_half::ReceiveHalf;
pub use send_half::SendHalf;
pub use stream::Stream;
pub use target::{Target, TargetError};

pub use bytes::Bytes;
pub use hikyaku_proto::{
    CloseReason, Config, Delivery, NoPolicy, PathHint, Policy, Run, Side, Stats, StreamId, code,
};

#[cfg(test)]
mod tests;
