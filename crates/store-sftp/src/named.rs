//! The entry that a user has named by a path as the server takes it: all that is to be known of it, in one round trip.

use crate::convert::{kind, reason};
use crate::store::Sftp;
use hikyaku_fs::Name;
use hikyaku_sftp::{Asked, Attributes, Request};
use hikyaku_store::{ErrorKind, Kind, Last, StorePath};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};

/// The entry of a path that was typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// Its path in the store. No directory on it is a link.
    pub path: StorePath,
    /// Its kind; `None` if there is nothing.
    pub kind: Option<Kind>,
    /// The kind of the entry that it leads to, if it is a link; its own kind if not.
    pub end: Option<Kind>,
}

/// Metadata that the server was asked for before the store needs them. Each is used once, and none after a change.
#[derive(Default)]
pub(crate) struct Ahead(Mutex<HashMap<StorePath, Asked<Attributes>>>);

impl Ahead {
    fn add(&self, path: StorePath, asked: Asked<Attributes>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, asked);
    }

    /// The store makes or changes an entry.
    pub(crate) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Those of some of these paths, which are taken from `wanted`.
    pub(crate) fn take(
        &self,
        wanted: &mut BTreeSet<StorePath>,
    ) -> Vec<(StorePath, Asked<Attributes>)> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return Vec::new();
        }
        let mut found = Vec::new();
        wanted.retain(|path| {
            let known = all.remove_entry(path);
            let is_unknown = known.is_none();
            found.extend(known);
            is_unknown
        });
        found
    }
}

impl Sftp {
    /// The path in this store of a path as the server takes it: a relative one begins at the user's home directory.
    /// Links on the path are followed; a link that is its last name is followed only if `last` requests that. The file
    /// itself need not exist.
    ///
    /// # Errors
    ///
    /// The server cannot resolve it, or it is not below the root of the store (`BadName`).
    pub fn path_of(&self, typed: &[u8], last: Last) -> Result<StorePath, ErrorKind> {
        let resolved = |path: &[u8]| {
            let real = self.inner.client.name(&Request::RealPath(path));
            let real = real.map_err(|failed| reason(&failed))?;
            self.of_server(&real).ok_or(ErrorKind::BadName)
        };
        match Self::last_of(typed) {
            (dir, Some(name)) if last == Last::Kept => {
                resolved(dir)?.join(&name).map_err(|_| ErrorKind::BadName)
            }
            _ => resolved(typed),
        }
    }

    /// The directory of a path as the server takes it, and the last name in it; the path itself if it ends with none.
    fn last_of(typed: &[u8]) -> (&[u8], Option<Name>) {
        let named = typed.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let (dir, name) = typed.split_at(named);
        match Name::new(name) {
            Ok(name) if dir.is_empty() => (b".", Some(name)),
            Ok(name) => (dir, Some(name)),
            Err(_) => (typed, None),
        }
    }

    /// The path in this store of a path that the server has resolved: no directory on it is a link. `None` if it is not
    /// below the root.
    pub(crate) fn of_server(&self, real: &[u8]) -> Option<StorePath> {
        let is_root = self.inner.root.strip_suffix(b"/") == Some(real);
        let below = if is_root { Some(&b""[..]) } else { real.strip_prefix(&self.inner.root[..]) };
        let path = StorePath::new(below?).ok()?;
        let mut dir = StorePath::ROOT;
        for (name, _) in path.names().zip(1..path.names().count()) {
            dir = dir.join(&Name::new(name).ok()?).ok()?;
            self.inner.known.add(&dir);
        }
        Some(path)
    }

    /// The entry at a path as the server takes it: a relative one begins at the user's home directory. If it is a directory, the
    /// server is asked for the metadata of `names` in it as well: the next look at one of them sends nothing.
    ///
    /// # Errors
    ///
    /// The server cannot resolve the path, it is not below the root of the store (`BadName`), or the entry cannot be looked at.
    pub fn named(&self, typed: &[u8], names: &[Name]) -> Result<Named, ErrorKind> {
        let (dir, name) = Self::last_of(typed);
        let below: Vec<_> =
            names.iter().map(|name| [typed, b"/", name.as_bytes()].concat()).collect();
        let all = [Request::RealPath(dir), Request::LStat(typed), Request::Stat(typed)];
        let all: Vec<_> =
            all.into_iter().chain(below.iter().map(|path| Request::LStat(path))).collect();
        let mut answers = self.inner.client.all(&all).into_iter();
        let mut next = || answers.next().ok_or(ErrorKind::Unexplained);
        let real = next()?.name().map_err(|failed| reason(&failed))?;
        let path = self.of_server(&real).ok_or(ErrorKind::BadName)?;
        let path = match name {
            Some(name) => path.join(&name).map_err(|_| ErrorKind::BadName)?,
            None => path,
        };
        let (own, led) = (next()?.attributes(), next()?.attributes());
        let own_kind = match &own {
            Ok(found) => Some(kind(found).ok_or(ErrorKind::Unexplained)?),
            Err(failed) if failed.is_absent() => None,
            Err(failed) => return Err(reason(failed)),
        };
        if own_kind == Some(Kind::Dir) {
            self.inner.known.add(&path);
            for (name, answer) in names.iter().zip(answers) {
                if let Ok(path) = path.join(name) {
                    self.inner.ahead.add(path, answer.attributes());
                }
            }
        } else {
            self.inner.ahead.add(path.clone(), own);
        }
        let end = led.ok().and_then(|found| kind(&found));
        Ok(Named { path, kind: own_kind, end })
    }
}
