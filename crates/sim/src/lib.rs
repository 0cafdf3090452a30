//! The transport in virtual time.
//!
//! A [`Scenario`] runs two connections over two [`hikyaku_link::Link`]s. A [`Crowd`] runs many
//! connections and models of TCP over the same two links. Both check invariants at every step: each
//! byte is delivered once and unchanged, a server sends at most three times the received bytes to
//! an unvalidated address, and there is no busy loop. Everything random is derived from one seed,
//! so a failing seed is a test case.
//!
//! The handshake is a substitute ([`SimSession`]) with the message flow of TLS 1.3 and no security,
//! so that a million packets take a second. No product binary contains this crate.
#![forbid(unsafe_code)]

mod apps;
mod brief;
mod crowd;
mod duo;
mod everywhere;
mod idle;
mod many;
mod meddler;
mod middlebox;
mod ops;
mod pair;
mod paths;
mod pattern;
mod play;
mod scenario;
mod session;
mod several;
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
pub use many::{Many, ManyOutcome};
pub use meddler::Meddler;
pub use middlebox::{Marks, Middlebox, NewHost, Rebinds};
pub use ops::{Op, Plot, shrunk};
pub use paths::{EFFICIENCY_1500, RandomPath, plain_link, shares_of_bound};
pub use pattern::{Pattern, PatternError};
pub use play::play;
pub use scenario::{Load, Outcome, Scenario};
pub use session::SimSession;
pub use several::{Progress, Several};
pub use tcp::Congestion;
pub use trace::Trace;
pub use world::SimError;
