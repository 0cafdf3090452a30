//! What systems do in different ways: lookup beneath a directory, holes, syncing, random bytes.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod others;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    NO_ATTRIBUTE, SEARCH, drop_cache, is_error_reporting, is_sizeless, open_beneath, punch_hole,
    random, sync, sync_file_system,
};
#[cfg(not(target_os = "linux"))]
pub(crate) use others::{
    NO_ATTRIBUTE, SEARCH, drop_cache, is_error_reporting, is_sizeless, open_beneath, punch_hole,
    random, sync, sync_file_system,
};
