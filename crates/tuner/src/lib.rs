//! How many parallel TCP connections carry a transfer, and how large its chunks are.
//!
//! One TCP connection moves at most a window a round trip, and after a loss less than that. Several connections have
//! several windows. Too many of them fill queues, take shares from others, and cost memory. The right number depends on
//! the path, so it is decided from what the transfer itself measures: its goodput.
//!
//! A [`Tuner`] receives measurements ([`Sample`]) and returns the next step ([`Decision`]). It has no clock and no
//! socket. Order of calls: [`Tuner::start`] once, then [`Tuner::handle_sample`] each time a chunk is done.
//!
//! | variant | rule |
//! |---|---|
//! | [`Paper`] | the published algorithm: bracket, golden section, stop |
//! | [`Adaptive`] | for transfers that can change their number at any time: up to the bend, stay, look again |
//! | [`Fixed`] | the user's number |
//!
//! `docs/internals/tuner.md` has what the publication leaves open, and how it is settled here.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate alloc;

mod adaptive;
mod paper;
mod rtt;
mod sample;
mod screen;
mod tuner;

pub use adaptive::{Adaptive, AdaptiveOptions};
pub use paper::{Paper, PaperOptions};
pub use rtt::RttMean;
pub use sample::{Decision, LimitedBy, Next, Phase, Sample};
pub use tuner::{Fixed, Tuner};
