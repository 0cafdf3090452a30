//! Types for units: [`Instant`], [`Rate`], [`DataSize`] and [`Probability`], with text forms for
//! users. [`counted()`] says how many there are of something.
//!
//! Rates are in bits per second (`110M` and `110mbit` are both 110,000,000 bit/s). Sizes are in
//! bytes; `5MB` is 5,000,000, while `5MiB` and bare `5M` are 5,242,880, as in iperf3 and rsync.
//! Nothing in this crate reads a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counted;
mod duration;
mod instant;
mod number;
mod probability;
mod rate;
mod size;

pub use counted::{Counted, counted};
pub use duration::{DurationText, parse_duration, parse_timeout};
pub use instant::Instant;
pub use number::ParseUnitError;
pub use probability::Probability;
pub use rate::{Rate, parse_limit};
pub use size::DataSize;

#[cfg(test)]
mod tests;
