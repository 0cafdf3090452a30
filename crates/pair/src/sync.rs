//! Primitives with which threads of a copy wait.
//!
//! The files that use it name nothing else that threads share, so that `tests/threads` can compile the same files over
//! models that try every order of events.

pub(crate) use hikyaku_net::blocking::Stop;
pub(crate) use std::sync::{Condvar, Mutex};
pub(crate) use std::thread;
