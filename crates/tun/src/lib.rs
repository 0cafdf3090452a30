//! Linux TUN devices: opened inside a chosen network namespace, read and written with the offload
//! header that lets TCP and UDP super-packets of up to 64 KB pass whole.
//!
//! Beside them, what a thread that moves packets needs: [`Pages`] to keep them in, and
//! [`prefer_this_thread`] to be on time.
//!
//! This crate is Linux only, and one of the two in the workspace that may contain `unsafe`.
#![cfg(target_os = "linux")]

mod device;
mod header;
mod netns;
mod pages;
mod priority;
mod stats;

pub use device::{Offload, Tun};
pub use header::{Checksum, Cwr, Gso, Header};
pub use netns::in_namespace;
pub use pages::Pages;
pub use priority::prefer_this_thread;
pub use stats::DeviceStats;

#[cfg(test)]
mod tests;
