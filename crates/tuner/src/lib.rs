//! How many parallel TCP connections carry a transfer, and how large its chunks are.
//!
//! One TCP connection moves at most a window a round trip, and after a loss less than that. Several connections have
//! several windows. Too many of them fill queues, take shares from others, and cost memory. The right number depends on
//! the path, so it is decided from what the transfer itself measures: its goodput.
//!
//! A [`Tuner`] receives measurements ([`Sample`]) and returns the next step ([`Decision`]). It has no clock and no
//! socket. Order of calls: [`Tuner::start`] once, then [`Tuner::handle_sample`] each time a chunk is done.
//!
//! A [`Controller`] is for transfers that can open and close connections at any time: it sees the bytes and the round-trip times
//! of each connection several times a second ([`Look`]), and decides the number of open ones.
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

extern crate alloc;

mod adaptive;
mod cap;
mod chunked;
mod climb;
mod controller;
mod look;
mod paper;
mod rtt;
mod sample;
mod screen;
mod tuner;
mod window;

pub use adaptive::{Adaptive, AdaptiveOptions};
pub use climb::ClimbOptions;
pub use controller::Controller;
pub use look::{Carried, Look, Measured};
pub use paper::{Paper, PaperOptions};
pub use rtt::RttMean;
pub use sample::{Decision, LimitedBy, Next, Phase, Sample};
pub use tuner::{Fixed, Tuner};
