//! End-to-end tests of the lab: networks of this kernel, and what crosses them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod cli;
mod common;
mod lifetime;
mod sites;
mod tcp;
mod translator;
mod udp;
