//! The lab: an emulated long fat link between network namespaces, for trying programs on it.
//!
//! A client and one or more servers live in namespaces of their own, each with a TUN device. One
//! relay thread moves packets between the devices through the link model of `hikyaku-link`. TCP and
//! UDP super-packets pass whole where nothing happens to any of their wire segments, and are cut
//! around those to which something does: rates, queues, losses and corruption are exact for each
//! wire segment at 10 Gbit/s on two processor cores.
//!
//! Use [`Lab`] from tests and benchmarks, and [`run`] with [`LabArgs`] from a command line.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod address;
mod args;
mod cli;
mod control;
mod host;
mod lab;
mod namespace;
mod relay;
mod report;
mod runtime;

pub use address::{ipv4, ipv6};
pub use args::LabArgs;
pub use cli::run;
pub use host::HostProfile;
pub use lab::{Access, Lab, LabSpec, Side};
pub use relay::{Corruption, Lateness};
pub use report::{DirectionReport, HostReport, RelayReport, Report, ServerReport};
