//! A small HTTP server for pages of a command: GET only, on the loopback address, behind a token.
//!
//! Other users of this machine can connect to the port, and pages of other sites can make the user's browser do so.
//! Neither knows the token, without which nothing is answered ([`Gate`]). Requests for another host than a loopback
//! address are refused, so that a name that leads here (DNS rebinding) is of no use, and so are requests that the
//! browser marks as made by a page of another site.
//!
//! [`Door`] has a port of its own and a thread for each connection. A program that has a port already uses the gate alone.
#![forbid(unsafe_code)]

mod door;
mod gate;
mod guests;
mod reply;

pub use door::{Answer, Door};
pub use gate::{Asked, Gate, HEAD_BYTES_MAX};
pub use reply::{After, Body, Reply, Status};
