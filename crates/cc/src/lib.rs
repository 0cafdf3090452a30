//! Rate control for long fat networks: how much may be in flight, and how fast it leaves.
//!
//! The sender learns three things from every acknowledgement: one-way delays, the receiver's count
//! of bytes over the receiver's own clock, and which packets were lost. From them
//!
//! - [`path`](PathModel) keeps base delay, queueing delay, jitter and delivery rate;
//! - [`loss`](LossModel) keeps apart the loss that the path has anyway from what we cause;
//! - `startup` finds the capacity with short trains, so that the queue never sees a full
//!   round trip of excess;
//! - `probe` looks at the path with less on it, now and then: what base delay and own loss really are;
//! - `common` has all flows look at it at the same time, and tells whether others are there;
//! - `share` is what they hold meanwhile, and what each is due;
//! - `compete` takes beside those what one more of them would;
//! - `brake` slows down a fixed rate that a path does not bear;
//! - `law` holds a small standing queue, the same at every loss rate and every round-trip time;
//! - [`Pacer`] turns a rate into release times.
//!
//! [`Controller`] composes them. It is told what happened (`on_sent`, `on_ack`, `on_outage`), and
//! asked for [`Controller::allowance`] and [`Controller::pacing_rate`]; it never sees its caller.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod brake;
mod common;
mod compete;
mod controller;
mod feedback;
mod filters;
mod law;
mod loss;
mod pacer;
mod path;
mod probe;
mod round;
mod sample;
mod settings;
mod share;
mod startup;

pub use controller::Controller;
pub use feedback::{ack_interval, ack_interval_beside, told_rtt};
pub use loss::LossModel;
pub use pacer::{Grain, Pacer};
pub use path::{PathHint, PathModel};
pub use sample::{AckEvent, Arrival, Limit, Settled, Volume};
pub use settings::{ControllerConfig, NoPolicy, Phase, Policy, Snapshot};
