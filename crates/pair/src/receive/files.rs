//! Entries become directories, links and files.

use super::dirs::Open;
use super::{Receiver, SMALL, Stopped};
use crate::disk::{Job, Small};
use crate::error::PairError;
use crate::incoming::{Incoming, Plan};
use hikyaku_fs::{Dir, Draft, FsError, Kind, Manner, Meta, Name, Owner, PeerPath, set_attribute};
use hikyaku_job::{
    Content, DirAction, FileAction, InTheWay, LinkAction, Remembered, Same, Taken, dir_action,
    file_action, link_action,
};
use hikyaku_store::Time;
use hikyaku_transfer::{
    Attribute, Attributes, Entry, EntryKind, FileHash, FromReceiver, Geometry, Owners, Part, Pass,
    Proven, Record, Remains, Version, Write,
};
use std::sync::Arc;

/// Number of files at which those that are complete or given up are removed from the table.
const MANY: usize = 256;

impl Receiver<'_> {
    /// Makes a directory.
    pub(super) fn make_dir(&mut self, entry: &Entry, path: &PeerPath) -> Result<(), FsError> {
        let parent = self.parent(path)?;
        let name = path.name();
        let about = |error: FsError| error.about(path.as_bytes());
        match dir_action(parent.dir.meta(&name)?.map(|old| kind(old.kind))) {
            DirAction::Make => {
                let made = parent.dir.make_dir(&name).map_err(about)?;
                self.touch(&parent);
                self.set_attributes(entry, path, &made);
                self.made_dir(entry, path, made);
            }
            DirAction::Merge => {
                let existing = parent.dir.dir(&name.into()).map_err(about)?;
                self.set_attributes(entry, path, &existing);
                self.merged_dir(entry, path, existing);
            }
            DirAction::Refuse(way) => return Err(refused(way, path)),
        }
        Ok(())
    }

    /// Makes a link with this text.
    pub(super) fn make_link(
        &mut self,
        (entry, text): (&Entry, &[u8]),
        path: &PeerPath,
    ) -> Result<(), FsError> {
        let parent = self.parent(path)?;
        let name = path.name();
        match self.link_action((entry, text), (&parent.dir, &name))? {
            LinkAction::Make => {
                let put = parent.dir.put_link(&name, text, &self.disk.token);
                put.map_err(|error| error.about(path.as_bytes()))?;
                self.touch(&parent);
                self.dress_link(entry, path, &parent.dir);
            }
            LinkAction::Stay => {}
            LinkAction::Refuse(way) => return Err(refused(way, path)),
        }
        Ok(())
    }

    fn link_action(
        &self,
        (entry, text): (&Entry, &[u8]),
        (dir, name): (&Dir, &Name),
    ) -> Result<LinkAction, FsError> {
        let old = dir.meta(name)?;
        let is_link = old.as_ref().is_some_and(|old| old.kind == Kind::Link);
        // A link that cannot be read counts as another one.
        let old_text = if is_link { dir.read_link(name).ok() } else { None };
        let taken = old.as_ref().map(|old| (taken(old), old_text.as_deref()));
        Ok(link_action((text, time(entry.modified)), taken, self.disk.options.rules.existing))
    }

    /// The action for a file of this size.
    fn file_action(&self, entry: &Entry, size: u64, old: Option<&Meta>) -> FileAction {
        let new = Content { size, modified: time(entry.modified) };
        file_action(new, old.map(taken), (self.disk.options.rules.existing, Same::Never))
    }

    /// Owner and time of a link that was made just now.
    fn dress_link(&self, entry: &Entry, path: &PeerPath, dir: &Dir) {
        let name = path.name();
        let owned = match self.owner(entry) {
            Some(owner) => Meta::set_link_owner(dir, &name, owner),
            None => Ok(()),
        };
        let timed = match self.disk.options.rules.preserve.times() {
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
        let action = |(dir, name): (Dir, Name)| match &entry.kind {
            EntryKind::Dir => Ok(match dir_action(dir.meta(&name)?.map(|old| kind(old.kind))) {
                DirAction::Make | DirAction::Merge => Would::Nothing,
                DirAction::Refuse(way) => Would::Fail(way),
            }),
            EntryKind::Link(text) => Ok(match self.link_action((entry, text), (&dir, &name))? {
                LinkAction::Make => Would::Write,
                LinkAction::Stay => Would::Nothing,
                LinkAction::Refuse(way) => Would::Fail(way),
            }),
            EntryKind::File { size } => {
                Ok(match self.file_action(entry, *size, dir.meta(&name)?.as_ref()) {
                    FileAction::Write => Would::Write,
                    FileAction::Same | FileAction::Stay => Would::Nothing,
                    FileAction::Refuse(way) => Would::Fail(way),
                })
            }
        };
        let found = match self.landing.dir().parent(&path).and_then(action) {
            Ok(Would::Fail(way)) => Err(refused(way, &path)),
            // In a directory that does not exist yet, no name is taken.
            Err(error) if error.errno() == Some(rustix::io::Errno::NOENT) => {
                Ok(if entry.kind == EntryKind::Dir { Would::Nothing } else { Would::Write })
            }
            found => found,
        };
        match found {
            Ok(Would::Write) => would()?,
            Ok(_) => {}
            Err(error) => {
                self.not_made(&path, &error);
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
            return Err(self
                .disk
                .fault
                .report(PairError::ended(format_args!("a file of {size} bytes"))));
        };
        if self.files.contains_key(&entry.id) {
            return Err(self.disk.fault.report(PairError::ended("the sender begins a file twice")));
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
            return Err(self.disk.fault.report(PairError::ended("a small file that is none")));
        }
        if self.disk.options.rules.pass == Pass::DryRun {
            return Err(self
                .disk
                .fault
                .report(PairError::ended("the sender sends bytes in a rehearsal")));
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
                let old = dir.meta(&name)?;
                match self.file_action(entry, size, old.as_ref()) {
                    FileAction::Write => {}
                    FileAction::Same | FileAction::Stay => return Ok(None),
                    FileAction::Refuse(way) => return Err(refused(way, path)),
                }
                // A link is replaced, and not written through.
                let is_file = old.as_ref().is_some_and(|old| old.kind == Kind::File);
                let is_in_place = is_file && self.disk.options.rules.write == Write::InPlace;
                (old, if is_in_place { Manner::InPlace } else { Manner::Renamed })
            }
        };
        let mode = self.mode(entry, old.as_ref());
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
        let may =
            self.disk.options.rules.owners == Owners::Kept && rustix::process::geteuid().is_root();
        let (user, group) = entry.owner.filter(|_| may)?;
        Some(Owner { user, group })
    }

    /// Those that were asked for.
    fn attributes<'e>(&self, entry: &'e Entry) -> &'e [Attribute] {
        if self.disk.options.rules.attributes == Attributes::Kept {
            entry.attributes.as_slice()
        } else {
            &[]
        }
    }

    /// scp's modes: the source's where they are kept; otherwise a file that was there keeps its own,
    /// and a new one has the source's without what the umask takes.
    pub(super) fn mode(&self, entry: &Entry, old: Option<&Meta>) -> u32 {
        match old {
            _ if self.disk.options.rules.preserve.modes() => entry.mode,
            Some(old) if old.kind == Kind::File => old.mode,
            _ => entry.mode & !self.umask,
        }
    }
}

