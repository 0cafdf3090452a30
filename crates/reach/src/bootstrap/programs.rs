//! The programs that this end may send.

use super::elf::{Architecture, Linkage, kind};
use super::store;
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Programs for far sides, the best first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Programs {
    all: Vec<Program>,
    chosen_by: ChosenBy,
}

/// The origin of the programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ChosenBy {
    /// They belong to this installation.
    Installation,
    /// The user named one (`--far-binary`).
    User,
}

/// A program of hikyaku on this machine, for Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The processor that it runs on.
    pub architecture: Architecture,
    /// How it finds its C library.
    pub linkage: Linkage,
    /// Bytes.
    pub size: u64,
}

/// Why a program that the user names cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum NoPrograms {
    /// The file cannot be read.
    #[error("{}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// It is none.
    #[error("{}: not a program for Linux on x86_64, aarch64 or riscv64", .0.display())]
    Other(PathBuf),
}

/// Below the prefix of an installation: programs for far sides, in a directory for each processor.
const SHARED: &str = "share/hikyaku/far";
const NAME: &str = "hikyaku";

impl Programs {
    /// This program, and the static programs that are installed beside it, below `PREFIX/share/hikyaku/far`. If this program
    /// is dynamic, a static one for its processor takes its place. Unreadable files are left out.
    pub fn own() -> Self {
        let none = Self { all: Vec::new(), chosen_by: ChosenBy::Installation };
        std::env::current_exe().map_or(none, |program| Self::beside(&program))
    }

    /// The same for the program at `own`.
    pub(super) fn beside(own: &Path) -> Self {
        let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
        let mut all = Vec::new();
        let prefix = own.parent().and_then(Path::parent);
        for architecture in Architecture::ALL {
            let at = |prefix: &Path| prefix.join(SHARED).join(architecture.name()).join(NAME);
            let shared = prefix.and_then(|prefix| program(&at(prefix)).ok()?);
            all.extend(shared.filter(|program| {
                program.architecture == architecture && program.linkage == Linkage::Static
            }));
        }
        if let Ok(Some(own)) = program(&own) {
            let is_same = |program: &Program| program.architecture == own.architecture;
            if own.linkage == Linkage::Static || !all.iter().any(is_same) {
                all.insert(0, own);
            }
        }
        Self { all, chosen_by: ChosenBy::Installation }
    }

    /// The one that the user names, which may be dynamic.
    ///
    /// # Errors
    ///
    /// See [`NoPrograms`].
    pub fn named(path: &Path) -> Result<Self, NoPrograms> {
        match program(path) {
            Ok(Some(program)) => Ok(Self { all: vec![program], chosen_by: ChosenBy::User }),
            Ok(None) => Err(NoPrograms::Other(path.to_path_buf())),
            Err(source) => Err(NoPrograms::Read { path: path.to_path_buf(), source }),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(program: Program) -> Self {
        Self { all: vec![program], chosen_by: ChosenBy::Installation }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Their origin.
    pub const fn chosen_by(&self) -> ChosenBy {
        self.chosen_by
    }

    /// The one for a processor.
    pub fn of(&self, architecture: Architecture) -> Option<&Program> {
        self.all.iter().find(|program| program.architecture == architecture)
    }

    /// The hashes of all that can be read.
    pub fn hashes(&self) -> Vec<Hash> {
        self.all.iter().filter_map(|program| program.open().ok()).map(|(_, hash)| hash).collect()
    }

    /// Where a remote host has them if they were sent to it: paths below the home directory there.
    pub fn paths(&self) -> Vec<String> {
        self.hashes().iter().map(store::path).collect()
    }
}

impl Program {
    /// Opens it, and hashes it.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(super) fn open(&self) -> io::Result<(File, Hash)> {
        let file = File::open(&self.path)?;
        let mut hasher = Hasher::new();
        hasher.update_reader(&file)?;
        Ok((file, hasher.finalize()))
    }
}

fn program(path: &Path) -> io::Result<Option<Program>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let kind = kind(&file)?;
    Ok(kind.map(|(architecture, linkage)| Program {
        path: path.to_path_buf(),
        architecture,
        linkage,
        size: found.len(),
    }))
}
