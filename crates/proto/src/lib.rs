//! The transport of `docs/protocol.md` without I/O: it is handed datagrams and times, and hands
//! back datagrams and times.
//!
//! [`Connection`] is the whole; its parts are small machines in files of their own: `handshake`,
//! `keys`, `recovery` over `sent`, `receive`, `streams`, `flow`, `mtu`. Rate control is
//! `hikyaku-cc`, bytes on the wire `hikyaku-wire`, cryptography whatever implements [`Session`].
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

pub use config::{Config, Side};
pub use connection::{ClientIds, Connection, Event, Stats, StreamTotals, TimerReason};
pub use crypto::{KeyChain, KeyPair, Level, PacketKey, Session, SessionError};
pub use datagrams::{Datagrams, Transmit};
pub use ecn::Marking;
pub use error::{CloseReason, code};
pub use ranges::RangeSet;
pub use run::{Home, Run, Slab};
pub use streams::Delivery;

pub use hikyaku_cc::{NoPolicy, PathHint, Phase, Policy, Snapshot};
pub use hikyaku_wire::{CipherId, ConnectionId, StreamId, StreamKind};
