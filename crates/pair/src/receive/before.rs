//! Files and segments of earlier attempts, which the receiver reports before the sender sends.

use super::{Receiver, Stopped};
use crate::incoming::still_right;
use hikyaku_fs::{Dir, Draft, Kind, Meta, Name, PeerPath};
use hikyaku_transfer::{
    Done, Durable, FileHash, FromReceiver, Kept, Part, Proven, Reached, Remains, Resume,
    SegmentHash, SegmentIndex, TargetKind, Version,
};
use std::fs::File;
use std::io;
use std::sync::Arc;

impl Receiver<'_> {
    /// Reports existing files and segments to the sender.
    pub(super) fn begin(&mut self) -> Result<(), Stopped> {
        let fresh = self.disk.options.rules.resume == Resume::Fresh;
        for (path, remains) in std::mem::take(&mut self.remains) {
            if fresh {
                self.discard(&path, &remains);
                continue;
            }
            let Some(remains) = self.still_there(&path, remains) else { continue };
            match &remains {
                // It would be missing in the list of hashes that its user wants.
                Remains::Whole(Done { hash: None, .. }) if self.disk.meter.wants_hashes() => {
                    continue;
                }
                Remains::Whole(Done { version, hash, .. }) => {
                    let claim = self.claims.claim(&path, Kind::File);
                    claim.map_err(|error| self.disk.fault.report(error))?;
                    self.disk.meter.add_hash(&path, || *hash);
                    self.tell(&path, *version, Kept::Whole(*hash))?;
                }
                Remains::Part(part) => {
                    for runs in portions(part.proven.runs()) {
                        self.tell(&path, part.record.version, Kept::Segments(runs))?;
                    }
                }
                Remains::Void(_) => continue,
            }
            self.remains.insert(path, remains);
        }
        let partials = self.remains.values().filter_map(partial).map(<[u8]>::to_vec);
        self.partials = partials.collect();
        let renamed = self.landing.name().map(|name| name.as_bytes().to_vec());
        let target = match self.landing.is_stream() {
            true => TargetKind::Stream,
            false => TargetKind::Files,
        };
        if target == TargetKind::Stream {
            self.disk.meter.set_stream();
        }
        self.say(&FromReceiver::Ready { renamed, target })
    }

    fn tell(&self, path: &[u8], version: Version, kept: Kept) -> Result<(), Stopped> {
        self.say(&FromReceiver::Has { path: path.to_vec(), version, kept })
    }

    /// Removes unfinished files whose sources no longer exist or have changed.
    pub(super) fn discard_leftovers(&mut self) {
        for (path, remains) in std::mem::take(&mut self.remains) {
            self.discard(&path, &remains);
        }
    }

    /// The part of a journal's record that still exists.
    fn still_there(&self, path: &[u8], remains: Remains) -> Option<Remains> {
        let peer_path = PeerPath::new(path).ok()?;
        let (dir, name) = self.landing.dir().parent(&peer_path).ok()?;
        match remains {
            Remains::Whole(done) => {
                let meta = dir.meta(&name).ok()??;
                let is_there = meta.kind == Kind::File
                    && Version::of(&meta.version()) == done.made
                    && (done.reached == Reached::Disk || self.reads_as(&dir, &name, done.hash));
                is_there.then_some(Remains::Whole(done))
            }
            Remains::Part(part) => {
                self.disk.volumes.note(&dir);
                let record = part.record.clone();
                let checked = recheck(&Arc::new(dir), &name, part);
                if checked.is_none() {
                    // It cannot be resumed, and no later attempt would find it.
                    self.discard(path, &Remains::Void(record));
                }
                Some(Remains::Part(checked?))
            }
            Remains::Void(record) => {
                self.discard(path, &Remains::Void(record));
                None
            }
        }
    }

    /// Whether a file whose bytes may not have reached the disk is what it was; then they do.
    fn reads_as(&self, dir: &Dir, name: &Name, hash: Option<FileHash>) -> bool {
        let read = |file: File| -> io::Result<bool> {
            if self.disk.options.rules.durable == Durable::Disk {
                file.sync_all()?;
            }
            // posix_fadvise(2) is advice: a file system may ignore it.
            let _ = rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed);
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file)?;
            Ok(hash == Some(FileHash(*hasher.finalize().as_bytes())))
        };
        dir.read(&name.clone().into()).is_ok_and(|file| read(file).unwrap_or(false))
    }

    /// Removes what an earlier attempt left, which is not wanted.
    pub(super) fn discard(&self, path: &[u8], remains: &Remains) {
        if let Some(partial) = partial(remains)
            && let (Ok(path), Ok(partial)) = (PeerPath::new(path), Name::new(partial))
            && let Ok((dir, name)) = self.landing.dir().parent(&path)
            && partial != name
        {
            // It may be gone already.
            let _ = dir.remove_file(&partial);
        }
    }
}

/// The name of an unfinished file.
fn partial(remains: &Remains) -> Option<&[u8]> {
    match remains {
        Remains::Part(Part { record, .. }) | Remains::Void(record) => Some(&record.partial),
        Remains::Whole(_) => None,
    }
}

/// The segments of a part that are on the disk as they were written. Claimed ones are read again. All are read again of a
/// file under its final name, which another process may have written to, and of a file older than its record.
fn recheck(dir: &Arc<Dir>, name: &Name, part: Part) -> Option<Part> {
    let partial = Name::new(&part.record.partial).ok()?;
    let is_in_place = partial == *name;
    let draft = Draft::take_up(dir.clone(), partial, name).ok()?;
    draft.keep();
    let modified = draft.with(|file| Meta::of(file)).ok()?.modified;
    let is_rolled_back = part.stamp.is_some_and(|stamp| modified < stamp);
    let (mut proven, mut claimed) = (part.proven, part.claimed);
    if is_in_place || is_rolled_back {
        for (first, hashes) in
            std::mem::replace(&mut proven, Proven::nothing(claimed.file())).runs()
        {
            claimed.insert_run(first, &hashes);
        }
    }
    // The kernel's copy may be right where the disk's is not: what a failed write-back left is clean to it.
    // So the disk gets what it lacks first, and is then asked itself.
    if draft.sync().is_err() {
        draft.discard();
        return None;
    }
    for (first, hashes) in still_right(&draft, &claimed).ok()?.runs() {
        proven.insert_run(first, &hashes);
    }
    let claimed = Proven::nothing(proven.file());
    Some(Part { proven, claimed, ..part })
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
