//! The transport in virtual time.
//!
//! A [`Scenario`] runs two connections over two [`hikyaku_link::Link`]s, a [`Crowd`] many of them and
//! models of TCP over the same two, and both check invariants at every
//! step: each byte delivered once and right, no answer larger than three times the question before
//! the address is proven, no busy loop. Everything follows from one seed; a failing seed is a test
//! case.
//!
//! The handshake is a stand-in ([`SimSession`]) with the shape of TLS 1.3 and none of its security,
//! so that a million packets take a second. No product binary contains this crate.
#![forbid(unsafe_code)]

mod apps;
mod brief;
mod crowd;
mod duo;
mod everywhere;
mod idle;
mod meddler;
mod middlebox;
mod ops;
mod pair;
mod paths;
mod pattern;
mod play;
mod scenario;
mod session;
mod tcp;
mod trace;
mod visits;
mod watch;
mod wire;
mod world;

pub use brief::Brief;
pub use crowd::{Crowd, Member, Shares, Who, jain};
pub use duo::{Duo, FIRST, Mark, Overheard, Words, address, id, other, overhear};
pub use everywhere::everywhere;
pub use meddler::Meddler;
pub use middlebox::{Marks, Middlebox, NewHost, Rebinds};
pub use ops::{Op, Plot, shrunk};
pub use paths::{EFFICIENCY_1500, RandomPath, plain_link, shares_of_bound};
pub use pattern::{Pattern, PatternError};
pub use play::play;
pub use scenario::{Load, Outcome, Scenario};
pub use session::SimSession;
pub use tcp::Congestion;
pub use trace::Trace;
pub use world::SimError;
