//! Directories that the server has reported to be directories, and no symbolic links.
//!
//! The server follows a link in the middle of a path, so the store asks for the metadata of each directory above a name.
//! It asks once: a directory stays known until the store itself changes it, or a request in it fails.

use crate::convert::{kind, reason};
use crate::listing::Listing;
use crate::store::Sftp;
use hikyaku_sftp::{Asked, Attributes, Failed, Request, Status};
use hikyaku_store::{ErrorKind, Kind, StorePath};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Directories that are remembered.
const KNOWN_MAX: usize = 1 << 16;

/// If at least this number of names are in one directory, the directory is listed. Otherwise each name is one request.
const NAMES_MIN: usize = 16;
/// Entries that are listed for any number of names, and for each name. If a directory has more, its names are looked at.
const ENTRIES_MIN: usize = 1000;
const ENTRIES_A_NAME: usize = 8;

/// Directories that are known.
#[derive(Default)]
pub(crate) struct Known(Mutex<HashSet<StorePath>>);

impl Known {
    fn all(&self) -> MutexGuard<'_, HashSet<StorePath>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has(&self, dir: &StorePath) -> bool {
        dir == &StorePath::ROOT || self.all().contains(dir)
    }

    /// Adds a directory, if its own directory is known.
    pub(crate) fn add(&self, dir: &StorePath) {
        let mut all = self.all();
        if all.len() >= KNOWN_MAX {
            all.clear();
        }
        let above = dir.split().map(|(above, _)| above);
        if above.is_some_and(|above| above == StorePath::ROOT || all.contains(&above)) {
            all.insert(dir.clone());
        }
    }

    /// Removes a directory and everything below it. Nothing is known below a directory that is not known itself.
    pub(crate) fn forget(&self, dir: &StorePath) {
        let mut all = self.all();
        if all.remove(dir) {
            let prefix = [dir.as_bytes(), b"/"].concat();
            all.retain(|path| !path.as_bytes().starts_with(&prefix));
        }
    }
}

/// Metadata of names, and of the directories above them that were not known.
pub(crate) struct Looked<'a> {
    store: &'a Sftp,
    answers: HashMap<StorePath, Asked<Attributes>>,
}

