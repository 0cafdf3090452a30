//! All objects below a path, a thousand at a time.

use crate::connect::S3;
use crate::error::S3Error;
use crate::key::{key, prefix};
use crate::objects::{Depth, Head, PAGE_ROOM, Page, dir};
use crate::reply::Object;
use futures_util::{StreamExt, TryStreamExt, stream};
use hikyaku_store::{ErrorKind, Found, StorePath};
use std::collections::BTreeMap;

/// What a bucket has at and below a path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Survey {
    /// By path below the root of the bucket: files, and directories that a key names or that files are in. A path may be
    /// one that no file can have.
    pub all: BTreeMap<Vec<u8>, Found>,
}

/// Which times of files are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Times {
    /// When they were written to the bucket, as the listing tells.
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

    /// The same as a store tells it.
    pub(crate) fn found(&self) -> Found {
        self.head().found(&self.key)
    }
}

impl S3 {
    /// Everything at and below `root`.
    ///
    /// # Errors
    ///
    /// Nothing is there (`NotFound`), or the bucket cannot be listed.
    pub fn survey(&self, root: &StorePath, times: Times) -> Result<Survey, S3Error> {
        let name = |kind: ErrorKind| S3Error::Here(kind.to_string());
        let (key, prefix) = (key(root).map_err(name)?, prefix(root).map_err(name)?);
        let mut survey = self.inner.wait(self.all(&key, &prefix))?;
        if times == Times::Noted {
            self.inner.wait(self.noted(&mut survey))?;
        }
        Ok(survey)
    }

    async fn all(&self, key: &str, prefix: &str) -> Result<Survey, S3Error> {
        let (wire, mut survey) = (&self.inner.wire, Survey::default());
        if !key.is_empty()
            && let Some(head) = wire.head(key).await?
        {
            survey.all.insert(key.as_bytes().to_vec(), head.found(key));
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
        if survey.all.is_empty() && !key.is_empty() {
            let (code, message) = ("NoSuchKey".to_owned(), "nothing has this name".to_owned());
            return Err(S3Error::Refused { status: 404, code, message, region: None });
        }
        Ok(survey)
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

impl Survey {
    fn add(&mut self, object: &Object, root: &str) {
        let path = object.key.strip_suffix('/').unwrap_or(&object.key);
        // A marker of no bytes is a directory; with bytes it is a file of a name that is none, and told as such.
        match path.len() < object.key.len() && object.size == 0 {
            true => self.all.entry(path.as_bytes().to_vec()).or_insert_with(|| dir(path)),
            false => {
                self.all.entry(object.key.as_bytes().to_vec()).or_insert_with(|| object.found())
            }
        };
        if StorePath::new(path.as_bytes()).is_err() {
            return;
        }
        let mut above = path;
        while let Some((parent, _)) = above.rsplit_once('/')
            && parent.len() >= root.len()
        {
            if self.all.contains_key(parent.as_bytes()) {
                break;
            }
            self.all.insert(parent.as_bytes().to_vec(), dir(parent));
            above = parent;
        }
    }
}
