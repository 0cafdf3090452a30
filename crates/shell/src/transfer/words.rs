//! Messages of a transfer, in the words of OpenSSH's sftp where it has some.

use crate::fault::{Fault, told};
use crate::path::{base, join};
use crate::show::Shown;
use hikyaku_fs::Name;
use hikyaku_mover::{Failed, FetchError, File, Plan, RESUME, Why};
use hikyaku_store::{ErrorKind, StorePath};
use std::fmt::Display;

/// Where files come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum From {
    /// This machine.
    Here,
    /// The server.
    Server,
}

/// A source as its user means it.
pub(super) struct Source {
    /// Its name at the target; `None` for the contents of a directory.
    pub(super) name: Option<Name>,
    pub(super) typed: Vec<u8>,
}

/// The words of one command.
pub(super) struct Words<'a> {
    pub(super) from: From,
    /// The begin of paths of the source.
    pub(super) root: &'a [u8],
    pub(super) sources: &'a [Source],
}

impl Words<'_> {
    /// The name of the transfer, for the progress.
    pub(super) fn name(&self) -> String {
        match self.sources {
            [one] => Shown::new(base(&one.typed)).to_string(),
            several => format!("{} names", several.len()),
        }
    }

    /// A path of the source.
    pub(super) fn at_source(&self, path: &[u8]) -> Vec<u8> {
        [self.root, path].concat()
    }

    /// The path of the source that goes to a place at the target, as the user would write it.
    pub(super) fn source(&self, plan: &Plan, place: &StorePath) -> Vec<u8> {
        let below = |root: &StorePath| -> Option<Vec<u8>> {
            let below = place.as_bytes().strip_prefix(root.as_bytes())?;
            let below = match below.strip_prefix(b"/") {
                Some(below) => below,
                None if below.is_empty() || root == &StorePath::ROOT => below,
                None => return None,
            };
            let last = root.split().map(|(_, name)| name);
            let source = match self.sources {
                [one] => one,
                several => several.iter().find(|source| source.name == last)?,
            };
            Some(if below.is_empty() { source.typed.clone() } else { join(&source.typed, below) })
        };
        plan.roots.iter().find_map(below).unwrap_or_else(|| place.as_bytes().to_vec())
    }

    /// A directory is copied.
    pub(super) fn enters(&self, dir: &[u8]) -> String {
        let verb = if self.from == From::Server { "Retrieving" } else { "Entering" };
        format!("{verb} {}", Shown::new(dir))
    }

    /// A link or a special file in a tree is not copied, which is no failure.
    pub(super) fn left_out(&self, path: &[u8]) {
        let verb = if self.from == From::Server { "download " } else { "" };
        eprintln!("{verb}\"{}\": not a regular file", Shown::new(path));
    }

    /// Something of the source cannot be read.
    pub(super) fn cannot_read(&self, path: &[u8], why: &Why) -> Fault {
        match why {
            Why::Server(kind) => self.cannot_open(path, *kind),
            why => told(format!("\"{}\": {why}", Shown::new(path))),
        }
    }

    fn cannot_open(&self, path: &[u8], kind: ErrorKind) -> Fault {
        let what = if self.from == From::Server { "remote open" } else { "open local" };
        told(format!("{what} \"{}\": {}", Shown::new(path), reason(kind)))
    }

    /// Sources that are none.
    pub(super) fn refused(&self, failed: &[Failed]) -> Result<(), Fault> {
        let tell = |one: &Failed| {
            told(format!("\"{}\": {}", Shown::new(&one.path), one.text));
        };
        failed.iter().for_each(tell);
        if failed.is_empty() { Ok(()) } else { Err(Fault::Told) }
    }

    /// An entry at this path was not copied, or not all of it. A file is at its path at the source.
    pub(super) fn failed(&self, (path, file): (&[u8], Option<&File>), error: &FetchError) -> Fault {
        let source = self.at_source(path);
        let from = Shown::new(&source);
        match error {
            FetchError::Source(error) => self.cannot_open(&source, error.kind),
            FetchError::Target(error) if error.what == RESUME => {
                self.cannot_resume(&from, error.kind)
            }
            FetchError::Target(error) => {
                let (end, root) = match self.from {
                    From::Server => ("local", ""),
                    From::Here => ("remote", "/"),
                };
                let (what, path) = (error.what, &error.path);
                told(format!("{end} {what} \"{root}{path}\": {}", reason(error.kind)))
            }
            error => {
                let path = file.map_or(path, |file| file.to.as_bytes());
                let root = if self.from == From::Here { "/" } else { "" };
                told(format!("\"{root}{}\": {error}", Shown::new(path)))
            }
        }
    }

    fn cannot_resume(&self, from: &dyn Display, kind: ErrorKind) -> Fault {
        told(match (self.from, kind) {
            (From::Server, ErrorKind::TooLarge) => {
                format!("Unable to resume download of \"{from}\": local file is larger than remote")
            }
            (From::Server, _) => {
                let text = "the local file differs from the remote one";
                format!("Unable to resume download of \"{from}\": {text}")
            }
            (From::Here, ErrorKind::TooLarge) => {
                format!("resume \"{from}\": destination is larger, or no file")
            }
            (From::Here, _) => {
                format!("resume \"{from}\": the remote file differs from the local one")
            }
        })
    }
}

/// A reason in the words of OpenSSH's sftp.
pub(super) fn reason(kind: ErrorKind) -> String {
    match kind {
        ErrorKind::NotFound => "No such file or directory".to_owned(),
        ErrorKind::Denied => "Permission denied".to_owned(),
        ErrorKind::Unexplained => "Failure".to_owned(),
        kind => kind.to_string(),
    }
}
