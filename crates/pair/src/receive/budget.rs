//! Bounds on the memory that a sender can occupy with files under way. Announced files are counted as they arrive. When the
//! count exceeds the bound, it is taken again without the files that are complete.

use super::{Receiver, Stopped};
use crate::error::PairError;
use crate::incoming::Lie;
use hikyaku_transfer::{EntryId, FromReceiver};

/// Runs of holes that are remembered of files under way; each takes some 50 bytes.
const MOST_HOLES: usize = 1 << 20;
/// Bytes that files under way may take, whatever has come of them: thousands of them, with short names more.
pub(super) const MOST_HELD: usize = 16 << 20;
/// Hashes of all files under way whose segments have not come: more than any window holds, and 6 MB.
const MOST_EXPECTED: usize = 1 << 16;

impl Receiver<'_> {
    /// A sender that begins files and ends none has an end.
    pub(super) fn count_held(&mut self, more: usize) -> Result<(), Stopped> {
        self.held += more;
        if self.held > MOST_HELD {
            self.held = more + self.files.values().map(|file| file.plan.held()).sum::<usize>();
        }
        if self.held > MOST_HELD {
            return Err(self
                .disk
                .fault
                .report(PairError::ended("the sender begins too many files at once")));
        }
        Ok(())
    }

    /// A sender that sends hashes without segments is refused at a bound.
    pub(super) fn count_expected(&mut self, told: usize) -> Result<(), Stopped> {
        self.expected += told;
        if self.expected > MOST_EXPECTED {
            self.expected = self.files.values().map(|file| file.expected()).sum();
        }
        if self.expected > MOST_EXPECTED { Err(self.disk.caught(Lie::Hashes)) } else { Ok(()) }
    }

    pub(super) fn add_holes(
        &mut self,
        id: EntryId,
        holes: &[hikyaku_transfer::Hole],
    ) -> Result<(), Stopped> {
        self.holes += holes.len();
        if self.holes > MOST_HOLES {
            // Those of files that are over are remembered no more.
            self.files.retain(|_, file| !file.is_over());
            self.holes = holes.len() + self.files.values().map(|file| file.holes()).sum::<usize>();
        }
        if self.holes > MOST_HOLES {
            return Err(self.disk.caught(Lie::Holes));
        }
        let (mut made, mut bytes) = (Ok(()), 0);
        self.with(id, |incoming| {
            let (news, punched) = incoming.add_holes(holes)?;
            made = punched;
            bytes = holes.iter().map(|hole| incoming.file.bytes_of(*hole)).sum();
            Ok(news)
        })?;
        if bytes > 0 {
            self.disk.meter.add_kept(bytes);
            self.say(&FromReceiver::Left { bytes })?;
        }
        if let (Err(error), Some(incoming)) = (made, self.files.get(&id)) {
            self.disk.give_up(incoming, &error);
        }
        Ok(())
    }
}
