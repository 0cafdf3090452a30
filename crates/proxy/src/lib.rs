//! `hikyaku proxy`: TCP flows of programs that know nothing of it, carried over the transport between two gateways.
//!
//! The near gateway listens on TCP ports: for one target each (`-L`), as a SOCKS proxy (`-D`) or as an HTTP proxy
//! (`--http`), or takes in connections that pass through its host (`--transparent`) or that a command makes
//! (`--for-command`). The far gateway is started through ssh, or is a daemon, and connects to the targets. Each flow has an ordered stream of
//! the transport, so a slow reader of one flow does not keep the others waiting.
//!
//! ```text
//!  program ── TCP ── near ══ one connection of the transport ══ far ── TCP ── server
//! ```
//!
//! Both gateways run the same relay (`relay`), which acts as `hikyaku_forward::Flow` decides: an end of one side is an
//! end of the other, a reset is a reset after the bytes before it, and a lost connection is a reset of everything.
#![forbid(unsafe_code)]

mod args;
mod background;
mod board;
mod command;
mod control;
mod far;
mod front;
mod guests;
mod hand;
mod http;
mod limits;
mod link;
mod meter;
mod near;
mod output;
mod pac;
mod page;
mod relay;
mod socket;
mod socks;
mod status_socket;
mod switch;
mod transparent;
mod trouble;
mod unix;
mod web;

pub use args::ProxyArgs;
pub use far::{attend, attend_client};
pub use front::is_request;
pub use limits::SERVICE;
pub use near::run;
pub use web::{WebArgs, run as run_web};
