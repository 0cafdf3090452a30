//! Synchronisation primitives of the state that threads share.
//!
//! The files that use them name nothing else, so that `tests/threads` can compile the same files over models
//! that try every order of events.

pub(crate) use atomic_waker::AtomicWaker;
pub(crate) use crossbeam_queue::{ArrayQueue, SegQueue};
pub(crate) use hikyaku_udp::Waker as Bell;
pub(crate) use std::sync::OnceLock;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, fence};
pub(crate) use std::thread;
