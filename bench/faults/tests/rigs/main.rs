//! Shares of both rigs.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod crash;
mod faults;
