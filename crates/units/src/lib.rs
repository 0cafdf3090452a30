//! Units as types: [`Instant`], [`Rate`], [`DataSize`] and [`Probability`], with the text forms that
//! users type and read.
//!
//! Rates are bits a second (`110M` and `110mbit` are both 110,000,000 bit/s), sizes are bytes
//! (`5MB` = 5,000,000, `5MiB` and bare `5M` = 5,242,880, as in iperf3 and rsync). Nothing here
//! reads a clock: an [`Instant`] is a count of nanoseconds from an epoch that its owner chooses.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod duration;
mod instant;
mod number;
mod probability;
mod rate;
mod size;

pub use duration::{DurationText, parse_duration};
pub use instant::Instant;
pub use number::ParseUnitError;
pub use probability::Probability;
pub use rate::Rate;
pub use size::DataSize;

#[cfg(test)]
mod tests;
