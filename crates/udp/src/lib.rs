//! UDP sockets for a driver thread that moves ten gigabits a second.
//!
//! A [`UdpSocket`] sends one [`Transmit`] of up to 64 equal segments in one system call (UDP
//! segmentation offload) and falls back to one datagram each where the kernel or the device cannot
//! do it. It receives into a [`RecvBatch`], whose messages may each hold many datagrams that the
//! kernel has joined. A [`Poller`] sleeps until the socket, a [`Waker`] or the clock calls.
//!
//! Invariants: nothing here blocks except [`Poller::wait`]; nothing allocates after construction
//! (but for a receive buffer that somebody took and left a smaller one); the don't-fragment bit is always set and the kernel's own idea of the path MTU is ignored, since
//! the transport probes it. This is the only crate with socket `unsafe`, and all of it is in `sys`.
//!
//! Linux only. Another system needs its own `sys`, `control` and `configure`; the rest is shared.

mod address;
mod bind;
mod configure;
mod control;
mod ecn;
mod granted;
mod options;
mod recv;
mod route;
mod send;
mod sys;
mod transmit;
mod wait;

pub use bind::{BindError, UdpSocket};
pub use ecn::Ecn;
pub use granted::{Granted, Support};
pub use options::{Family, Offload, SocketOptions};
pub use recv::{MESSAGE_BYTES, Message, RecvBatch, RecvMeta};
pub use route::{largest_payload, route_mtu};
pub use send::{SendError, SendOutcome};
pub use transmit::{MAX_BATCH_BYTES, MAX_SEGMENTS, Transmit, segments_in_batch};
pub use wait::{Interest, Poller, Readiness, Waker, sharpen_timers};

#[cfg(test)]
mod tests;
