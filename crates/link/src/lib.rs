//! One direction of a link, as a pure model: a bottleneck queue, then a wire.
//!
//! The caller keeps the payloads. [`Link::offer`] says at once what becomes of a segment: dropped,
//! or delivered at a known instant, perhaps twice, perhaps damaged. Nothing here reads a clock or
//! draws from a random source that the seed does not determine, so the simulator and the lab agree
//! on what a link does.
//!
//! A segment of L bytes of IP keeps the bottleneck busy for (L + 38) x 8 / rate, which is what it
//! costs on Ethernet (preamble, header, checksum and gap). It counts as queued, with its L bytes,
//! from the instant it is offered until its last bit has left; one that a managed queue drops, until it
//! would have been sent.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bottleneck;
mod codel;
mod counters;
mod dice;
mod jitter;
mod link;
mod path;
mod policer;
mod schedule;
mod setting;
mod spec;

pub use bottleneck::{FRAMING, Retiming};
pub use codel::{CodelSpec, Ecn, Signal};
pub use counters::Counters;
pub use link::{Delivery, DropCause, Link, Order, Verdict};
pub use path::{Direction, PathSpec, QueueRule};
pub use policer::PoliceSpec;
pub use schedule::{Schedule, ScheduleError, Step};
pub use setting::{Setting, SettingError};
pub use spec::{LinkSpec, LossModel, Outage, Reorder};

#[cfg(test)]
mod tests;
