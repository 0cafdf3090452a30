//! UDP sockets for a driver thread at rates of 10 Gbit/s and more.
//!
//! A [`UdpSocket`] sends one [`Transmit`] of up to 64 equal segments in one system call by UDP
//! segmentation offload (`UDP_SEGMENT`, udp(7)). Where the kernel or the device does not support
//! that, it sends one datagram each. It receives into a [`RecvBatch`], whose messages may each hold
//! many datagrams that the kernel coalesced (`UDP_GRO`). A [`Poller`] waits for the socket, a
//! [`Waker`] or a timeout.
//!
//! Invariants: only [`Poller::wait`] blocks. Nothing allocates after construction, except that a
//! [`RecvBatch`] replaces a buffer that its user took. The don't-fragment bit is always set, and
//! the kernel's path MTU is ignored because the transport probes it. All `unsafe` code is in the
//! module `sys`.
//!
//! On systems other than Linux a datagram costs a system call, and the MTU of a route and interfaces
//! by name are not to be had. What differs is in the modules `linux` and `others` of `sys`, `control`,
//! `configure` and `wait`. The crate compiles for macOS; it has not run there.

mod address;
mod bind;
mod configure;
mod control;
mod ecn;
mod granted;
mod group;
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
pub use group::STEERING_BYTE;
pub use options::{Family, Offload, SocketOptions};
pub use recv::{MESSAGE_BYTES, Message, RecvBatch, RecvMeta};
pub use route::{largest_payload, route_mtu};
pub use send::{SendError, SendOutcome};
pub use transmit::{MAX_BATCH_BYTES, MAX_SEGMENTS, Transmit, segments_in_batch};
pub use wait::{Interest, Poller, Readiness, Waker, sharpen_timers};

#[cfg(test)]
mod tests;
