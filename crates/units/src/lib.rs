//! Types for units: [`Instant`], [`Rate`], [`DataSize`] and [`Probability`], with text forms for
//! users. [`counted()`] says how many there are of something. [`RetryPolicy`] is the wait between two attempts.
//!
//! There is one parser of rates and one of sizes. A rate is in bits (`100m`, `100mbit`, `100Mb`) or in bytes (`10MB`, `10MiB`)
//! per second; a [`RateRule`] defines bare numbers. Sizes are in bytes: `5MB` is 5,000,000, while `5MiB` and bare
//! `5M` are 5,242,880, as in iperf3 and rsync.
//! Nothing in this crate reads a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod counted;
mod data_unit;
mod duration;
mod instant;
mod number;
mod probability;
mod rate;
mod retry;
mod size;

pub use counted::{Counted, counted};
pub use duration::{DurationText, parse_duration, parse_timeout};
pub use instant::Instant;
pub use number::ParseUnitError;
pub use probability::Probability;
pub use rate::{Rate, RateRule, parse_limit};
pub use retry::{Retries, RetryPolicy};
pub use size::DataSize;

#[cfg(test)]
mod tests;
