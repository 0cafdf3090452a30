//! `hikyaku mount` with the kernel's FUSE: a daemon, a mount of its files, and programs that use them.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod leases;
mod place;
mod programs;
mod reading;
mod several;
mod sharing;
mod staging;
mod writing;
