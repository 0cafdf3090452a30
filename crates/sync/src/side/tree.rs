//! A tree of names: a directory of this machine, of an SFTP server, or of another store.

use super::meta::why;
use super::{Done, Kind, Meta, Why};
use crate::options::{Modes, Times};
use hikyaku_fs::{FsError, umask};
use hikyaku_sftp::Client;
use hikyaku_store::{Change, ErrorKind, Found, Identity, Last, Latency, Result, Store, StorePath};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_store_sftp::Sftp;
use hikyaku_stores::Holder;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory of a store, with operations that [`Store`] does not have.
pub(super) enum Tree {
    /// Of this machine.
    Here { store: Local, root: PathBuf, umask: u32 },
    /// Of an SFTP server.
    Server(Sftp),
    /// Of a daemon, of a Gfarm file system, or of a bucket.
    Held { holder: Arc<Holder>, root: StorePath },
}

impl Tree {
    pub(super) fn here(root: &Path) -> std::result::Result<Self, FsError> {
        let store = Local::open(root, NewModes { file: 0o600 })?;
        Ok(Self::Here { store, root: root.to_path_buf(), umask: umask() })
    }

    pub(super) fn server(client: Client, root: &[u8]) -> Result<Self> {
        Sftp::of_dir(client, root).map(Self::Server)
    }

    pub(super) fn store(&self) -> &dyn Store {
        match self {
            Self::Here { store, .. } => store,
            Self::Server(store) => store,
            Self::Held { holder, .. } => &*holder.store,
        }
    }

    /// The path in the store of a path below the root of the tree.
    pub(super) fn path(&self, below: &[u8]) -> Done<StorePath> {
        let whole = match self {
            Self::Held { root, .. } if below.is_empty() => return Ok(root.clone()),
            Self::Held { root, .. } => &crate::plan::join(root.as_bytes(), below),
            Self::Here { .. } | Self::Server(_) => below,
        };
        StorePath::new(whole).map_err(|error| Why::of_name(error.to_string()))
    }

    pub(super) fn meta(&self, path: &StorePath, found: &Found) -> Meta {
        Meta {
            kind: found.kind,
            size: found.size,
            mode: found.mode,
            modified: found.modified,
            identity: match self {
                Self::Here { .. } => Some(found.identity),
                Self::Server(_) => None,
                Self::Held { holder, .. } => Some(identity(&holder.name, path)),
            },
        }
    }

    /// The directory that a link leads to, wherever that is; `None` if it leads to none.
    pub(super) fn behind(&self, link: &StorePath) -> Done<Option<Self>> {
        match self {
            Self::Here { root, .. } => {
                let root = root.join(OsStr::from_bytes(link.as_bytes()));
                if !fs::metadata(&root).is_ok_and(|found| found.is_dir()) {
                    return Ok(None);
                }
                let tree = Self::here(&root).map_err(|error| Why::of_name(error.to_string()))?;
                Ok(Some(tree))
            }
            Self::Server(store) => {
                let store = store.behind_link(link).map_err(|error| why(&error))?;
                Ok(store.map(Self::Server))
            }
            Self::Held { holder, .. } => {
                let found = holder.resolve(link, Last::Followed).and_then(|root| {
                    let found = holder.store.look(&root)?;
                    Ok((found.kind == Kind::Dir).then_some(root))
                });
                match found {
                    // The link leads nowhere, or out of the store.
                    Err(error) if matches!(error.kind, ErrorKind::NotFound | ErrorKind::Link) => {
                        Ok(None)
                    }
                    found => {
                        let root = found.map_err(|error| why(&error))?;
                        Ok(root.map(|root| Self::Held { holder: holder.clone(), root }))
                    }
                }
            }
        }
    }

    /// The bits of a new directory's mode that this end removes. A server removes those of its own umask.
    pub(super) fn umask(&self) -> u32 {
        match self {
            Self::Here { umask, .. } => *umask,
            Self::Server(_) => 0,
            Self::Held { .. } => umask(),
        }
    }

    /// Sets metadata, all permission bits that the store keeps among them.
    pub(super) fn change(&self, path: &StorePath, change: &Change) -> Result<()> {
        match (self, change.mode) {
            (Self::Here { store, .. }, Some(mode)) => {
                store.set_mode(path, mode)?;
                store.change(path, &Change { mode: None, ..change.clone() })
            }
            _ => self.store().change(path, change),
        }
    }

    /// Its root in the store, if that walks through a tree by fewer requests than it lists the directories.
    pub(super) fn walked(&self) -> Option<&StorePath> {
        match self {
            Self::Held { holder, root }
                if holder.store.abilities().latency == Latency::RoundTrip =>
            {
                Some(root)
            }
            Self::Here { .. } | Self::Server(_) | Self::Held { .. } => None,
        }
    }

    /// Which times it has.
    pub(super) fn times(&self) -> Times {
        match self {
            Self::Server(store) if !store.sets_times_of_links() => Times::NotOfLinks,
            Self::Held { holder, .. } if !holder.store.abilities().times => Times::OfCopies,
            Self::Here { .. } | Self::Server(_) | Self::Held { .. } => Times::All,
        }
    }

    /// Which permission bits it has. A daemon and Gfarm take no set-id bits.
    pub(super) fn modes(&self) -> Modes {
        match self {
            Self::Here { .. } | Self::Server(_) => Modes::All,
            Self::Held { holder, .. } if holder.store.abilities().modes => Modes::NoSetIds,
            Self::Held { .. } => Modes::None,
        }
    }

    /// Whether names that have one identity are one file.
    pub(super) const fn has_identities(&self) -> bool {
        !matches!(self, Self::Server(_))
    }
}

/// Identifies a name of a store. Numbers that a server tells of its files may be those of other files at another server.
fn identity(store: &str, path: &StorePath) -> Identity {
    let mut hasher = blake3::Hasher::new();
    hasher.update(store.as_bytes()).update(b"\0").update(path.as_bytes());
    let mut words = [[0; 8]; 2];
    words.as_flattened_mut().copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    let [device, number] = words.map(u64::from_le_bytes);
    Identity { device, number }
}
