//! The examples in C, compiled as a user would, against servers of this process.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod echo;
mod session;
