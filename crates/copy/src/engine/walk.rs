//! What there is to be copied: the sources and everything beneath them, found by a thread of its own
//! while the copy is under way.

use super::Options;
use super::choice::Choice;
use super::fault::Fault;
use super::meter::Meter;
use super::send::Complaints;
use anyhow::{Context, Result, bail};
use hikyaku_fs::Shown;
use hikyaku_transfer::Sources;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::SyncSender;

/// A source as its user named it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Root {
    /// Where it is.
    pub(crate) path: PathBuf,
    /// Its name at the target; `None` if only what is in it is copied.
    pub(crate) name: Option<Vec<u8>>,
}

/// Something found.
pub(crate) struct Found {
    /// Its path at the target.
    pub(crate) path: Vec<u8>,
    /// Where it is here.
    pub(crate) here: PathBuf,
    pub(crate) kind: FoundKind,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, u32),
}

/// What it is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FoundKind {
    File(u64),
    Dir,
    Link(Vec<u8>),
}

/// Directories within each other: more is a circle of links, or an attack.
const MAX_DEPTH: usize = 1024;

/// What is to be copied.
pub(crate) struct Roots {
    pub(crate) all: Vec<Root>,
    /// What the target's name means for them.
    pub(crate) sources: Sources,
    /// The same for the same sources.
    pub(crate) of: [u8; 32],
}

impl Roots {
    /// What these paths mean; `files` are the only ones of them that are wanted, if there are any.
    pub(crate) fn new(paths: &[PathBuf], files: &[Vec<u8>]) -> Self {
        let listed = paths.iter().flat_map(|path| files.iter().map(|file| listed(path, file)));
        let all: Vec<Root> = match files {
            [] => paths.iter().map(|path| root(path)).collect(),
            _ => listed.collect(),
        };
        let sources = match all.as_slice() {
            _ if !files.is_empty() => Sources::Contents,
            [Root { name: None, .. }] => Sources::Contents,
            [_] => Sources::One,
            _ => Sources::Several,
        };
        let mut of = blake3::Hasher::new();
        of.update(rustix::system::uname().nodename().to_bytes());
        for path in paths {
            let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            of.update(b"\0").update(path.as_os_str().as_bytes());
        }
        Self { all, sources, of: *of.finalize().as_bytes() }
    }
}

/// A file of a list, relative to a source.
fn listed(source: &Path, file: &[u8]) -> Root {
    Root { path: source.join(OsStr::from_bytes(file)), name: Some(file.to_vec()) }
}

fn root(path: &Path) -> Root {
    // `run7/` is `run7`; `run7/.`, `..` and `/` have no name of their own.
    let ends_in_dot = path.as_os_str().as_bytes().ends_with(b"/.");
    let name = match path.components().next_back() {
        Some(Component::Normal(name)) if !ends_in_dot => Some(name.as_bytes().to_vec()),
        _ => None,
    };
    Root { path: path.to_path_buf(), name }
}

/// Finds everything and gives it to `found`. What cannot be read is a failure and no end.
pub(crate) fn walk(
    roots: &[Root],
    options: &Options,
    meter: &Meter,
    complaints: &Complaints<'_>,
    fault: &Fault,
    found: &SyncSender<Found>,
) {
    let choice = match Choice::new(&options.patterns) {
        Ok(choice) => choice,
        Err(error) => {
            fault.report(error);
            return;
        }
    };
    let walker = Walker { options, choice, meter, complaints, fault, found };
    let mut parents = BTreeSet::new();
    for root in roots {
        if let Err(error) = walker.parents(root, &mut parents).and_then(|()| walker.root(root)) {
            complaints.say(None, format!("{error:#}"));
        }
    }
    meter.set_counted();
}

/// How the walk came to where it is.
struct Way {
    /// Bytes of a path before what lies beneath the source.
    skip: usize,
    /// The directories above, by device and inode.
    above: Vec<(u64, u64)>,
}

struct Walker<'a> {
    options: &'a Options,
    choice: Choice,
    meter: &'a Meter,
    complaints: &'a Complaints<'a>,
    fault: &'a Fault,
    found: &'a SyncSender<Found>,
}

