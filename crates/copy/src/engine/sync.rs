//! Steady write-back: what has been written reaches the disk while more arrives, so that neither a
//! dam of dirty pages stops the stream nor a power failure costs more than the last step.

use super::disk::Disk;
use super::incoming::Incoming;
use hikyaku_net::blocking::Stop;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Files under way.
#[derive(Default)]
pub(crate) struct Active(Mutex<Vec<Weak<Incoming>>>);

/// A step is so many bytes,
const STEP: u64 = 256 << 20;
/// or this long, if anything was written in it.
const AT_LEAST: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(100);

impl Active {
    pub(crate) fn add(&self, incoming: &Arc<Incoming>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|file| file.strong_count() > 0);
        all.push(Arc::downgrade(incoming));
    }

    fn files(&self) -> Vec<Arc<Incoming>> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().filter_map(Weak::upgrade).filter(|file| !file.is_closed()).collect()
    }
}

/// Syncs step after step, until it is told to stop.
pub(crate) fn sync(disk: &Disk<'_>, stop: &Stop) {
    let (mut written, mut last) = (0, Instant::now());
    while !stop.is_set() && !disk.fault.is_there() {
        let now = disk.meter.tally().bytes;
        if now >= written + STEP || (now > written && last.elapsed() >= AT_LEAST) {
            // What is written while the disk is asked may not have reached it.
            let length = disk.journal.length();
            // What fails here fails again when the file gets its name, and is told then.
            let all = disk.active.files().iter().all(|file| file.sync().is_ok());
            if all {
                disk.journal.synced(length);
            }
            (written, last) = (now, Instant::now());
        }
        stop.sleep(LOOK);
    }
}
