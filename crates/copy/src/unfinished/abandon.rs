//! Drops a copy: what is unfinished of it, and its journal.

use super::partial_path;
use hikyaku_fs::{Dir, FsError, Kind, Name, PeerPath, Shown, Token, remove_unfinished};
use hikyaku_job::{Held, Journaled, Known, NotHeld, Unfinished, kind_of_fs_error};
use hikyaku_store::{ErrorKind, Store, StorePath, Token as DraftToken};
use hikyaku_stores::{Location, Opening, open};
use hikyaku_transfer::{FailureKind, Part, Remains};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What came of dropping a copy.
#[derive(Default)]
pub(super) struct Dropped {
    pub(super) became: Became,
    /// Files that were removed, and the room that they took.
    pub(super) files: u64,
    pub(super) freed: u64,
    /// What a person may want to know.
    pub(super) remarks: Vec<String>,
    pub(super) failures: Vec<(FailureKind, String)>,
}

/// What became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Became {
    /// Nothing is left of it that could go on.
    #[default]
    Dropped,
    /// It is as it was, and why is told.
    Kept,
    /// It had come to its end.
    Gone,
}

/// Drops it, unless it is under way. Its journal goes last: as long as it is there the same can be tried
/// again.
pub(super) fn abandon(copy: &Unfinished) -> Dropped {
    let mut dropped = Dropped::default();
    let shown = Shown::new(copy.path.as_os_str().as_bytes()).to_string();
    let held = match Held::hold(&copy.path) {
        Ok(Ok(held)) => held,
        Ok(Err(NotHeld::Gone)) => return Dropped { became: Became::Gone, ..dropped },
        Ok(Err(NotHeld::UnderWay)) => {
            let target = super::told::name(copy);
            let text = format!("{target}: its copy is under way; end that first");
            dropped.failures.push((FailureKind::Busy, text));
            return Dropped { became: Became::Kept, ..dropped };
        }
        Err(error) => {
            dropped.failures.push((kind_of_fs_error(&error), error.to_string()));
            return Dropped { became: Became::Kept, ..dropped };
        }
    };
    match &held.content {
        Journaled::Known(known) => dropped.remove_files(known),
        Journaled::Earlier(files) if !files.is_empty() => {
            dropped
                .remarks
                .push(format!("{shown} does not say where its unfinished files are: they stay"));
        }
        Journaled::Earlier(_) | Journaled::Unreadable(_) => {}
    }
    if dropped.became == Became::Dropped
        && let Err(error) = held.remove()
    {
        dropped.fail(&error);
    }
    dropped
}

impl Dropped {
    fn remove_files(&mut self, known: &Known) {
        match super::address(known) {
            Some(address) => self.remove_at(&address, known),
            None => self.remove_here(known),
        }
    }

    /// Removes the unfinished files of a copy into another storage.
    fn remove_at(&mut self, address: &str, known: &Known) {
        let opened = Location::parse(OsStr::new(address))
            .map_err(|error| (FailureKind::BadName, error.to_string()))
            .and_then(|location| {
                open(&location, &Opening::default())
                    .map_err(|error| (FailureKind::Busy, format!("{address}: {error}")))
            });
        match opened {
            Ok(opened) => opened.holders.iter().for_each(|one| self.remove_in(&*one.store, known)),
            Err(failure) => {
                self.became = Became::Kept;
                self.failures.push(failure);
            }
        }
    }

    /// Removes the unfinished files that a store has.
    pub(super) fn remove_in(&mut self, store: &dyn Store, known: &Known) {
        for (path, remains) in &known.files {
            let partial = match remains {
                Remains::Part(Part { record, .. }) | Remains::Void(record) => &record.partial,
                Remains::Whole(_) => continue,
            };
            let Ok(path) = StorePath::new(path) else { continue };
            match store.take_up(&path, &DraftToken(partial.clone())) {
                Ok(draft) => {
                    draft.discard();
                    self.files += 1;
                }
                Err(error) if error.kind == ErrorKind::NotFound => {}
                Err(error) => {
                    self.became = Became::Kept;
                    self.failures.push((error.kind.into(), error.to_string()));
                }
            }
        }
    }