/// The existing entry, as the decision needs it.
const fn taken(old: &Meta) -> Taken {
    let content = Content { size: old.size, modified: time(old.modified) };
    Taken { kind: kind(old.kind), content }
}

const fn time((secs, nanos): (i64, u32)) -> Time {
    Time { secs, nanos }
}

const fn kind(kind: Kind) -> hikyaku_store::Kind {
    match kind {
        Kind::File => hikyaku_store::Kind::File,
        Kind::Dir => hikyaku_store::Kind::Dir,
        Kind::Link => hikyaku_store::Kind::Link,
        Kind::Special => hikyaku_store::Kind::Special,
    }
}

fn refused(way: InTheWay, path: &PeerPath) -> FsError {
    match way {
        InTheWay::Directory => FsError::is_dir(path.as_bytes()),
        InTheWay::NoDirectory => FsError::is_no_dir(path.as_bytes()),
        InTheWay::Special => FsError::is_special(path.as_bytes()),
        InTheWay::File => FsError::io("write", path.as_bytes(), &rustix::io::Errno::EXIST.into()),
    }
}

/// The result of a dry run for an entry.
enum Would {
    /// A file or link would be written.
    Write,
    /// It would stay, or is a directory.
    Nothing,
    /// It could not be made.
    Fail(InTheWay),
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
