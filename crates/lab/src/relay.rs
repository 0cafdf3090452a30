//! The relay: one thread that moves packets between the namespaces' devices through the model.

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

#[cfg(test)]
mod tests;

pub(crate) use control::{Handle, Snapshot};
pub(crate) use lateness::{LATE_MAX, LATE_P99};
pub(crate) use run::{Relay, RelaySpec};

pub use lateness::Lateness;
pub use rebuild::Corruption;
