//! The programs that this end may send.

use super::elf::{Architecture, Linkage, kind};
use blake3::{Hash, Hasher};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Programs for far sides.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Programs(Vec<Program>);

/// A program of hikyaku on this machine, for Linux.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Where it is.
    pub path: PathBuf,
    /// The processor that it runs on.
    pub architecture: Architecture,
    /// Bytes.
    pub size: u64,
}

/// Why a program that the user names cannot be sent.
#[derive(Debug, thiserror::Error)]
pub enum NoPrograms {
    /// The file cannot be read.
    #[error("cannot read {}", .path.display())]
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
    /// This program, if it is static, and the static programs that are installed beside it, below
    /// `PREFIX/share/hikyaku/far`. What cannot be read is left out.
    pub fn own() -> Self {
        std::env::current_exe().map(|program| Self::beside(&program)).unwrap_or_default()
    }

    /// The same for the program at `own`.
    pub(super) fn beside(own: &Path) -> Self {
        let own = own.canonicalize().unwrap_or_else(|_| own.to_path_buf());
        let mut all: Vec<Program> = static_program(&own).into_iter().collect();
        let prefix = own.parent().and_then(Path::parent);
        for architecture in Architecture::ALL {
            let at = |prefix: &Path| prefix.join(SHARED).join(architecture.name()).join(NAME);
            let shared = prefix.and_then(|prefix| static_program(&at(prefix)));
            all.extend(shared.filter(|program| program.architecture == architecture));
        }
        Self(all)
    }

    /// The one that the user names, which may be dynamic.
    ///
    /// # Errors
    ///
    /// See [`NoPrograms`].
    pub fn named(path: &Path) -> Result<Self, NoPrograms> {
        match program(path) {
            Ok(Some((program, _))) => Ok(Self(vec![program])),
            Ok(None) => Err(NoPrograms::Other(path.to_path_buf())),
            Err(source) => Err(NoPrograms::Read { path: path.to_path_buf(), source }),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(program: Program) -> Self {
        Self(vec![program])
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The one for a processor.
    pub fn of(&self, architecture: Architecture) -> Option<&Program> {
        self.0.iter().find(|program| program.architecture == architecture)
    }

    /// The hashes of all that can be read.
    pub fn hashes(&self) -> Vec<Hash> {
        self.0.iter().filter_map(|program| program.open().ok()).map(|(_, hash)| hash).collect()
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

fn static_program(path: &Path) -> Option<Program> {
    let (program, linkage) = program(path).ok()??;
    (linkage == Linkage::Static).then_some(program)
}

fn program(path: &Path) -> io::Result<Option<(Program, Linkage)>> {
    let file = File::open(path)?;
    let found = file.metadata()?;
    if !found.is_file() {
        return Ok(None);
    }
    let kind = kind(&file)?;
    Ok(kind.map(|(architecture, linkage)| {
        (Program { path: path.to_path_buf(), architecture, size: found.len() }, linkage)
    }))
}
