//! Copies on bad file systems.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod durable;
mod itself;
mod lies;
mod quota;
mod refusals;
mod rights;
