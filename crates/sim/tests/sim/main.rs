//! Tests of the transport in virtual time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod attack;
mod brief;
mod caps;
mod cells;
mod closing;
mod crowd;
mod events;
mod far;
mod grid;
mod many;
mod moving;
mod ops;
mod paths;
mod queues;
mod recorded;
mod remembered;
mod rules;
mod snapshot;
mod tuned;
