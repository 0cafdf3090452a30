//! Linux TUN devices. They are opened inside a given network namespace, and read and written with
//! the offload header, so that TCP and UDP super-packets of up to 64 KB pass without segmentation.
//!
//! The crate also has what a thread that forwards packets needs: [`Pages`] to store them, and
//! [`prefer_this_thread`] for real-time priority.
//!
//! It supports Linux only, and is one of the two crates of the workspace that may contain `unsafe`.
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
pub use stats::{DeviceStats, DeviceTable};

#[cfg(test)]
mod tests;
