//! What an earlier attempt has left, told to the sender before it sends.

use super::{Receiver, Stopped};
use crate::engine::talk::TalkError;
use hikyaku_fs::{Dir, Kind, Name, PeerPath};
use hikyaku_transfer::{
    FileRecord, FromReceiver, Kept, Proven, Remains, SegmentHash, SegmentIndex,
};
use std::os::unix::fs::FileExt;

impl Receiver<'_> {
    /// Tells the sender what is here already.
    pub(super) fn begin(&mut self) -> Result<(), Stopped> {
        let fresh = self.disk.options.fresh;
        for (path, remains) in std::mem::take(&mut self.remains) {
            if fresh {
                self.discard(&path, &remains);
                continue;
            }
            let Some(remains) = self.still_there(&path, remains) else { continue };
            let (size, modified, kept) = match &remains {
                // It would be missing in the list of hashes that its user wants.
                Remains::Whole { hash: None, .. } if self.disk.meter.wants_hashes() => continue,
                Remains::Whole { size, modified, hash } => {
                    self.disk.meter.add_hash(&path, || *hash);
                    (*size, *modified, Kept::Whole(*hash))
                }
                Remains::Part(record, proven) => {
                    (record.size, record.modified, Kept::Segments(proven.runs()))
                }
            };
            let has = FromReceiver::Has { path: path.clone(), size, modified, kept };
            match self.disk.out.say(&has) {
                // So much has been proven of it that the proof is too long: it is sent again.
                Err(TalkError::TooLong) => continue,
                said => said.map_err(|error| self.disk.fault.report(error))?,
            }
            self.remains.insert(path, remains);
        }
        let renamed = self.landing.name().map(|name| name.as_bytes().to_vec());
        self.say(&FromReceiver::Ready { renamed })
    }

    fn still_there(&self, path: &[u8], remains: Remains) -> Option<Remains> {
        let path = PeerPath::new(path).ok()?;
        let (dir, name) = self.landing.dir().parent(&path).ok()?;
        let plain = |name: &Name| dir.meta(name).ok().flatten().filter(|m| m.kind == Kind::File);
        match remains {
            Remains::Whole { size, .. } => (plain(&name)?.size == size).then_some(remains),
            Remains::Part(record, proven) => {
                let partial = Name::new(&record.partial).ok()?;
                plain(&partial)?;
                // A file under its own name may have been written to by anybody since.
                let proven =
                    if partial == name { recheck(&dir, &record, &proven)? } else { proven };
                Some(Remains::Part(record, proven))
            }
        }
    }

    /// Removes what an earlier attempt left, which is not wanted.
    fn discard(&self, path: &[u8], remains: &Remains) {
        if let Remains::Part(record, _) = remains
            && let (Ok(path), Ok(partial)) = (PeerPath::new(path), Name::new(&record.partial))
            && let Ok((dir, name)) = self.landing.dir().parent(&path)
            && partial != name
        {
            // It may be gone already.
            let _ = dir.remove_file(&partial);
        }
    }
}

/// What of it is still as it was proven.
fn recheck(dir: &Dir, record: &FileRecord, proven: &Proven) -> Option<Proven> {
    let name = Name::new(&record.partial).ok()?;
    let file = dir.read(&name.into()).ok()?;
    let mut still = Proven::nothing(proven.file());
    let mut bytes = Vec::new();
    for (first, hashes) in proven.runs() {
        for (index, &hash) in (first.0..).map(SegmentIndex).zip(&hashes) {
            let range = proven.file().range(index)?;
            bytes.resize((range.end - range.start) as usize, 0);
            if file.read_exact_at(&mut bytes, range.start).is_ok()
                && SegmentHash::new(proven.file(), index, &bytes) == Some(hash)
            {
                still.insert(index, hash);
            }
        }
    }
    Some(still)
}
