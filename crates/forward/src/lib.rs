//! Carried TCP flows, without I/O: the messages of the two gateways, the states of a flow, and which addresses a gateway
//! dials.
//!
//! A flow is one TCP connection of a program, taken in by the near gateway and continued by the far gateway. It has one
//! ordered stream of the transport. The near gateway opens the stream with an [`Open`], which names the target. The far
//! gateway answers with an [`Answer`]: connected, or the reason why not. All bytes behind these two messages are those of
//! the two programs.
//!
//! ```text
//!  program ── TCP ── near gateway ══ stream: OPEN, bytes ══▶ far gateway ── TCP ── server
//!                                  ◀══ stream: ANSWER, bytes ══
//! ```
//!
//! [`Flow`] decides what the end or the reset of one side means for the other side. [`check`] refuses addresses that a
//! carried flow must not reach, such as the metadata service of a cloud, an [`AllowList`] has the targets that a standing
//! gateway connects, and a [`Share`] limits the flows of one client. A [`Report`] has the waiting times of flows.
//!
//! The near gateway may ask the far one to listen ([`Listen`]). A flow that comes in there goes the other way round: the
//! far gateway opens the stream with an [`Arrived`], and the near one connects it and answers.
//!
//! A [`Scheme`] is the protocol of a web server, and decides which redirects are followed.
//!
//! The crate owns no socket and no stream, and parses no request of SOCKS or HTTP.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod access;
mod allow;
mod answer;
mod fields;
mod flow;
mod gather;
mod goal;
mod hello;
mod listen;
mod open;
mod report;
mod scheme;
mod share;
mod target;

pub use access::{Forbidden, Loopback, check, is_named_loopback};
pub use allow::{AllowList, BadPattern, Pattern, Permits};
pub use answer::{Answer, Verdict};
pub use fields::MessageError;
pub use flow::{Act, End, Event, Flow, Step};
pub use gather::{Gather, framed};
pub use goal::{BadSocketPath, Goal, SocketPath};
pub use hello::Hello;
pub use listen::{Arrived, At, Listen, Listening};
pub use open::Open;
pub use report::{Report, Waited};
pub use scheme::{Scheme, Weaker};
pub use share::{Counted, Share};
pub use target::{BadHost, Host, Target};