    fn remove_here(&mut self, known: &Known) {
        let base = PathBuf::from(OsStr::from_bytes(&known.begun.dir));
        let dir = match Dir::open(&base) {
            Ok(dir) => dir,
            Err(error) if error.errno() == Some(Errno::NOENT) => {
                let shown = Shown::new(&known.begun.dir).to_string();
                self.remarks.push(format!(
                    "{shown} does not exist; should it appear again, its unfinished files stay"
                ));
                return;
            }
            Err(error) => return self.fail(&error),
        };
        for (path, remains) in &known.files {
            let partial = match remains {
                Remains::Part(Part { record, .. }) | Remains::Void(record) => &record.partial,
                Remains::Whole(_) => continue,
            };
            if let (Ok(path), Ok(partial)) = (PeerPath::new(path), Name::new(partial)) {
                self.remove_known((&dir, &base), &path, (&partial, known.token));
            }
        }
        let tops = known.files.keys().filter_map(|path| path.split(|&byte| byte == b'/').next());
        let tops: BTreeSet<&[u8]> = tops.chain(known.begun.name.as_deref()).collect();
        // Not every unfinished file is in the journal: small ones are not. All have the copy's token.
        let mut open: Vec<Option<PeerPath>> = vec![None];
        open.extend(tops.into_iter().filter_map(|name| PeerPath::new(name).ok()).map(Some));
        while let Some(path) = open.pop() {
            self.sweep((&dir, &base), path.as_ref(), known.token, &mut open);
        }
    }

    /// Removes an unfinished file of which the journal tells.
    fn remove_known(
        &mut self,
        (top, base): (&Dir, &Path),
        path: &PeerPath,
        (partial, token): (&Name, Token),
    ) {
        let place = partial_path(base, path.as_bytes(), partial.as_bytes());
        if *partial == path.name() {
            let shown = Shown::new(place.as_os_str().as_bytes());
            self.remarks.push(format!("{shown} was being written in place, and stays as it is"));
        } else if Token::of(partial) == Some(token) {
            match top.parent(path) {
                Ok((dir, _)) => self.remove(&dir, (partial, &place)),
                Err(error) if error.errno() == Some(Errno::NOENT) => {}
                Err(error) => self.fail(&error.about(place.as_os_str().as_bytes())),
            }
        }
    }

    /// Removes what is unfinished in a directory, and remembers the directories in it.
    fn sweep(
        &mut self,
        (top, base): (&Dir, &Path),
        path: Option<&PeerPath>,
        token: Token,
        open: &mut Vec<Option<PeerPath>>,
    ) {
        let dir = path.map_or_else(|| top.again(), |path| top.dir(path));
        let listed = dir.and_then(|dir| Ok((dir.entries()?, dir)));
        // It may be gone, a file, a link, or not ours to look into: nothing of the copy is in it.
        let Ok((entries, dir)) = listed else { return };
        for entry in entries {
            if Token::of(&entry.name) == Some(token) {
                let path = path.map_or(&b""[..], PeerPath::as_bytes);
                let place = base.join(OsStr::from_bytes(path)).join(entry.name.as_os_str());
                self.remove(&dir, (&entry.name, &place));
            } else if let Some(path) = path
                && entry.kind.or_else(|| Some(dir.meta(&entry.name).ok()??.kind)) == Some(Kind::Dir)
                && let Ok(below) = path.join(&entry.name)
            {
                open.push(Some(below));
            }
        }
    }

    /// Removes an unfinished file that nobody writes to.
    fn remove(&mut self, dir: &Dir, (name, place): (&Name, &Path)) {
        let about = |error: FsError| error.about(place.as_os_str().as_bytes());
        let meta = match dir.meta(name) {
            Ok(Some(meta)) => meta,
            Ok(None) => return,
            Err(error) => return self.fail(&about(error)),
        };
        let removed = match meta.kind {
            // Links are made under another name first, too.
            Kind::Link => dir.remove_file(name).map(|()| 0),
            Kind::File | Kind::Dir | Kind::Special => remove_unfinished(dir, name),
        };
        match removed {
            Ok(freed) => {
                self.files += 1;
                self.freed += freed;
            }
            Err(error) => self.fail(&about(error)),
        }
    }

    fn fail(&mut self, error: &FsError) {
        self.became = Became::Kept;
        self.failures.push((kind_of_fs_error(error), error.to_string()));
    }
}
