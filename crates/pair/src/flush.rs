//! Steady write-back: what has been written reaches the disk while more arrives, so that neither a
//! dam of dirty pages stops the stream nor a power failure costs more than the last step.

use super::disk::Disk;
use super::incoming::Incoming;
use hikyaku_fs::Meta;
use hikyaku_net::blocking::Stop;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Files under way.
#[derive(Default)]
pub(crate) struct Active(Mutex<Vec<Weak<Incoming>>>);

/// Interval between syncs: in bytes, and in time if any bytes were written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct SyncEvery {
    pub(crate) bytes: u64,
    pub(crate) time: Duration,
}

impl Default for SyncEvery {
    /// A receiver that takes a copy up after a failure reads again what was written since: at most a
    /// quarter of a gigabyte, or what came in five seconds.
    fn default() -> Self {
        Self { bytes: 256 << 20, time: Duration::from_secs(5) }
    }
}

/// How often the time is looked at.
const LOOK: Duration = Duration::from_millis(100);

impl Active {
    pub(crate) fn add(&self, incoming: &Arc<Incoming>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|file| file.strong_count() > 0);
        all.push(Arc::downgrade(incoming));
    }

    fn files(&self) -> Vec<Arc<Incoming>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).collect()
    }
}

/// Syncs at each interval until `stop` is set. A file whose sync fails is void: the kernel reports the error once, and a
/// later sync would succeed although bytes are lost.
pub(crate) fn sync(disk: &Disk<'_>, every: SyncEvery, stop: &Stop) {
    let (mut written, mut last) = (0, Instant::now());
    let look = LOOK.min(every.time / 2).max(Duration::from_millis(1));
    while !stop.is_set() && !disk.fault.is_there() {
        let now = disk.meter.tally().bytes;
        if now >= written + every.bytes || (now > written && last.elapsed() >= every.time) {
            // Bytes that are written during the sync may not be on the disk after it.
            let length = disk.journal.length();
            let mut stamps = Vec::new();
            for file in disk.active.files() {
                // One that is whole meets the same error when it is to get its name.
                if let Err(error) = file.draft.sync()
                    && file.give_up()
                {
                    disk.void(&file, &error);
                }
                if let Ok(meta) = file.draft.with(|file| Meta::of(file)) {
                    stamps.push((file.plan.path.as_bytes().to_vec(), meta.modified));
                }
            }
            disk.journal.synced(length, stamps);
            (written, last) = (now, Instant::now());
        }
        stop.sleep(look);
    }
}
