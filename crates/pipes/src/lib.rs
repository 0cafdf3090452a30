//! Streams and objects over reliable byte pipes.
//!
//! A pipe carries bytes in order and without loss: ssh's channel, a TCP or TLS connection, a pair of Unix pipes. A
//! [`Connection`] carries any number of streams over one or several pipes, with the same handles as `hikyaku-net`:
//! ordered [`Stream`]s in both directions, and objects in one direction whose bytes may arrive in any order.
//!
//! There are no datagrams, no acknowledgements of packets and no retransmissions here: the pipe below does all of
//! that. This crate adds multiplexing, flow control by credits for each stream, and an orderly end.
//!
//! Several pipes carry one connection: each takes the next frame when it has room, so a faster pipe carries more. Pipes
//! can be added ([`Extender`]), and what a lost or slow one has not delivered goes over the others
//! ([`OnLoss::Repair`]).
//!
//! Each pipe has a thread that reads and a thread that writes. The pipe must be private and authentic: nothing is
//! encrypted here.
#![forbid(unsafe_code)]

mod connection;
mod error;
mod extender;
mod frame;
mod mux;
mod object;
mod pump;
mod stream;

pub use connection::{Config, Connection, Figures, OnLoss};
pub use error::{OpenError, ReadError, WriteError};
pub use extender::{Extender, First, Token};
pub use object::{ObjectReceiver, ObjectSender};
pub use pump::Pipe;
pub use stream::{ReceiveHalf, SendHalf, Stream};

pub use bytes::Bytes;
pub use hikyaku_proto::{CloseReason, Run, Side, StreamId, code};

#[cfg(test)]
mod tests;
