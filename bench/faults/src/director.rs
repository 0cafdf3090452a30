//! Lets one fault happen in a run, and what follows from it: what a failed sync could not keep is lost.

use crate::calls::Call;
use crate::fault::{Fault, Lasting, Wrong};
use crate::judge::Struck;
use crate::place::Area;
use crate::tracee::Seen;
use crate::tracer::{Verdict, Watch};
use crate::unsynced::{Loss, Unsynced};
use anyhow::Result;
use nix::errno::Errno;
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// How many calls of each kind there were.
pub(crate) type Counts = BTreeMap<(Call, Area), u32>;

/// Who brings the fault.
pub(crate) struct Director<'a> {
    fault: &'a Fault,
    loss: Loss,
    pace: Duration,
    counts: Counts,
    all: u32,
    struck: Struck,
    unsynced: Unsynced,
    /// Where the write under way begins.
    begins: u64,
}

impl<'a> Director<'a> {
    /// Brings `fault`, slows reads of sources down by `pace`.
    pub(crate) fn new(fault: &'a Fault, loss: Loss, pace: Duration) -> Self {
        Self {
            fault,
            loss,
            pace,
            counts: Counts::new(),
            all: 0,
            struck: Struck::default(),
            unsynced: Unsynced::default(),
            begins: 0,
        }
    }

    /// The program has ended: what happened to the fault, and how many calls there were.
    pub(crate) fn end(mut self) -> Result<(Struck, Counts, u32)> {
        self.unsynced.drop_pages()?;
        Ok((self.struck, self.counts, self.all))
    }

    fn verdict(&mut self, seen: &Seen, nth_of_kind: u32) -> Verdict {
        let (call, area, nth, error, lasting) = match *self.fault {
            Fault::None => return Verdict::Do,
            Fault::Kill(nth) if nth == self.all => return Verdict::Kill,
            Fault::Kill(_) => return Verdict::Do,
            Fault::Full(nth) => return self.no_room(seen, nth),
            Fault::Call { call, area, nth, error, lasting } => (call, area, nth, error, lasting),
        };
        let is_its_turn = match lasting {
            Lasting::Once => nth_of_kind == nth,
            Lasting::ForGood => nth_of_kind >= nth,
        };
        if (seen.call, seen.area) != (call, area) || !is_its_turn {
            return Verdict::Do;
        }
        match error {
            Wrong::Killed => Verdict::Kill,
            Wrong::Short => match seen.length() {
                Some(length @ 2..) => Verdict::Shorten(length / 2),
                _ => Verdict::Do,
            },
            // A descriptor is closed whatever is said of it.
            Wrong::Error(errno) if seen.call == Call::Close => Verdict::DoAndFail(errno),
            Wrong::Error(errno) => Verdict::Refuse(errno),
        }
    }

    /// A disk that is full from the `nth` write on: what takes no room goes on.
    fn no_room(&self, seen: &Seen, nth: u32) -> Verdict {
        let written = self.counts.get(&(Call::Write, Area::Target)).copied().unwrap_or(0);
        let takes_room = matches!(
            seen.call,
            Call::Write | Call::Create | Call::Mkdir | Call::Symlink | Call::CopyRange
        );
        let is_there = matches!(seen.area, Area::Target | Area::State);
        if takes_room && is_there && written >= nth {
            Verdict::Refuse(Errno::ENOSPC)
        } else {
            Verdict::Do
        }
    }

    /// What the failure of a call takes with it.
    fn follow(&mut self, seen: &Seen, errno: Errno) -> Result<()> {
        if !Wrong::Error(errno).loses() {
            return Ok(());
        }
        let is_dir = seen.descriptor.is_some() && std::fs::metadata(seen.link())?.is_dir();
        match seen.call {
            Call::Syncfs => {
                self.struck.names_lost |= seen.area == Area::Target;
                self.unsynced.all_failed(self.loss)
            }
            call if call.is_sync() && is_dir => {
                self.struck.names_lost |= seen.area == Area::Target;
                Ok(())
            }
            call if call.is_sync() || call == Call::Close => {
                self.unsynced.failed(&seen.link(), self.loss)
            }
            _ => Ok(()),
        }
    }
}

impl Watch for Director<'_> {
    fn enter(&mut self, seen: &Seen) -> Result<Verdict> {
        self.all += 1;
        let count = self.counts.entry((seen.call, seen.area)).or_default();
        *count += 1;
        let nth = *count;
        if seen.call == Call::Read && seen.area == Area::Source {
            thread::sleep(self.pace);
        }
        let verdict = self.verdict(seen, nth);
        if verdict != Verdict::Do {
            self.struck.times += 1;
        }
        if let Verdict::Refuse(errno) | Verdict::DoAndFail(errno) = verdict {
            self.follow(seen, errno)?;
        }
        if matches!(seen.call, Call::Write | Call::CopyRange) {
            self.begins = seen.offset()?;
        }
        Ok(verdict)
    }

    fn left(&mut self, seen: &Seen, result: i64) -> Result<()> {
        match seen.call {
            Call::Write | Call::CopyRange if result > 0 => {
                self.unsynced.written(&seen.link(), self.begins..self.begins + result as u64)
            }
            Call::Fsync | Call::Fdatasync if result == 0 => self.unsynced.synced(&seen.link()),
            Call::Syncfs if result == 0 => {
                self.unsynced.all_synced();
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
