//! What an earlier attempt has left, told to the sender before it sends.

use super::{Receiver, Stopped};
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
            match &remains {
                // It would be missing in the list of hashes that its user wants.
                Remains::Whole { hash: None, .. } if self.disk.meter.wants_hashes() => continue,
                Remains::Whole { size, modified, hash } => {
                    self.disk.meter.add_hash(&path, || *hash);
                    self.tell(&path, (*size, *modified), Kept::Whole(*hash))?;
                }
                Remains::Part(record, proven) => {
                    let file = (record.size, record.modified);
                    for runs in portions(proven.runs()) {
                        self.tell(&path, file, Kept::Segments(runs))?;
                    }
                }
            }
            self.remains.insert(path, remains);
        }
        let renamed = self.landing.name().map(|name| name.as_bytes().to_vec());
        self.say(&FromReceiver::Ready { renamed })
    }

    fn tell(
        &self,
        path: &[u8],
        (size, modified): (u64, (i64, u32)),
        kept: Kept,
    ) -> Result<(), Stopped> {
        self.say(&FromReceiver::Has { path: path.to_vec(), size, modified, kept })
    }

    /// Removes what nobody wants any more: of files that the source has no more, or that are others
    /// now.
    pub(super) fn discard_leftovers(&mut self) {
        for (path, remains) in std::mem::take(&mut self.remains) {
            self.discard(&path, &remains);
        }
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
    pub(super) fn discard(&self, path: &[u8], remains: &Remains) {
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

/// Hashes in a message: 256 kB.
const TOGETHER: usize = 8192;

type Run = (SegmentIndex, Vec<SegmentHash>);

/// The runs in as many messages as they need.
fn portions(runs: Vec<Run>) -> Vec<Vec<Run>> {
    let (mut all, mut last, mut length) = (Vec::new(), Vec::new(), 0);
    for (first, hashes) in runs {
        for (at, part) in hashes.chunks(TOGETHER).enumerate() {
            // A run costs its number too, which is little.
            if length + part.len() + 1 > TOGETHER && !last.is_empty() {
                all.push(std::mem::take(&mut last));
                length = 0;
            }
            last.push((SegmentIndex(first.0 + (at * TOGETHER) as u32), part.to_vec()));
            length += part.len() + 1;
        }
    }
    if !last.is_empty() {
        all.push(last);
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_proof_is_told_in_portions() {
        let run = |first, count| (SegmentIndex(first), vec![SegmentHash([1; 32]); count]);
        let runs = vec![run(0, 3), run(10, 2 * TOGETHER + 5), run(50_000, 7)];
        let told = portions(runs.clone());
        assert!(told.len() >= 3);
        let mut proven = Proven::nothing(hikyaku_transfer::Geometry::new(1 << 40).unwrap());
        for portion in told {
            assert!(portion.iter().map(|(_, hashes)| hashes.len()).sum::<usize>() <= TOGETHER);
            portion.iter().for_each(|(first, hashes)| proven.insert_run(*first, hashes));
        }
        assert_eq!(proven.runs(), runs);
        assert!(portions(Vec::new()).is_empty());
    }
}
