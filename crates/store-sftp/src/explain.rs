//! Reasons of failed requests. Version 3 has one code for nearly all of them, so the store looks at the names.

use crate::convert::{kind, reason};
use crate::known::Looked;
use crate::listing::Listing;
use crate::store::Sftp;
use hikyaku_sftp::Failed;
use hikyaku_store::{ErrorKind, Kind, Replace, StorePath};
use rustix::io::Errno;
use std::ops::ControlFlow;

impl Sftp {
    /// The kind of the entry at a path, asked anew.
    fn kind_anew(&self, path: &StorePath) -> Result<Option<Kind>, ErrorKind> {
        self.looked_anew(path).entry(path).map(|attributes| kind(&attributes))
    }

    /// Why an entry that exists was not read or changed.
    pub(crate) fn why_not_used(&self, path: &StorePath, failed: &Failed) -> ErrorKind {
        match (reason(failed), failed.is_end()) {
            (ErrorKind::NotFound | ErrorKind::Unexplained, false) => {
                self.kind_anew(path).err().unwrap_or_else(|| reason(failed))
            }
            (reason, _) => reason,
        }
    }

    /// Why a new entry was not made. It was looked at after that.
    pub(crate) fn why_not_made(
        &self,
        path: &StorePath,
        looked: &Looked<'_>,
        failed: &Failed,
    ) -> ErrorKind {
        if looked.entry(path).is_ok() {
            return ErrorKind::Exists;
        }
        match self.kind_anew(path) {
            Ok(_) => ErrorKind::Exists,
            Err(ErrorKind::NotFound) => reason(failed),
            Err(other) => other,
        }
    }

    /// Why no draft of the file at a path was made.
    pub(crate) fn why_no_draft(&self, path: &StorePath, failed: &Failed) -> ErrorKind {
        if failed.is_end() {
            return reason(failed);
        }
        self.looked_anew(path).above(path).err().unwrap_or_else(|| reason(failed))
    }

    /// Why an entry of this kind was not removed.
    pub(crate) fn why_not_removed(
        &self,
        path: &StorePath,
        wanted: Kind,
        failed: &Failed,
    ) -> ErrorKind {
        if failed.is_end() {
            return reason(failed);
        }
        match (self.kind_anew(path), wanted) {
            (Err(other), _) => other,
            (Ok(Some(Kind::Dir)), Kind::Dir) if self.has_entries(path) => ErrorKind::NotEmpty,
            (Ok(Some(Kind::Dir)), Kind::Dir) => reason(failed),
            (Ok(Some(Kind::Dir)), _) => ErrorKind::IsDir,
            (Ok(_), Kind::Dir) => ErrorKind::NotDir,
            (Ok(_), _) => reason(failed),
        }
    }

    /// Why an entry was not renamed.
    pub(crate) fn why_not_renamed(
        &self,
        (from, to): (&StorePath, &StorePath),
        replace: Replace,
        failed: &Failed,
    ) -> ErrorKind {
        if failed.is_end() {
            return reason(failed);
        }
        let source = match self.kind_anew(from) {
            Err(other) => return other,
            Ok(source) => source,
        };
        if is_below(from, to) {
            return ErrorKind::of(Errno::INVAL);
        }
        self.why_not_named(to, source, replace, failed)
    }

    /// Why an entry of this kind did not get the name `to`.
    pub(crate) fn why_not_named(
        &self,
        to: &StorePath,
        source: Option<Kind>,
        replace: Replace,
        failed: &Failed,
    ) -> ErrorKind {
        if failed.is_end() {
            return reason(failed);
        }
        let is_dir = source == Some(Kind::Dir);
        match self.kind_anew(to) {
            Err(ErrorKind::NotFound) => reason(failed),
            Err(other) => other,
            Ok(_) if replace == Replace::Never => ErrorKind::Exists,
            Ok(Some(Kind::Dir)) if !is_dir => ErrorKind::IsDir,
            Ok(Some(Kind::Dir)) if self.has_entries(to) => ErrorKind::NotEmpty,
            Ok(Some(Kind::File | Kind::Link | Kind::Special)) if is_dir => ErrorKind::NotDir,
            // The server has no request that replaces an entry.
            Ok(_) if !self.replaces() => ErrorKind::Exists,
            Ok(_) => reason(failed),
        }
    }

    /// Why bytes were not written: the server may be out of space.
    pub(crate) fn why_not_written(&self, failed: &Failed) -> ErrorKind {
        match reason(failed) {
            ErrorKind::Unexplained => {
                let space = self.inner.client.space(&self.inner.root);
                let is_full = space.is_ok_and(|space| space.available == 0);
                if is_full { ErrorKind::NoSpace } else { ErrorKind::Unexplained }
            }
            reason => reason,
        }
    }

    /// Whether a directory has an entry, a draft among them.
    fn has_entries(&self, dir: &StorePath) -> bool {
        let Ok(mut listing) = Listing::open(self, dir) else { return false };
        let mut has_entry = false;
        while let Ok(Some(entries)) = listing.next(self) {
            let listed = entries.iter().try_for_each(|entry| match &entry.name[..] {
                b"." | b".." => ControlFlow::Continue(()),
                _ => ControlFlow::Break(()),
            });
            if listed.is_break() {
                has_entry = true;
                break;
            }
        }
        listing.close(self);
        has_entry
    }
}

/// Whether `to` is below `from`.
fn is_below(from: &StorePath, to: &StorePath) -> bool {
    let mut names = to.names();
    from.names().all(|name| names.next() == Some(name)) && names.next().is_some()
}
