//! How many parallel TCP connections carry a transfer, and how large its chunks are.
//!
//! One TCP connection moves at most a window a round trip, and after a loss less than that. Several connections have
//! several windows. Too many of them fill queues, take shares from others, and cost memory. The right number depends on
//! the path, so it is decided from what the transfer itself measures: its goodput.
//!
//! Transfers that can open and close connections at any time use a [`Controller`]: it sees the bytes and the round-trip times of
//! each connection several times a second ([`Look`]), and decides how many are open. Transfers in chunks, whose number can
//! change between two chunks only, use a [`Tuner`]: it receives a measurement of each chunk ([`Sample`]) and returns the next
//! step ([`Decision`]), first by [`Tuner::start`], then by [`Tuner::handle_sample`]. Neither has a clock or a socket.
//!
//! | rule | controller | tuner |
//! |---|---|---|
//! | climb: from many on, more while new connections bring as much as old ones | [`Controller::climb`] | |
//! | the published algorithm: bracket, golden section, stop | [`Controller::paper`] | [`Tuner::Paper`] |
//! | the user's number | [`Controller::fixed`] | [`Tuner::Fixed`] |
//!
//! `docs/internals/tuner.md` has the constants of the first rule, what the publication leaves open, and how it is settled here.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

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

pub use cap::Cap;
pub use climb::ClimbOptions;
pub use controller::Controller;
pub use look::{Carried, Held, Look, Measured, Standing};
pub use paper::{Paper, PaperOptions};
pub use rtt::RttMean;
pub use sample::{Decision, LimitedBy, Next, Phase, Sample};
pub use tuner::{Fixed, Tuner};
