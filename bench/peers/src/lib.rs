//! What the peer programs have in common: the command line, the count at the receiver, the
//! certificate and the sockets. Each stack's own part is a program in `bin/`.
//!
//! A server takes one connection with one stream, counts for `--seconds` from the handshake on, and
//! prints one line of JSON; a client sends until the server is done. A connection that dies is a
//! result as well: what had come until then, and the stack's own words.
#![forbid(unsafe_code)]

mod args;
mod ends;
mod family;
mod goodput;
mod identity;
mod socket;

pub use args::{Args, Control, Reads, Role};
pub use ends::{count, run, send_until_over};
pub use goodput::{Goodput, Report};
pub use identity::{client_tls, server_tls, write_identity};
pub use socket::{bind, segments_that_fit};

use bytes::Bytes;

/// The name in the certificate.
pub const HOST: &str = "localhost";

/// What is sent, again and again: shared, so that no stack has to copy it.
pub fn chunk() -> Bytes {
    Bytes::from(vec![0x5a; 256 << 10])
}
