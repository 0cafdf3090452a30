//! Where a program goes on a remote host.

use super::store::{BIN, FOLDERS, NAME, folder};
use crate::ssh::{BadRemotePath, is_harmless};
use blake3::Hash;

/// Where a program goes on a remote host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// `~/.cache/hikyaku/bin/HASH/hikyaku`, where this end looks for it. Old versions are removed.
    Cache,
    /// This path, absolute or below the home directory. A program that has the path is replaced.
    Path(String),
}

/// A place for one program, as an SFTP server knows it: relative paths begin at the home directory.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The directories that are made if they are missing, from the outermost.
    pub(super) folders: Vec<String>,
    /// Their mode.
    pub(super) folder_mode: u32,
    /// The directory of the program.
    pub(super) folder: String,
    /// The other contents of the directory.
    pub(super) holds: Holds,
    /// The name of the program in it.
    pub(super) name: String,
    /// Its mode.
    pub(super) mode: u32,
}

/// The contents of a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Holds {
    /// One program: the directory goes with it.
    OneProgram,
    /// Other files too.
    Anything,
}

/// A path that is no place for a program.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BadPlace {
    /// A shell would find a meaning in it.
    #[error(transparent)]
    Path(#[from] BadRemotePath),
    /// It names a directory, or the home directory of another user.
    #[error("'{0}' is not the path of a file: a path is absolute, or begins with ~/")]
    NoFile(String),
}

impl Place {
    /// The place at a path such as `~/.local/bin/hikyaku`.
    ///
    /// # Errors
    ///
    /// See [`BadPlace`].
    pub fn at(path: &str) -> Result<Self, BadPlace> {
        is_harmless(path)?;
        let below = path.strip_prefix("~/").unwrap_or(path);
        let name = below.rsplit('/').next().unwrap_or_default();
        if below.starts_with('~') || matches!(name, "" | "." | "..") {
            return Err(BadPlace::NoFile(path.to_owned()));
        }
        Ok(Self::Path(below.to_owned()))
    }

    pub(super) fn spot(&self, hash: &Hash) -> Spot {
        match self {
            Self::Cache => Spot {
                folders: FOLDERS.into_iter().map(str::to_owned).chain([folder(hash)]).collect(),
                folder_mode: 0o700,
                folder: folder(hash),
                holds: Holds::OneProgram,
                name: NAME.to_owned(),
                mode: 0o700,
            },
            Self::Path(path) => {
                let (folder, name) = path.rsplit_once('/').unwrap_or((".", path));
                let ends = folder.match_indices('/').map(|(at, _)| at).filter(|at| *at > 0);
                let folders = ends.map(|at| folder[..at].to_owned()).collect::<Vec<_>>();
                let own = Some(folder.to_owned()).filter(|folder| !folder.is_empty());
                Spot {
                    folders: folders.into_iter().chain(own).collect(),
                    folder_mode: 0o755,
                    folder: folder.to_owned(),
                    holds: Holds::Anything,
                    name: name.to_owned(),
                    mode: 0o755,
                }
            }
        }
    }

    /// The place, for messages.
    pub fn shown(&self) -> String {
        match self {
            Self::Cache => format!("~/{BIN}"),
            Self::Path(path) => for_shell(path),
        }
    }
}

impl Spot {
    /// The path of the program.
    pub(super) fn path(&self) -> String {
        self.named(&self.name)
    }

    /// The path of another name in its directory.
    pub(super) fn named(&self, name: &str) -> String {
        match self.folder.as_str() {
            "." => name.to_owned(),
            folder => format!("{folder}/{name}"),
        }
    }
}

/// A path of the SFTP server as a shell finds it from any directory.
pub(super) fn for_shell(path: &str) -> String {
    if path.starts_with('/') { path.to_owned() } else { format!("~/{path}") }
}
