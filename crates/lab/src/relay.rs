//! The relay: one thread that moves packets between the devices of the namespaces and applies the
//! link model.

mod arena;
mod checksum;
mod control;
mod cut;
mod health;
mod lateness;
mod line;
mod packet;
mod rebuild;
mod routes;
mod run;
mod translator;
mod waiting;

#[cfg(test)]
mod tests;

pub(crate) use control::{Handle, PathState, Snapshot, Target};
pub(crate) use lateness::{LATE_MAX, LATE_P99};
pub(crate) use routes::Topology;
pub(crate) use run::{Relay, RelaySpec};

pub use lateness::Lateness;
pub use rebuild::Corruption;