impl Walker<'_> {
    /// The directories above a file of a list, each once.
    fn parents(&self, root: &Root, known: &mut BTreeSet<Vec<u8>>) -> Result<()> {
        let name = root.name.as_deref().unwrap_or_default();
        let slashes: Vec<usize> = (0..name.len()).filter(|&at| name[at] == b'/').collect();
        let depth = slashes.len();
        for (level, &slash) in slashes.iter().enumerate() {
            if known.insert(name[..slash].to_vec()) {
                let here = root.path.ancestors().nth(depth - level).unwrap_or(&root.path);
                let meta = self.look(here)?;
                self.give(found(name[..slash].to_vec(), here, FoundKind::Dir, &meta));
            }
        }
        Ok(())
    }

    fn root(&self, root: &Root) -> Result<()> {
        let meta = self.look(&root.path)?;
        if meta.is_dir() && !self.options.recursive {
            bail!("{}: is a directory, and -r was not given", shown(&root.path));
        }
        let name = root.name.clone().unwrap_or_default();
        if !meta.is_dir() && self.choice.leaves_out(&name, false) {
            return Ok(());
        }
        let mut way = Way { skip: name.len() + usize::from(!name.is_empty()), above: Vec::new() };
        self.visit(&root.path, name, &meta, &mut way)
    }

    /// What is at `path`: a link itself only where links are kept.
    fn look(&self, path: &Path) -> Result<Metadata> {
        let keeps = self.options.keep_links;
        let meta = if keeps { fs::symlink_metadata(path) } else { fs::metadata(path) };
        meta.with_context(|| format!("cannot read {}", shown(path)))
    }

    fn visit(&self, here: &Path, path: Vec<u8>, meta: &Metadata, way: &mut Way) -> Result<()> {
        let kind = if meta.is_file() {
            self.meter.add_total(1, meta.len());
            FoundKind::File(meta.len())
        } else if meta.is_dir() {
            FoundKind::Dir
        } else if meta.is_symlink() {
            let link =
                fs::read_link(here).with_context(|| format!("cannot read {}", shown(here)))?;
            FoundKind::Link(link.as_os_str().as_bytes().to_vec())
        } else {
            bail!("{}: {}, which is not copied", shown(here), special(meta));
        };
        let is_dir = kind == FoundKind::Dir;
        if !path.is_empty() {
            self.give(found(path.clone(), here, kind, meta));
        }
        if is_dir { self.children(here, &path, meta, way) } else { Ok(()) }
    }

    fn children(&self, here: &Path, path: &[u8], meta: &Metadata, way: &mut Way) -> Result<()> {
        let identity = (meta.dev(), meta.ino());
        if way.above.contains(&identity) || way.above.len() > MAX_DEPTH {
            bail!("{}: a link leads back to a directory above it", shown(here));
        }
        let list = || -> std::io::Result<Vec<_>> {
            let entries = fs::read_dir(here)?;
            let mut names =
                entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
            names.sort_unstable();
            Ok(names)
        };
        let names = list().with_context(|| format!("cannot list {}", shown(here)))?;
        way.above.push(identity);
        for name in names {
            if self.fault.is_there() {
                break;
            }
            let child = here.join(&name);
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(name.as_bytes());
            let visited = self.look(&child).and_then(|meta| {
                let inside = below.get(way.skip..).unwrap_or_default();
                if self.choice.leaves_out(inside, meta.is_dir()) {
                    return Ok(());
                }
                self.visit(&child, below, &meta, way)
            });
            if let Err(error) = visited {
                self.complaints.say(None, format!("{error:#}"));
            }
        }
        way.above.pop();
        Ok(())
    }

    fn give(&self, found: Found) {
        // If nobody listens any more there is a fault, and the walk ends by it.
        let _ = self.found.send(found);
    }
}

fn found(path: Vec<u8>, here: &Path, kind: FoundKind, meta: &Metadata) -> Found {
    let modified = (meta.mtime(), u32::try_from(meta.mtime_nsec()).unwrap_or(0));
    Found { path, here: here.to_path_buf(), kind, mode: meta.mode() & 0o7777, modified }
}

fn special(meta: &Metadata) -> &'static str {
    let kind = meta.file_type();
    if kind.is_fifo() {
        "a FIFO"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}

pub(super) fn shown(path: &Path) -> String {
    Shown::new(path.as_os_str().as_bytes()).to_string()
}

#[cfg(test)]
mod tests;
