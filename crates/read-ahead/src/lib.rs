//! The cache of a mount: blocks of remote files in memory, and requests for blocks before a program reads them.
//!
//! Three parts, none of which does any I/O or reads a clock:
//!
//! - [`Pages`] holds blocks of files within a budget. A block is absent, requested, or present. A block is requested
//!   once, however many readers need it.
//! - [`Reader`] receives each read of one open file and returns the ranges to request ahead. It detects reads in
//!   order, backwards, and with equal gaps. For reads at random places it returns no range.
//! - [`Pace`] measures the rate at which bytes arrive and computes how many requested bytes fill the path.
//!
//! A window is `3 x rate x round trip + 1 MiB`, and the portions that a server sends beside the oldest one. A reader gets
//! the whole window at the second read in order and not by doubling, because each doubling would cost a round trip.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod pace;
mod pages;
mod reader;

pub use pace::{Pace, Window};
pub use pages::{Class, Content, Pages, PagesTotals, Put};
pub use reader::Reader;

/// The size of a block: 128 KiB, the default maximum of a kernel's read.
pub const BLOCK_BYTES: u64 = 128 << 10;
/// The size of a segment: 1 MiB, the unit in which a server proves large ranges.
pub const SEGMENT_BYTES: u64 = 1 << 20;

/// The blocks that contain these bytes.
pub const fn blocks_of(bytes: &core::ops::Range<u64>) -> core::ops::Range<u64> {
    bytes.start / BLOCK_BYTES..bytes.end.div_ceil(BLOCK_BYTES)
}
