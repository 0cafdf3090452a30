//! All objects below a path, a thousand at a time.

use crate::connect::S3;
use crate::error::S3Error;
use crate::key::{key, prefix};
use crate::objects::{Depth, Head, PAGE_ROOM, Page, dir};
use crate::reply::Object;
use futures_util::{StreamExt, TryStreamExt, stream};
use hikyaku_store::{Entry, ErrorKind, Found, Kind, StoreError, StorePath};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

/// The contents of a bucket at and below a path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Survey {
    /// By path below the root of the bucket: files, and directories that a key names or that files are in. A path may be
    /// one that no file can have.
    pub(crate) all: BTreeMap<Vec<u8>, Found>,
    /// Paths of directories that are also keys of objects, as `a` is beside `a/b`: a file system has one of the two.
    pub(crate) doubles: BTreeSet<Vec<u8>>,
}

/// The rules of walks of a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Walks {
    /// The meaning of the path at which a walk begins.
    pub meant: Meant,
    /// The times of the files.
    pub times: Times,
}

/// The meaning of a path: a bucket may have both an object and a directory of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Meant {
    /// The object; a directory, if there is no object.
    #[default]
    Object,
    /// The directory; an object, if nothing is in the directory.
    Directory,
}

/// Which times of files are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Times {
    /// The times of their uploads, from the listing.
    #[default]
    Written,
    /// Those of the files that were copied there, as far as the writer noted them (`x-amz-meta-mtime`). Each file costs a
    /// request.
    Noted,
}

/// Names that one survey may have: some 2 GB of memory with long paths.
const NAMES_MAX: usize = 10_000_000;
/// Requests for noted times at once.
const HEADS: usize = 32;

impl Object {
    fn head(&self) -> Head {
        let (size, e_tag) = (self.size, self.e_tag.clone());
        Head { size, e_tag, written: self.written, modified: None }
    }

    /// The object as an entry of a store.
    pub(crate) fn found(&self) -> Found {
        self.head().found(&self.key)
    }
}

impl S3 {
    /// The meaning of a path that may be an object or a directory.
    ///
    /// # Errors
    ///
    /// It is both, or the bucket cannot be read.
    pub fn only(&self, path: &StorePath) -> Result<Meant, S3Error> {
        let (key, prefix) = names(path)?;
        let wire = &self.inner.wire;
        if key.is_empty() || self.inner.wait(wire.head(&key))?.is_none() {
            return Ok(Meant::Directory);
        }
        match self.inner.wait(wire.has_any(&prefix))? {
            false => Ok(Meant::Object),
            true => Err(S3Error::Here(format!(
                "is an object and a directory; '{prefix}' means the directory, and '{key}' without -r the object"
            ))),
        }
    }

    /// Everything at and below `root`.
    ///
    /// # Errors
    ///
    /// The path does not exist (`NotFound`), or the bucket cannot be listed.
    pub(crate) fn survey(&self, root: &StorePath) -> Result<Survey, S3Error> {
        let (Walks { meant, times }, (key, prefix)) = (self.walks, names(root)?);
        let mut survey = self.inner.wait(self.all((&key, &prefix), meant))?;
        if times == Times::Noted {
            self.inner.wait(self.noted(&mut survey))?;
        }
        Ok(survey)
    }

    async fn all(&self, (key, prefix): (&str, &str), meant: Meant) -> Result<Survey, S3Error> {
        let (wire, mut survey) = (&self.inner.wire, Survey::default());
        if meant == Meant::Object && self.add_object(key, &mut survey).await? {
            return Ok(survey);
        }
        let mut after: Option<String> = None;
        loop {
            let after_last = after.as_deref();
            let page = Page { prefix, depth: Depth::All, room: PAGE_ROOM, after: after_last };
            let listing = wire.list(&page).await?;
            for object in listing.objects.iter().filter(|object| object.key.starts_with(prefix)) {
                survey.add(object, key);
            }
            if survey.all.len() > NAMES_MAX {
                return Err(S3Error::Here(format!(
                    "more than {NAMES_MAX} objects are below '{key}'"
                )));
            }
            match listing.next {
                Some(next) if after.as_ref() == Some(&next) => {
                    return Err(S3Error::Broken("a listing goes in circles"));
                }
                Some(next) => after = Some(next),
                None => break,
            }
        }
        let is_missing = survey.all.is_empty() && !key.is_empty();
        let is_object = meant == Meant::Directory && is_missing;
        if is_missing && !(is_object && self.add_object(key, &mut survey).await?) {
            let (code, message) = ("NoSuchKey".to_owned(), "nothing has this name".to_owned());
            return Err(S3Error::Refused { status: 404, code, message, region: None });
        }
        Ok(survey)
    }

