//! Listings by pages. A server sends a whole directory at once: the entries behind a page are kept for the next call, and
//! requested again if another directory was listed meanwhile.

use crate::convert::{found, kind, reason};
use crate::ftp::Ftp;
use hikyaku_fs::{Name, Token};
use hikyaku_gridftp::{Facts, FtpError, Listed};
use hikyaku_store::{Cursor, Doing, ErrorKind, Item, Kind, Page, Result, StorePath, doing};

/// The entries of a directory behind a page, in the order of their names.
pub(crate) struct Rest {
    dir: StorePath,
    /// The last name of the page.
    after: Vec<u8>,
    items: Vec<Item>,
}

/// A whole directory.
pub(crate) struct Listing {
    /// Its entries, each with its path.
    pub(crate) entries: Vec<(Name, StorePath, Facts)>,
    /// The number of entries whose names cannot be used.
    pub(crate) skipped: u64,
}

impl Listing {
    fn new(dir: &StorePath, listed: Vec<Listed>) -> Self {
        let (mut entries, mut skipped) = (Vec::with_capacity(listed.len()), 0);
        for Listed { name, facts } in listed {
            match name.ok().and_then(|name| Some((dir.join(&name).ok()?, name))) {
                Some((_, name)) if Token::of(&name).is_some() => {}
                Some((path, name)) => entries.push((name, path, facts)),
                None => skipped += 1,
            }
        }
        entries.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        entries.dedup_by(|a, b| a.0 == b.0);
        Self { entries, skipped }
    }
}

impl Ftp {
    /// A page of a directory: the entries in the order of their names, behind `after`.
    pub(crate) fn page(
        &self,
        doing: Doing<'_>,
        after: Option<&Cursor>,
        room: usize,
    ) -> Result<Page> {
        let (dir, room) = (doing.path(), room.max(1));
        let kept = after.and_then(|Cursor(after)| {
            self.rest().take_if(|rest| rest.dir == *dir && rest.after == *after)
        });
        let (mut items, skipped) = match kept {
            Some(rest) => (rest.items, 0),
            None => {
                let (mut items, skipped) = self.all_of(doing)?;
                if let Some(Cursor(after)) = after {
                    items.retain(|item| item.name.as_bytes() > after.as_slice());
                }
                // They were counted with the first page.
                (items, if after.is_none() { skipped } else { 0 })
            }
        };
        let behind = items.split_off(room.min(items.len()));
        let last = items.last().filter(|_| !behind.is_empty());
        let next = last.map(|item| Cursor(item.name.as_bytes().to_vec()));
        if let Some(Cursor(after)) = &next {
            *self.rest() = Some(Rest { dir: dir.clone(), after: after.clone(), items: behind });
        }
        Ok(Page { items, next, skipped })
    }

    /// All entries of a directory, and the number of those whose names cannot be used.
    fn all_of(&self, doing: Doing<'_>) -> Result<(Vec<Item>, u64)> {
        let dir = doing.path();
        let listed = self.listed(dir);
        let Listing { entries, skipped } = listed.or_else(|error| self.not_listed(dir, &error))?;
        // A server that lists a file names the file itself.
        if entries.len() as u64 + skipped == 1 && kind(&self.facts(doing)?) != Kind::Dir {
            return doing.fail(ErrorKind::NotDir);
        }
        let item = |(name, path, facts): (Name, StorePath, Facts)| Item {
            found: found(&facts, &path),
            name,
        };
        Ok((entries.into_iter().map(item).collect(), skipped))
    }

    /// The entries of a directory in the order of their names. Unfinished files are left out.
    pub(crate) fn listed(&self, dir: &StorePath) -> std::result::Result<Listing, FtpError> {
        let full = self.full(dir);
        self.with(|channel| channel.list(&full)).map(|listed| Listing::new(dir, listed))
    }

    /// Lists several directories, which are requested together.
    pub(crate) fn listed_each(
        &self,
        dirs: &[StorePath],
    ) -> std::result::Result<Vec<std::result::Result<Listing, FtpError>>, FtpError> {
        let full: Vec<_> = dirs.iter().map(|dir| self.full(dir)).collect();
        let all = self.with(|channel| channel.list_each(&full))?;
        let listing = |(listed, dir): (std::result::Result<_, _>, _)| {
            listed.map(|listed| Listing::new(dir, listed))
        };
        Ok(all.into_iter().zip(dirs).map(listing).collect())
    }

    /// The failure to list a directory. A file is no directory, whatever the server calls it.
    pub(crate) fn not_listed<T>(&self, dir: &StorePath, error: &FtpError) -> Result<T> {
        let (doing, listed) = (doing("list", dir), reason(error));
        if listed.is_away() {
            return doing.fail(listed);
        }
        doing.fail(match kind(&self.facts(doing)?) {
            Kind::File => ErrorKind::NotDir,
            Kind::Special => ErrorKind::Link,
            _ => listed,
        })
    }
}
