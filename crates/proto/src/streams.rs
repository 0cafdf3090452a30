//! Streams: what waits to be sent, and what arrived and in which order.

mod incoming;
mod outgoing;

pub use incoming::Delivery;
pub(crate) use incoming::Incoming;
pub(crate) use outgoing::Outgoing;
