//! The transport of `docs/internals/protocol.md` without I/O. The caller passes received datagrams and the
//! current time in, and asks for datagrams to send and for the time of the next call.
//!
//! [`Connection`] is the complete state machine. It is composed of smaller ones, each in its own
//! file: `handshake`, `keys`, `recovery` with `sent`, `receive`, `streams`, `flow`, `mtu`.
//! Congestion control is in `hikyaku-cc`, the wire format in `hikyaku-wire`. Cryptography is an
//! implementation of [`Session`].
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod address;
mod config;
mod connection;
mod crypto;
mod datagrams;
mod ecn;
mod error;
mod flow;
mod handshake;
mod keys;
mod mtu;
mod ranges;
mod receive;
mod recovery;
mod run;
mod sent;
mod streams;

pub use config::{Config, Side, StalledStreams};
pub use connection::{ClientIds, Connection, Event, Holdings, Stats, StreamTotals, TimerReason};
pub use crypto::{KeyChain, KeyPair, Level, PacketKey, Session, SessionError};
pub use datagrams::{Datagrams, Transmit};
pub use ecn::Marking;
pub use error::{CloseReason, code};
pub use ranges::RangeSet;
pub use run::{Home, Run, Slab};
pub use streams::{Delivery, Priority};

pub use hikyaku_cc::{NoPolicy, PathHint, Phase, Policy, Snapshot};
pub use hikyaku_wire::{CipherId, ConnectionId, StreamId, StreamKind};
