//! The thread that brings unfinished files to the disk while more of them comes, so that a failure of the power costs the next
//! run no more than the last step, and the end of this process no more than the last bytes of each connection. Without a
//! journal there is none.

use super::run::Run;
use crate::target::{Stamp, Target};
use hikyaku_transfer::Durable;
use std::io;
use std::sync::PoisonError;
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

/// A sync begins after this number of bytes, or after this time if bytes were written.
const EVERY: (u64, Duration) = (64 << 20, Duration::from_secs(5));
/// The heads of segments are written this often.
const HEADS_EVERY: Duration = Duration::from_secs(5);
/// How often the bytes and the time are compared.
const LOOK: Duration = Duration::from_millis(100);

impl Run<'_> {
    /// Begins the thread, if a later run can continue any of the files.
    pub(super) fn begin_sync<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
    ) -> io::Result<()> {
        if self.continued.is_empty() {
            return Ok(());
        }
        let named = thread::Builder::new().name("mover-sync".to_owned());
        named.spawn_scoped(scope, || self.sync_until_over()).map(drop)
    }

    fn sync_until_over(&self) {
        let (mut written, mut last, mut heads) = (0, Instant::now(), Instant::now());
        let mut state = self.state();
        while !state.is_over {
            state =
                self.to_sync.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
            if heads.elapsed() >= HEADS_EVERY {
                drop(state);
                self.record_heads();
                heads = Instant::now();
                state = self.state();
            }
            let now = self.job.meter.written();
            if now >= written + EVERY.0 || (now != written && last.elapsed() >= EVERY.1) {
                drop(state);
                self.sync();
                (written, last) = (now, Instant::now());
                state = self.state();
            }
        }
    }

    /// Writes and records the heads of the segments that are under way.
    pub(super) fn record_heads(&self) {
        for number in &self.continued {
            self.targets[*number].iter().for_each(Target::record_heads);
        }
    }

    /// Writes and records the heads for the next run. They count as written.
    pub(super) fn leave_heads(&self) {
        self.record_heads();
        let targets = self.continued.iter().filter_map(|number| self.targets[*number].as_ref());
        self.job.meter.add_written(targets.map(Target::new_head_bytes).sum());
    }

    /// Brings all that was written to the disk, and records that.
    pub(super) fn sync(&self) {
        let is_durable = self.job.writing.durable == Durable::Disk;
        let Some(opened) = self.job.journal.filter(|opened| is_durable && opened.journal.is_open())
        else {
            return;
        };
        // A record that is appended during the sync may name bytes that are not on the disk after the sync.
        let length = opened.journal.length();
        let mut stamps: Vec<Stamp> = Vec::new();
        for number in &self.continued {
            match self.targets[*number].as_ref().and_then(Target::sync) {
                None => {}
                Some(Ok(stamp)) => stamps.push(stamp),
                Some(Err((tried, error))) => {
                    // A store that is away still has the stored bytes. The next run reads them back.
                    if !error.kind.is_away() {
                        self.targets[*number].iter().for_each(Target::record_void);
                    }
                    self.fail(&mut self.state(), (*number, tried), error);
                }
            }
        }
        if !stamps.is_empty() {
            opened.journal.synced(length, stamps.into_iter().flatten().collect());
        }
    }
}
