//! The transport: one connection on long fat paths.

pub(crate) mod beside_others;
pub(crate) mod cores;
pub(crate) mod filling;
pub(crate) mod idle_streams;
pub(crate) mod memory;
pub(crate) mod processor;
pub(crate) mod queue;
pub(crate) mod simulated;
pub(crate) mod start;
pub(crate) mod target_rates;
pub(crate) mod ten_gigabits;
pub(crate) mod trouble;
