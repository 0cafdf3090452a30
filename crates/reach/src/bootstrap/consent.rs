//! Whether the user wants a program to be put on a far side.

use hikyaku_console::{Folder, NoFolder};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::str::FromStr;

/// What the user has said for all copies.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Consent {
    /// A person at the terminal is asked; without one, nothing is sent.
    #[default]
    Ask,
    /// A program is sent where one is missing.
    Always,
    /// Nothing is sent.
    Never,
}

/// What a person says when asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// This time.
    Yes,
    /// Not this time.
    No,
    /// On this host, also when the program there is replaced by a newer one.
    Always,
}

/// The hosts for which a person has said "always": a line each in `bootstrap-hosts` of the state folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hosts {
    path: PathBuf,
}

/// Why the answer cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum NoConsent {
    /// There is no folder for it.
    #[error(transparent)]
    Folder(#[from] NoFolder),
    /// The file cannot be written.
    #[error("{}", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

/// The most of the file that is read.
const FILE_BYTES_MAX: u64 = 1 << 20;

impl FromStr for Consent {
    type Err = &'static str;

    // fuzz: none, a word of the user
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "ask" => Ok(Self::Ask),
            "always" => Ok(Self::Always),
            "never" => Ok(Self::Never),
            _ => Err("must be ask, always or never"),
        }
    }
}

impl fmt::Display for Consent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Always => "always",
            Self::Never => "never",
        })
    }
}

impl Answer {
    /// The answer that a line is. All but a clear one is a no.
    pub fn of(line: &str) -> Self {
        match line.trim().to_ascii_lowercase().as_str() {
            "y" | "yes" => Self::Yes,
            "a" | "always" => Self::Always,
            _ => Self::No,
        }
    }
}

impl Hosts {
    /// Those of the user who runs this process.
    ///
    /// # Errors
    ///
    /// The user has no state folder.
    pub fn of_user() -> Result<Self, NoFolder> {
        Ok(Self { path: Folder::State.of_user()?.join("bootstrap-hosts") })
    }

    #[cfg(test)]
    pub(super) const fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Whether the user has allowed an installation on `host`; `false` if the file cannot be read.
    pub fn has(&self, host: &str) -> bool {
        let mut text = String::new();
        let Ok(file) = File::open(&self.path) else { return false };
        let read = file.take(FILE_BYTES_MAX).read_to_string(&mut text);
        read.is_ok() && text.lines().any(|line| line == host)
    }

    /// Adds one.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn add(&self, host: &str) -> Result<(), NoConsent> {
        let added = || {
            if let Some(folder) = self.path.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::options().append(true).create(true).open(&self.path)?;
            // One call, so that two programs do not mix their lines.
            file.write_all(format!("{host}\n").as_bytes())
        };
        if self.has(host) {
            return Ok(());
        }
        added().map_err(|source| NoConsent::Write { path: self.path.clone(), source })
    }

    /// Takes one out.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn forget(&self, host: &str) -> Result<(), NoConsent> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            read => read,
        };
        let others = text.map(|text| {
            text.lines().filter(|line| *line != host).map(|line| format!("{line}\n")).collect()
        });
        let written = others
            .and_then(|others: String| hikyaku_fs::write_whole(&self.path, others.as_bytes()));
        written.map_err(|source| NoConsent::Write { path: self.path.clone(), source })
    }
}
