//! The C library: listen, accept, connect, send and receive over the transport, in place of TCP; and
//! sessions with many servers.
//!
//! The header `include/hikyaku.h` says what each function does. A socket is a connection of its own with one ordered stream
//! in each direction. Each end opens the stream on which it sends, so that either may speak first.
//!
//! `socket` and `session` are safe Rust and have all that happens; `ffi` only converts what C hands over.

mod ffi;
mod session;
mod socket;
