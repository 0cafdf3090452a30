//! What a mount keeps of remote files in memory, and what it asks for before a program reads it.
//!
//! Three parts, none of which does any I/O or reads a clock:
//!
//! - [`Pages`] holds blocks of files within a budget. A block is absent, asked for, or here. A block is asked for once,
//!   however many readers want it.
//! - [`Reader`] is told of each read of one open file and answers which ranges to ask for ahead. It knows reading in
//!   order, backwards, and with equal gaps; a program that jumps about is asked for nothing ahead.
//! - [`Pace`] measures the rate at which bytes arrive and tells how much must be under way to fill the path.
//!
//! A window is `3 x rate x round trip + 1 MiB`, and what a server sends beside the oldest request. A reader gets all of it
//! at the second read in order and not by doubling, because each doubling would cost a round trip.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod pace;
mod pages;
mod reader;

pub use pace::{Pace, Window};
pub use pages::{Class, Content, Pages, PagesTotals, Put};
pub use reader::Reader;

/// The size of a block: 128 KiB, the largest read of a kernel that nobody tuned.
pub const BLOCK_BYTES: u64 = 128 << 10;
/// The size of a segment: 1 MiB, the unit in which a server proves large ranges.
pub const SEGMENT_BYTES: u64 = 1 << 20;

/// The blocks that contain these bytes.
pub const fn blocks_of(bytes: &core::ops::Range<u64>) -> core::ops::Range<u64> {
    bytes.start / BLOCK_BYTES..bytes.end.div_ceil(BLOCK_BYTES)
}
