//! The lab: emulates long fat links between network namespaces, to test programs on them.
//!
//! The client and each server live in network namespaces of their own, each with a TUN device. One
//! relay thread moves packets between the devices and applies the link model of `hikyaku-link`. A
//! TCP or UDP super-packet (GSO) passes as a whole if nothing happens to any of its wire segments;
//! otherwise it is split around the affected segments. Rates, queues, losses and corruption are
//! therefore exact for each wire segment, at 10 Gbit/s on two processor cores.
//!
//! A lab may also consist of sites: networks of several hosts, each behind a gateway, with a link
//! between every two gateways ([`SiteLab`]).
//!
//! Tests and benchmarks use [`Lab`]; a command line uses [`run`] with [`LabArgs`].
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod address;
mod args;
mod check;
mod cli;
mod control;
mod host;
mod lab;
mod namespace;
mod relay;
mod report;
mod running;
mod runtime;
mod site;
mod sites;
mod trouble;

pub use address::{ipv4, ipv6};
pub use args::LabArgs;
pub use check::{Check, WayCheck, check};
pub use cli::run;
pub use host::HostProfile;
pub use lab::{Access, Lab, LabSpec, Side};
pub use relay::{Corruption, Lateness};
pub use report::{DirectionReport, HostReport, RelayReport, Report, ServerReport};
pub use site::{HOSTS_MAX, Host, Layout, PairName, SITES_MAX, Site};
pub use sites::{LinkReport, RivalFlows, RivalSpec, SiteLab, SitesReport, SitesSpec};
pub use trouble::exit_code;
