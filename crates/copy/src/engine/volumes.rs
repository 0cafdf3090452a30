//! The file systems that a copy writes to, each opened before anything is written to it.

use hikyaku_fs::{Dir, Meta, Volume};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// File systems by the numbers of their devices; nothing, where a sync of the whole cannot be believed.
#[derive(Default)]
pub(crate) struct Volumes(Mutex<BTreeMap<u64, Option<Arc<Volume>>>>);

impl Volumes {
    /// Notes where `dir` is, before anything is written into it; gives the number of the device.
    pub(crate) fn note(&self, dir: &Dir) -> u64 {
        let device = Meta::of(dir).map_or(0, |meta| meta.identity.0);
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(device).or_insert_with(|| Volume::of(dir).map(Arc::new));
        device
    }

    /// The file system on a device, if a sync of all of it can be believed.
    pub(crate) fn get(&self, device: u64) -> Option<Arc<Volume>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&device).cloned().flatten()
    }
}