impl Sftp {
    /// Requests the metadata of `paths` and of the unknown directories above them, in one round trip.
    pub(crate) fn looked<'b>(&self, paths: impl IntoIterator<Item = &'b StorePath>) -> Looked<'_> {
        self.looked_both(paths, [])
    }

    /// Requests the metadata of the unknown directories above `path`. Nothing is sent if all of them are known.
    pub(crate) fn looked_above(&self, path: &StorePath) -> Looked<'_> {
        self.looked_both([], [path])
    }

    /// Requests the metadata of `paths` and of the unknown directories above them and above `others`.
    pub(crate) fn looked_both<'b>(
        &self,
        paths: impl IntoIterator<Item = &'b StorePath>,
        others: impl IntoIterator<Item = &'b StorePath>,
    ) -> Looked<'_> {
        let mut wanted = BTreeSet::new();
        for path in paths {
            wanted.insert(path.clone());
            self.add_unknown(path, &mut wanted);
        }
        others.into_iter().for_each(|path| self.add_unknown(path, &mut wanted));
        self.answered(wanted)
    }

    /// Requests the metadata of `path` and of all directories above it, known or not.
    pub(crate) fn looked_anew(&self, path: &StorePath) -> Looked<'_> {
        let (mut wanted, mut above) = (BTreeSet::new(), Some(path.clone()));
        while let Some(path) = above.take_if(|path| path != &StorePath::ROOT) {
            above = path.split().map(|(dir, _)| dir);
            wanted.insert(path);
        }
        self.answered(wanted)
    }

    fn add_unknown(&self, path: &StorePath, wanted: &mut BTreeSet<StorePath>) {
        let mut above = path.split();
        while let Some((dir, _)) = above.take_if(|(dir, _)| !self.inner.known.has(dir)) {
            above = dir.split();
            wanted.insert(dir);
        }
    }

    fn answered(&self, mut wanted: BTreeSet<StorePath>) -> Looked<'_> {
        let mut known = self.inner.ahead.take(&mut wanted);
        known.extend(self.listed(&mut wanted));
        let paths: Vec<_> = wanted.iter().map(|path| self.at(path)).collect();
        let requests: Vec<_> = paths.iter().map(|path| Request::LStat(path)).collect();
        let begin = Instant::now();
        let answers = self.inner.client.all(&requests);
        if !requests.is_empty() {
            self.inner.round_trip.get_or_init(|| begin.elapsed());
        }
        let answers = answers.into_iter().map(|answer| answer.attributes());
        Looked { store: self, answers: wanted.into_iter().zip(answers).chain(known).collect() }
    }

    /// The metadata of many names of one directory, by a list of the directory. They are taken from `wanted`.
    fn listed(&self, wanted: &mut BTreeSet<StorePath>) -> Vec<(StorePath, Asked<Attributes>)> {
        let mut dirs: HashMap<StorePath, usize> = HashMap::new();
        for (dir, _) in wanted.iter().filter_map(StorePath::split) {
            *dirs.entry(dir).or_default() += 1;
        }
        let many = dirs.into_iter().filter(|(_, names)| *names >= NAMES_MIN);
        let lists = many.filter_map(|(dir, names)| {
            let entries = self.entries(&dir, ENTRIES_MIN.max(names * ENTRIES_A_NAME))?;
            Some((dir, entries))
        });
        let lists: HashMap<StorePath, HashMap<Vec<u8>, Attributes>> = lists.collect();
        let mut found = Vec::new();
        if !lists.is_empty() {
            wanted.retain(|path| {
                let Some((dir, name)) = path.split() else { return true };
                let Some(entries) = lists.get(&dir) else { return true };
                let absent = || Failed::Refused { status: Status::NoSuchFile, text: String::new() };
                let entry = entries.get(name.as_bytes()).copied();
                found.push((path.clone(), entry.ok_or_else(absent)));
                false
            });
        }
        found
    }

    /// The entries of a directory by their names; `None` if the directory has more than `most` entries, the listing fails, or
    /// metadata are missing.
    fn entries(&self, dir: &StorePath, most: usize) -> Option<HashMap<Vec<u8>, Attributes>> {
        let mut listing = Listing::open(self, dir).ok()?;
        let mut all = HashMap::new();
        let whole = loop {
            match listing.next(self) {
                Ok(Some(entries)) => {
                    all.extend(entries.into_iter().map(|entry| (entry.name, entry.attributes)));
                }
                Ok(None) => break true,
                Err(_) => break false,
            }
            if all.len() > most {
                break false;
            }
        };
        listing.close(self);
        let is_told = |found: &Attributes| {
            kind(found).is_some() && found.size.is_some() && found.times.is_some()
        };
        (whole && all.values().all(is_told)).then_some(all)
    }
}

impl Looked<'_> {
    /// Checks that a path is a directory that no link leads to.
    pub(crate) fn dir(&self, path: &StorePath) -> Result<(), ErrorKind> {
        let known = &self.store.inner.known;
        if !self.answers.contains_key(path) && known.has(path) {
            return Ok(());
        }
        let is_dir = self.entry(path).and_then(|entry| match kind(&entry) {
            Some(Kind::Dir) => Ok(()),
            Some(Kind::Link) => Err(ErrorKind::Link),
            Some(Kind::File | Kind::Special) => Err(ErrorKind::NotDir),
            None => Err(ErrorKind::Unexplained),
        });
        match is_dir {
            Ok(()) => known.add(path),
            Err(_) => known.forget(path),
        }
        is_dir
    }

    /// Checks the directories above a path.
    pub(crate) fn above(&self, path: &StorePath) -> Result<(), ErrorKind> {
        path.split().map_or(Ok(()), |(dir, _)| self.dir(&dir))
    }

    /// The metadata of a path that is reached through directories only.
    pub(crate) fn entry(&self, path: &StorePath) -> Result<Attributes, ErrorKind> {
        self.above(path)?;
        match self.answers.get(path) {
            Some(Ok(attributes)) => Ok(*attributes),
            Some(Err(failed)) => Err(reason(failed)),
            None => Err(ErrorKind::Unexplained),
        }
    }
}
