//! Entries become directories, links and files.

use super::dirs::Open;
use super::{Receiver, SMALL, Stopped};
use crate::disk::{Job, Small};
use crate::fate::{Fate, Found, Refusal, fate};
use crate::incoming::{Incoming, Plan};
use crate::journal::Remembered;
use anyhow::anyhow;
use hikyaku_fs::{Dir, Draft, FsError, Kind, Manner, Meta, Name, Owner, PeerPath, set_attribute};
use hikyaku_transfer::{
    Attribute, Attributes, Entry, EntryKind, FileHash, FromReceiver, Geometry, Owners, Part, Pass,
    Proven, Record, Remains, Version,
};
use std::sync::Arc;

/// Number of files at which those that are complete or given up are removed from the table.
const MANY: usize = 256;

impl Receiver<'_> {
    /// Makes a directory or a link.
    pub(super) fn make(&mut self, entry: &Entry, path: &PeerPath) -> Result<(), FsError> {
        let parent = self.parent(path)?;
        let name = path.name();
        let old = found(&parent.dir, &name, entry)?;
        match (fate(entry, old.as_ref(), self.disk.options), &entry.kind) {
            (Fate::Make, _) => {
                let made = parent.dir.make_dir(&name).map_err(|e| e.about(path.as_bytes()))?;
                self.touch(&parent);
                self.set_attributes(entry, path, &made);
                self.made_dir(entry, path, made);
            }
            (Fate::Merge, _) => {
                let there = parent.dir.dir(&name.into()).map_err(|e| e.about(path.as_bytes()))?;
                self.set_attributes(entry, path, &there);
                self.merged_dir(entry, path, there);
            }
            (Fate::Link, EntryKind::Link(to)) => {
                let put = parent.dir.put_link(&name, to, &self.disk.token);
                put.map_err(|error| error.about(path.as_bytes()))?;
                self.touch(&parent);
                self.dress_link(entry, path, &parent.dir);
            }
            (Fate::Refuse(refusal), _) => return Err(refused(refusal, path)),
            (Fate::Stay | Fate::Write(_) | Fate::Link, _) => {}
        }
        Ok(())
    }

    /// Owner and time of a link that was made just now.
    fn dress_link(&self, entry: &Entry, path: &PeerPath, dir: &Dir) {
        let name = path.name();
        let owned = match self.owner(entry) {
            Some(owner) => Meta::set_link_owner(dir, &name, owner),
            None => Ok(()),
        };
        let timed = match self.disk.options.preserve.times() {
            true => Meta::set_link_modified(dir, &name, entry.modified),
            false => Ok(()),
        };
        for error in [owned.err(), timed.err()].into_iter().flatten() {
            self.disk.undressed(path.as_bytes(), &error);
        }
    }

    fn set_attributes(&self, entry: &Entry, path: &PeerPath, dir: &Dir) {
        for attribute in self.attributes(entry) {
            if let Err(error) = set_attribute(dir, &attribute.name, &attribute.value) {
                self.disk.undressed(path.as_bytes(), &error);
            }
        }
    }

    /// Reports the result of a dry run for an entry.
    pub(super) fn rehearse(&self, entry: &Entry) -> Result<(), Stopped> {
        let Some(path) = self.free_place(entry)? else { return Ok(()) };
        let would = || {
            self.disk.meter.add_note(path.shown().to_string());
            self.say(&FromReceiver::Would { path: path.as_bytes().to_vec() })
        };
        if self.landing.is_stream() && matches!(entry.kind, EntryKind::File { .. }) {
            return would();
        }
        let look =
            self.landing.dir().parent(&path).and_then(|(dir, name)| found(&dir, &name, entry));
        let old = match look {
            Ok(old) => Ok(old),
            // Where the directory is not there yet, nothing is.
            Err(error) if error.errno() == Some(rustix::io::Errno::NOENT) => Ok(None),
            Err(error) => Err(error),
        };
        let of = |old: Option<Found>| match fate(entry, old.as_ref(), self.disk.options) {
            Fate::Refuse(refusal) => Err(refused(refusal, &path)),
            fate => Ok(fate),
        };
        match old.and_then(of) {
            Ok(Fate::Write(_) | Fate::Link) => would()?,
            Ok(_) => {}
            Err(error) => {
                self.disk.pending.add();
                self.disk.fail(path.as_bytes(), &error);
                if entry.kind == EntryKind::Dir {
                    self.disk.said.is_missing(path.as_bytes());
                }
            }
        }
        Ok(())
    }

    pub(super) fn begin_file(&mut self, entry: &Entry, size: u64) -> Result<(), Stopped> {
        let Some(path) = self.free_place(entry)? else { return Ok(()) };
        let Some(file) = Geometry::new(size) else {
            return Err(self.disk.fault.report(anyhow!("a file of {size} bytes")));
        };
        if self.files.contains_key(&entry.id) {
            return Err(self.disk.fault.report(anyhow!("the sender begins a file twice")));
        }
        self.disk.pending.add();
        if self.is_whole(&path, entry.version) {
            return self.leave(size);
        }
        let left = self.remains.remove(path.as_bytes());
        let mut plan = match self.plan(entry, &path, size) {
            Ok(Some(plan)) => plan,
            Ok(None) => {
                self.discard_all(&path, left);
                return self.leave(size);
            }
            Err(error) => {
                self.discard_all(&path, left);
                self.disk.fail(path.as_bytes(), &error);
                return Ok(());
            }
        };
        if self.files.len() >= MANY.min(self.slots.limit()) {
            // Each holds its directory open.
            self.files.retain(|_, file| !file.is_over());
        }
        let slot = self.slot()?;
        match self.open(&plan, left) {
            Ok((draft, proven)) => {
                self.count_held(plan.held())?;
                // They may be large, and many files be under way: they are not kept.
                self.disk.attach(&plan, &draft);
                plan.attributes = Vec::new();
                let draft = (draft, slot);
                let incoming = Arc::new(Incoming::new(entry.id, plan, file, draft, proven));
                self.disk.meter.add_kept(incoming.kept());
                self.disk.meter.file_begins(incoming.plan.path.as_bytes(), incoming.plan.size);
                self.disk.active.add(&incoming);
                self.files.insert(entry.id, incoming);
            }
            Err(error) => self.disk.fail(path.as_bytes(), &error),
        }
        Ok(())
    }

    /// Begins a file, or takes up what an earlier attempt has left of it.
    fn open(&self, plan: &Plan, left: Option<Remains>) -> Result<(Draft, Option<Proven>), FsError> {
        if let Some(Remains::Part(part)) = &left
            && let Some(draft) = take_up(plan, part)
        {
            draft.keep();
            return Ok((draft, Some(part.proven.clone())));
        }
        // The source is another now, or it was begun in another manner.
        self.discard_all(&plan.path, left);
        let draft = self.disk.create(plan, self.landing.take_stream())?;
        // A stream cannot be taken up.
        let record = Record::File(plan.record(draft.partial()));
        if plan.manner != Manner::Stream && self.disk.journal.append(&[record]) == Remembered::Yes {
            draft.keep();
        }
        Ok((draft, None))
    }

    fn discard_all(&self, path: &PeerPath, left: Option<Remains>) {
        if let Some(left) = left {
            self.discard(path.as_bytes(), &left);
        }
    }

    /// Whether an earlier attempt has copied it, which the sender does not know yet.
    fn is_whole(&self, path: &PeerPath, version: Version) -> bool {
        matches!(
            self.remains.get(path.as_bytes()),
            Some(Remains::Whole(done)) if done.hash.is_some() && done.version == version
        )
    }

    /// Keeps the existing file.
    pub(super) fn leave(&self, bytes: u64) -> Result<(), Stopped> {
        self.disk.meter.add_kept(bytes);
        self.disk.meter.add_file();
        self.disk.pending.done();
        self.say(&FromReceiver::Left { bytes })
    }

    pub(super) fn small(
        &mut self,
        entry: &Entry,
        hash: FileHash,
        bytes: &[u8],
    ) -> Result<(), Stopped> {
        let Some(path) = self.free_place(entry)? else { return Ok(()) };
        if bytes.len() as u64 > SMALL {
            return Err(self.disk.fault.report(anyhow!("a small file that is none")));
        }
        if self.disk.options.pass == Pass::DryRun {
            return Err(self.disk.fault.report(anyhow!("the sender sends bytes in a rehearsal")));
        }
        self.disk.pending.add();
        if self.is_whole(&path, entry.version) {
            return self.leave(bytes.len() as u64);
        }
        match self.plan(entry, &path, bytes.len() as u64) {
            Ok(Some(plan)) => {
                // The pool lives as long as this thread.
                let stream = self.landing.take_stream();
                let (bytes, slot) = (bytes.to_vec(), self.slot()?);
                let _ = self.jobs.send(Job::Small(Small { plan, bytes, hash, stream, slot }));
            }
            Ok(None) => self.leave(bytes.len() as u64)?,
            Err(error) => self.disk.fail(path.as_bytes(), &error),
        }
        Ok(())
    }

    /// The plan of a file; `None` if the existing one stays.
    pub(super) fn plan(
        &mut self,
        entry: &Entry,
        path: &PeerPath,
        size: u64,
    ) -> Result<Option<Plan>, FsError> {
        let Open { dir, device, .. } = self.parent(path)?;
        let name = path.name();
        let (old, manner) = match self.landing.is_stream() {
            // Only the target itself can be one, as its user wrote it.
            true => (None, Manner::Stream),
            false => {
                let old = found(&dir, &name, entry)?;
                match fate(entry, old.as_ref(), self.disk.options) {
                    Fate::Write(manner) => (old, manner),
                    Fate::Refuse(refusal) => return Err(refused(refusal, path)),
                    Fate::Stay | Fate::Link | Fate::Make | Fate::Merge => return Ok(None),
                }
            }
        };
        let mode = self.mode(entry, old.as_ref().map(|old| &old.meta));
        Ok(Some(Plan {
            path: path.clone(),
            dir,
            device,
            name,
            mode,
            owner: self.owner(entry),
            modified: entry.modified,
            version: entry.version,
            size,
            attributes: self.attributes(entry).to_vec(),
            manner,
        }))
    }

    /// Whom it is given to: its owner at the sender, if that is asked for and this end may do it.
    pub(super) fn owner(&self, entry: &Entry) -> Option<Owner> {
        let may = self.disk.options.owners == Owners::Kept && rustix::process::geteuid().is_root();
        let (user, group) = entry.owner.filter(|_| may)?;
        Some(Owner { user, group })
    }

    /// Those that were asked for.
    fn attributes<'e>(&self, entry: &'e Entry) -> &'e [Attribute] {
        if self.disk.options.attributes == Attributes::Kept {
            entry.attributes.as_slice()
        } else {
            &[]
        }
    }

    /// scp's modes: the source's where they are kept; otherwise a file that was there keeps its own,
    /// and a new one has the source's without what the umask takes.
    pub(super) fn mode(&self, entry: &Entry, old: Option<&Meta>) -> u32 {
        match old {
            _ if self.disk.options.preserve.modes() => entry.mode,
            Some(old) if old.kind == Kind::File => old.mode,
            _ => entry.mode & !self.umask,
        }
    }
}

