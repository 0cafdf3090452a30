//! Power failures: what a copy did is recorded, cut at every point, and what the disk may hold then is
//! checked against what was promised.
//!
//! [`record`] sees what a copy writes, renames and syncs; [`disk`] knows what of it must have lasted
//! at any point, and [`state`] chooses among what may have; [`promise`] says what is wrong with it.

pub(crate) mod disk;
pub(crate) mod promise;
pub(crate) mod record;
pub(crate) mod state;
pub(crate) mod sweep;
