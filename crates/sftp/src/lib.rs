//! A client of SFTP servers (version 3, draft-ietf-secsh-filexfer-02, with extensions of OpenSSH's `PROTOCOL`).
//!
//! [`Request`] and [`Response`] are the messages; encoding and decoding do no I/O. A [`Client`] sends requests over a
//! pipe, such as the subsystem `sftp` of ssh, and has many of them under way: [`Client::ask`] returns a [`Ticket`] at
//! once, and the ticket gives the response; [`Client::all`] sends many at once and gives all responses. Names and handles are bytes, since a server may have names that are
//! no text.
#![forbid(unsafe_code)]

mod answer;
mod attributes;
mod client;
mod extensions;
mod listed;
mod packet;
mod wire;

pub use answer::{Answer, Handle};
pub use attributes::{Attributes, Kind, Stream};
pub use client::{Asked, Client, Failed, Ticket, read_frame};
pub use extensions::{Extension, Limits, Space};
pub use listed::NO_SUCH_TIME;
pub use packet::{
    DATA_BYTES_MAX, Entry, NotAResponse, PACKET_BYTES_MAX, Request, Response, Status, VERSION,
    Version,
};
