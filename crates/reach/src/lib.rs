//! A connection to a far end, however it is reached.
//!
//! [`Connection`] has streams and objects over the transport (UDP) or over byte pipes (ssh's channel, a socket of this
//! machine). [`talk()`] makes a conversation of messages of a stream. [`dial`] connects to a daemon's address, and
//! [`daemon`] agrees with it on a service and a version.
#![forbid(unsafe_code)]

mod carrier;
pub mod daemon;
pub mod dial;
mod talk;

pub use carrier::{
    Carried, Connection, Held, ObjectReceiver, ObjectSender, Packets, ReceiveHalf, Seen, SendHalf,
    Stream,
};
pub use talk::{In, Out, TalkError, Writer, talk};
