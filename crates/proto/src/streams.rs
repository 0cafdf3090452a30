//! Streams: bytes waiting to be sent, and received bytes waiting for the application.

mod incoming;
mod outgoing;
mod schedule;
mod window;

pub use incoming::Delivery;
pub(crate) use incoming::{Incoming, Listed, Turn};
pub(crate) use outgoing::Outgoing;
pub use schedule::Priority;
pub(crate) use schedule::{Backlog, Rest, Schedule};
pub(crate) use window::{Growth, Window};
