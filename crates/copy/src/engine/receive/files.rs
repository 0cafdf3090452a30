//! Entries become directories, links and files.

use super::{Receiver, SMALL, Stopped};
use crate::engine::Existing;
use crate::engine::disk::Job;
use crate::engine::incoming::{Incoming, Plan};
use anyhow::anyhow;
use hikyaku_fs::{Dir, FsError, Kind, Manner, Meta, PeerPath, set_attribute};
use hikyaku_transfer::{Attribute, Entry, EntryKind, FileHash, FromReceiver, Geometry, Remains};
use std::sync::Arc;

/// Files that are over are forgotten when there are so many.
const MANY: usize = 256;

impl Receiver<'_> {
    pub(super) fn make_dir(&mut self, entry: &Entry) -> Result<(), FsError> {
        let Ok(path) = self.place(entry) else { return Ok(()) };
        let (dir, name) = self.landing.dir().parent(&path)?;
        let is_new = dir.meta(&name)?.is_none();
        let made = dir.make_dir(&name)?;
        if is_new {
            // An interrupted copy leaves it so; we must be able to write into it.
            Meta::set_mode(&made, self.mode(entry, None) | 0o700)?;
        }
        for attribute in self.attributes(entry) {
            if let Err(error) = set_attribute(&made, &attribute.name, &attribute.value) {
                self.disk.complain(path.as_bytes(), format!("{}: {error}", path.shown()));
            }
        }
        self.last_dir = Some((Some(path.clone()), Arc::new(made)));
        if is_new || self.disk.options.preserve {
            self.dirs.push((path, self.mode(entry, None), entry.modified));
        }
        Ok(())
    }

    pub(super) fn make_link(&self, entry: &Entry, to: &[u8]) -> Result<(), FsError> {
        let Ok(path) = self.place(entry) else { return Ok(()) };
        let (dir, name) = self.landing.dir().parent(&path)?;
        match dir.meta(&name)? {
            Some(old) if old.kind == Kind::Link && dir.read_link(&name)? == to => return Ok(()),
            Some(old) if old.kind != Kind::Dir => dir.remove_file(&name)?,
            _ => {}
        }
        dir.make_link(&name, to)
    }

    /// Says what would become of an entry.
    pub(super) fn rehearse(&mut self, entry: &Entry) -> Result<(), Stopped> {
        let path = self.place(entry)?;
        let found = self.landing.dir().parent(&path).and_then(|(dir, name)| dir.meta(&name));
        // Where the directory is not there yet, nothing is.
        let old = found.ok().flatten();
        let stays = entry.kind == EntryKind::Dir || old.is_some_and(|old| self.stays(entry, &old));
        if !stays {
            self.disk.meter.add_note(path.shown().to_string());
            self.say(&FromReceiver::Would { path: path.as_bytes().to_vec() })?;
        }
        Ok(())
    }

    /// Whether what is there is left alone.
    fn stays(&self, entry: &Entry, old: &Meta) -> bool {
        match self.disk.options.existing {
            Existing::Replaced => false,
            Existing::KeptIfNewer => old.modified >= entry.modified,
            Existing::Kept => true,
        }
    }

    pub(super) fn begin_file(&mut self, entry: &Entry, size: u64) -> Result<(), Stopped> {
        let path = self.place(entry)?;
        let Some(file) = Geometry::new(size) else {
            return Err(self.disk.fault.report(anyhow!("a file of {size} bytes")));
        };
        if self.files.contains_key(&entry.id) {
            return Err(self.disk.fault.report(anyhow!("the sender begins a file twice")));
        }
        self.disk.pending.add();
        if self.is_whole(&path, size, entry.modified) {
            return self.leave(size);
        }
        let left = match self.remains.remove(path.as_bytes()) {
            Some(Remains::Part(record, proven))
                if record.size == size && record.modified == entry.modified =>
            {
                Some((record, proven))
            }
            Some(other) => {
                // The source is another now.
                self.discard(path.as_bytes(), &other);
                None
            }
            None => None,
        };
        let begun = self.plan(entry, &path, size).and_then(|plan| match plan {
            Some(plan) => {
                Incoming::begin(entry.id, plan, file, left, self.landing.take_stream()).map(Some)
            }
            None => Ok(None),
        });
        match begun {
            Ok(Some((incoming, record))) => {
                self.disk.journal.append(record.as_slice());
                self.disk.meter.add_kept(incoming.kept());
                if self.files.len() >= MANY {
                    self.files.retain(|_, file| !file.is_over());
                }
                let incoming = Arc::new(incoming);
                self.disk.active.add(&incoming);
                self.files.insert(entry.id, incoming);
            }
            Ok(None) => self.leave(size)?,
            Err(error) => {
                self.disk.fail::<()>(path.as_bytes(), &error);
            }
        }
        Ok(())
    }

    /// Whether an earlier attempt has copied it, and the sender had not heard of that yet.
    fn is_whole(&self, path: &PeerPath, size: u64, modified: (i64, u32)) -> bool {
        let wanted = (size, modified);
        matches!(
            self.remains.get(path.as_bytes()),
            Some(Remains::Whole { size, modified, hash: Some(_) }) if (*size, *modified) == wanted
        )
    }

    /// What is there stays.
    fn leave(&self, bytes: u64) -> Result<(), Stopped> {
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
        let path = self.place(entry)?;
        if bytes.len() as u64 > SMALL {
            return Err(self.disk.fault.report(anyhow!("a small file that is none")));
        }
        self.disk.pending.add();
        if self.is_whole(&path, bytes.len() as u64, entry.modified) {
            return self.leave(bytes.len() as u64);
        }
        match self.plan(entry, &path, bytes.len() as u64) {
            Ok(Some(plan)) => {
                // The pool lives as long as this thread.
                let stream = self.landing.take_stream();
                let _ = self.jobs.send(Job::Small(plan, bytes.to_vec(), hash, stream));
            }
            Ok(None) => self.leave(bytes.len() as u64)?,
            Err(error) => {
                self.disk.fail::<()>(path.as_bytes(), &error);
            }
        }
        Ok(())
    }

    /// What becomes of a file; `None` if the one that is there stays.
    fn plan(&mut self, entry: &Entry, path: &PeerPath, size: u64) -> Result<Option<Plan>, FsError> {
        let dir = self.parent(path)?;
        let name = path.name();
        let old = dir.meta(&name)?;
        let manner = match &old {
            // Only the target itself can be one, as its user wrote it.
            _ if self.landing.is_stream() => Manner::Stream,
            Some(old) if self.stays(entry, old) => return Ok(None),
            Some(old) => match old.kind {
                Kind::Dir => return Err(FsError::is_dir(path.as_bytes())),
                Kind::Special => return Err(FsError::is_special(path.as_bytes())),
                Kind::File if self.disk.options.in_place => Manner::InPlace,
                Kind::File | Kind::Link => Manner::Renamed,
            },
            None => Manner::Renamed,
        };
        let mode = self.mode(entry, old.as_ref());
        let (path, modified) = (path.clone(), entry.modified);
        let attributes = self.attributes(entry).to_vec();
        Ok(Some(Plan { path, dir, name, mode, modified, size, attributes, manner }))
    }

    /// Those that were asked for.
    const fn attributes<'e>(&self, entry: &'e Entry) -> &'e [Attribute] {
        if self.disk.options.keep_attributes { entry.attributes.as_slice() } else { &[] }
    }

    /// The directory that holds `path`; the last one is kept open, for the next file is mostly there
    /// too.
    fn parent(&mut self, path: &PeerPath) -> Result<Arc<Dir>, FsError> {
        let parent = path.parent();
        if let Some((last, dir)) = &self.last_dir
            && *last == parent
        {
            return Ok(dir.clone());
        }
        let (dir, _) = self.landing.dir().parent(path)?;
        let dir = Arc::new(dir);
        self.last_dir = Some((parent, dir.clone()));
        Ok(dir)
    }

    /// scp's modes: the source's where they are kept; otherwise a file that was there keeps its own,
    /// and a new one has the source's without what the umask takes.
    fn mode(&self, entry: &Entry, old: Option<&Meta>) -> u32 {
        match old {
            _ if self.disk.options.preserve => entry.mode,
            Some(old) if old.kind == Kind::File => old.mode,
            _ => entry.mode & !self.umask,
        }
    }

    /// Modes and times of directories, the innermost first.
    pub(super) fn finish_dirs(&mut self) {
        let mut dirs = std::mem::take(&mut self.dirs);
        dirs.sort_by_key(|(path, ..)| std::cmp::Reverse(path.names().count()));
        for (path, mode, modified) in dirs {
            let dressed = self.landing.dir().dir(&path).and_then(|dir| {
                Meta::set_mode(&dir, mode)?;
                if self.disk.options.preserve {
                    Meta::set_modified(&dir, modified)?;
                }
                if self.disk.options.durable { dir.sync() } else { Ok(()) }
            });
            if let Err(error) = dressed {
                self.disk.complain(path.as_bytes(), error.to_string());
            }
        }
    }
}