    /// Adds the object of this key, if there is one.
    async fn add_object(&self, key: &str, survey: &mut Survey) -> Result<bool, S3Error> {
        if key.is_empty() {
            return Ok(false);
        }
        let head = self.inner.wire.head(key).await?;
        let found = head.map(|head| head.found(key));
        let is_there = found.is_some();
        survey.all.extend(found.map(|found| (key.as_bytes().to_vec(), found)));
        Ok(is_there)
    }

    /// Asks for the times that the writers have noted.
    async fn noted(&self, survey: &mut Survey) -> Result<(), S3Error> {
        let files = survey.all.iter_mut().filter(|(_, found)| found.version.is_some());
        let heads = files.map(|(path, found)| async move {
            let key = String::from_utf8_lossy(path);
            // An object that is gone or changed is noticed when it is read.
            if let Some(head) = self.inner.wire.head(&key).await?
                && head.version() == found.version
            {
                found.modified = head.modified.unwrap_or(found.modified);
            }
            Ok(())
        });
        stream::iter(heads).buffer_unordered(HEADS).try_collect().await
    }
}

/// The key of a path, and the prefix of the keys below it.
fn names(path: &StorePath) -> Result<(String, String), S3Error> {
    let name = |kind: ErrorKind| S3Error::Here(kind.to_string());
    Ok((key(path).map_err(name)?, prefix(path).map_err(name)?))
}

impl Survey {
    /// Passes everything on for a walk of `root`, until `each` breaks. The order of the paths has each directory before its
    /// entries.
    pub(crate) fn pass_on(
        mut self,
        root: &StorePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) {
        if root == &StorePath::ROOT {
            self.all.insert(Vec::new(), dir(""));
        }
        for (key, found) in self.all {
            let entry = match StorePath::new(&key) {
                Ok(path) => Entry::new(path, Ok(found), None),
                Err(_) => Entry::of_bad_name(&above(&key)),
            };
            let double = self.doubles.contains(&key).then(|| hidden(&entry.path));
            if each(entry).is_break() || double.is_some_and(|entry| each(entry).is_break()) {
                return;
            }
        }
    }

    fn add(&mut self, object: &Object, root: &str) {
        let path = object.key.strip_suffix('/').unwrap_or(&object.key);
        // An empty marker is a directory; one with bytes is a file with an impossible name, and reported as such.
        let is_marker = path.len() < object.key.len() && object.size == 0;
        if is_marker {
            self.add_dir(path);
        } else {
            self.add_file(object);
        }
        if StorePath::new(path.as_bytes()).is_err() {
            return;
        }
        let mut above = path;
        while let Some((parent, _)) = above.rsplit_once('/')
            && parent.len() >= root.len()
            && self.add_dir(parent)
        {
            above = parent;
        }
    }

    /// Whether the directory is new.
    fn add_dir(&mut self, path: &str) -> bool {
        let key = path.as_bytes();
        match self.all.get(key).map(|found| found.kind) {
            Some(Kind::Dir) => false,
            before => {
                if before.is_some() {
                    self.doubles.insert(key.to_vec());
                }
                self.all.insert(key.to_vec(), dir(path));
                true
            }
        }
    }

    fn add_file(&mut self, object: &Object) {
        let key = object.key.as_bytes();
        if self.all.contains_key(key) {
            self.doubles.insert(key.to_vec());
        } else {
            self.all.insert(key.to_vec(), object.found());
        }
    }
}

/// The innermost directory of a key that no path can have.
fn above(key: &[u8]) -> StorePath {
    let slashes = key.iter().enumerate().rev().filter(|(_, byte)| **byte == b'/');
    let above = slashes.map(|(end, _)| StorePath::new(&key[..end]));
    above.flatten().next().unwrap_or_default()
}

/// An object that has the name of a directory: a walk reports each path once, as the directory.
fn hidden(path: &StorePath) -> Entry {
    let error = StoreError::new("read the object of this name", path, ErrorKind::IsDir);
    Entry::new(path.clone(), Err(error), None)
}

#[cfg(test)]
mod tests;
