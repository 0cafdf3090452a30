//! One direction of a link as a pure model: a bottleneck queue, followed by a wire with delay and
//! impairments.
//!
//! The caller keeps the payloads. [`Link::offer`] returns at once what happens to a packet: it is
//! dropped, or delivered at a known time, possibly twice or corrupted. The model reads no clock,
//! and all randomness derives from a seed, so the simulator and the lab treat a link in the same
//! way.
//!
//! A packet of L bytes of IP occupies the bottleneck for (L + 38) x 8 / rate, its transmission time
//! on Ethernet with preamble, header, checksum and gap. It counts as queued with its L bytes from
//! the time of its offer until its last bit has left. A packet that the active queue management
//! drops counts until it would have been sent.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod background;
mod bottleneck;
mod codel;
mod counters;
mod dice;
mod jitter;
mod link;
mod path;
mod policer;
mod quantity;
mod schedule;
mod setting;
mod spec;

pub use background::BackgroundSpec;
pub use bottleneck::{FRAMING, Retiming};
pub use codel::{CodelSpec, Ecn, Signal};
pub use counters::Counters;
pub use link::{Delivery, DropCause, Link, Order, Verdict};
pub use path::{Direction, PathSpec, QueueRule};
pub use policer::PoliceSpec;
pub use quantity::{parse_share, parse_time};
pub use schedule::{Schedule, ScheduleError, Step};
pub use setting::{Setting, SettingError};
pub use spec::{LinkSpec, LossModel, Outage, Reorder};

#[cfg(test)]
mod tests;