/// The existing entry with the name of `entry`.
fn found(dir: &Dir, name: &Name, entry: &Entry) -> Result<Option<Found>, FsError> {
    let Some(meta) = dir.meta(name)? else { return Ok(None) };
    let is_link = meta.kind == Kind::Link && matches!(entry.kind, EntryKind::Link(_));
    // An unreadable link counts as another one.
    let link = if is_link { dir.read_link(name).ok() } else { None };
    Ok(Some(Found { meta, link }))
}

fn refused(refusal: Refusal, path: &PeerPath) -> FsError {
    match refusal {
        Refusal::IsDirectory => FsError::is_dir(path.as_bytes()),
        Refusal::NotDirectory => FsError::is_no_dir(path.as_bytes()),
        Refusal::Special => FsError::is_special(path.as_bytes()),
    }
}

/// The unfinished file of an earlier attempt, if the source has not changed.
fn take_up(plan: &Plan, part: &Part) -> Option<Draft> {
    let partial = Name::new(&part.record.partial).ok()?;
    let is_in_place = partial == plan.name;
    let fits = part.record.version == plan.version
        && part.record.size == plan.size
        && is_in_place == (plan.manner == Manner::InPlace);
    fits.then(|| Draft::take_up(plan.dir.clone(), partial, &plan.name).ok())?
}
