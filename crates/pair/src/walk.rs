//! The walk: finds the sources and all entries below them, on a thread of its own in parallel to the copy.
//!
//! The walk goes from directory to directory by descriptors, so that a directory that is exchanged for a
//! link is not entered where links are kept. A few are held open; deeper ones are opened again on the way
//! back.

mod descent;
mod roots;

pub use roots::Roots;

use super::Options;
use super::fault::Fault;
use super::landing::Descriptors;
use super::read::ReadSource;
use super::send::Complaints;
use super::spot::{Base, Spot};
use super::version::of_meta;
use descent::Descent;
use hikyaku_fs::{Folder, FsError, Kind, Links, Meta, Name, Owner, PeerPath, Special};
use hikyaku_job::{Claim, Claimant, Meter};
use hikyaku_transfer::{Depth, Version};
use roots::{Meeting, Root};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// Something found.
pub(crate) struct Found {
    /// Its path at the target.
    pub(crate) path: Vec<u8>,
    /// Where it is here.
    pub(crate) spot: Spot,
    pub(crate) kind: FoundKind,
    pub(crate) mode: u32,
    pub(crate) modified: (i64, u32),
    pub(crate) owner: Owner,
    pub(crate) version: Version,
}

/// The kind of a found entry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FoundKind {
    File(u64),
    Dir,
    Link(Vec<u8>),
    /// A source without a known length, which is read once, to its end.
    Stream(Spring),
}

/// Where a stream comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spring {
    /// A FIFO, by its name.
    Fifo,
    /// An open descriptor of this process.
    Descriptor(u32),
}

/// The longest path: a tree of 2,000 levels has a tenth of it, one of longer names is an attack.
const LONGEST_PATH: usize = 256 << 10;

/// Finds all entries and sends them to `found`. An unreadable entry is a failure, and the walk continues.
pub(crate) fn walk(
    roots: &Roots,
    (options, claims): (&Options, Claimant<'_>),
    meter: &Meter,
    complaints: &Complaints<'_>,
    fault: &Fault,
    found: &SyncSender<Found>,
) {
    let links = match options.rules.links {
        hikyaku_transfer::Links::Kept => Links::Kept,
        hikyaku_transfer::Links::Followed => Links::Followed,
    };
    let made = (roots.meeting == Meeting::Perhaps).then(HashMap::new);
    let (last, parents) = (None, BTreeSet::new());
    let mut walker = Walker {
        options,
        links,
        meter,
        complaints,
        fault,
        found,
        claims,
        made,
        last,
        parents,
        descriptors: roots.descriptors,
        has_streams: false,
    };
    for root in &roots.all {
        if fault.is_there() {
            return;
        }
        walker.root(root);
    }
    // The length of a stream is not known before its end.
    if !walker.has_streams {
        meter.set_counted();
    }
}

/// The entry that was sent under a name: its kind, and its device and inode.
type Made = (Kind, (u64, u64));

struct Walker<'a> {
    options: &'a Options,
    links: Links,
    meter: &'a Meter,
    complaints: &'a Complaints<'a>,
    fault: &'a Fault,
    found: &'a SyncSender<Found>,
    claims: Claimant<'a>,
    /// By path, where sources may come to one name.
    made: Option<HashMap<Vec<u8>, Made>>,
    /// The last source's directory: a list has many files of one.
    last: Option<(PathBuf, Arc<Base>)>,
    /// Directories above files of a list that were given.
    parents: BTreeSet<Vec<u8>>,
    descriptors: Descriptors,
    has_streams: bool,
}

impl Walker<'_> {
    fn root(&mut self, root: &Root) {
        if let Err(error) = self.try_root(root) {
            self.complaints.say(None, root.failure(&error));
        }
    }

    fn try_root(&mut self, root: &Root) -> Result<(), ReadSource> {
        if root.base.as_os_str().is_empty() && root.below.is_none() {
            return Err(ReadSource::Nameless);
        }
        if let Some(number) = root.descriptor() {
            return self.descriptor(root, number);
        }
        let base = self.base(root)?;
        self.parents(root, &base)?;
        let spot = Spot::new(base, root.below.clone());
        let name = root.name.clone().unwrap_or_default();
        let Some(below) = &root.below else {
            let meta = Meta::of(spot.folder()?)?;
            return self.dir(spot, name, &meta);
        };
        let folder = spot.base().tree().folder(below.parent().as_ref())?;
        let meta = folder.look(&below.name())?;
        if meta.kind == Kind::Dir {
            return self.dir(spot, name, &meta);
        }
        if self.options.patterns.leaves_out(&name, false) {
            return Ok(());
        }
        let names = (&folder, &below.name());
        if meta.kind == Kind::Special && folder.special(names.1)? == Some(Special::Fifo) {
            return self.stream(spot, name, &meta, Spring::Fifo);
        }
        self.leaf(spot, name, &meta, names)
    }

    /// An open descriptor, as `/dev/stdin` is.
    fn descriptor(&mut self, root: &Root, number: u32) -> Result<(), ReadSource> {
        if self.descriptors == Descriptors::Carrier {
            return Err(ReadSource::Carrier);
        }
        let file = hikyaku_fs::open_descriptor(number).map_err(|_| ReadSource::Closed)?;
        let (spot, name) = (Spot::new(self.base(root)?, root.below.clone()), root.name.clone());
        self.stream(spot, name.unwrap_or_default(), &Meta::of(&file)?, Spring::Descriptor(number))
    }

    fn stream(
        &mut self,
        spot: Spot,
        path: Vec<u8>,
        meta: &Meta,
        spring: Spring,
    ) -> Result<(), ReadSource> {
        if self.is_new(&path, meta)? {
            self.meter.add_total(1, 0);
            self.has_streams = true;
            self.give(found(path, spot, FoundKind::Stream(spring), meta));
        }
        Ok(())
    }

    fn base(&mut self, root: &Root) -> Result<Arc<Base>, FsError> {
        if let Some((path, base)) = &self.last
            && *path == root.base
        {
            return Ok(base.clone());
        }
        let base = Arc::new(Base::open(&root.base, self.links)?);
        self.last = Some((root.base.clone(), base.clone()));
        Ok(base)
    }

    /// The directories above a file of a list, each once.
    fn parents(&mut self, root: &Root, base: &Arc<Base>) -> Result<(), ReadSource> {
        let mut above: Vec<PeerPath> = Vec::new();
        // A source that is no file of a list has none.
        let mut path = root.below.as_ref().and_then(PeerPath::parent);
        while let Some(dir) = path
            && !self.parents.contains(dir.as_bytes())
        {
            path = dir.parent();
            above.push(dir);
        }
        for dir in above.into_iter().rev() {
            let spot = Spot::new(base.clone(), Some(dir.clone()));
            let meta = Meta::of(spot.folder()?)?;
            self.parents.insert(dir.as_bytes().to_vec());
            self.give(found(dir.as_bytes().to_vec(), spot, FoundKind::Dir, &meta));
        }
        Ok(())
    }

    /// A source that is a directory, and all that is in it.
    fn dir(&mut self, spot: Spot, name: Vec<u8>, meta: &Meta) -> Result<(), ReadSource> {
        if self.options.rules.depth == Depth::File {
            return Err(ReadSource::Directory);
        }
        if !name.is_empty() {
            self.directory(spot.clone(), &name, meta)?;
        }
        Descent::new(spot, name).run(self);
        Ok(())
    }

    /// A directory, without what is in it.
    fn directory(&mut self, spot: Spot, path: &[u8], meta: &Meta) -> Result<(), ReadSource> {
        if self.is_new(path, meta)? {
            self.give(found(path.to_vec(), spot, FoundKind::Dir, meta));
        }
        Ok(())
    }

    /// Anything but a directory.
    fn leaf(
        &mut self,
        spot: Spot,
        path: Vec<u8>,
        meta: &Meta,
        (folder, name): (&Folder, &Name),
    ) -> Result<(), ReadSource> {
        let kind = match meta.kind {
            Kind::File => FoundKind::File(meta.size),
            Kind::Link => FoundKind::Link(folder.read_link(name)?),
            Kind::Dir => return Err(ReadSource::Exchanged),
            Kind::Special => return Err(special(folder.special(name)?)),
        };
        if self.is_new(&path, meta)? {
            if let FoundKind::File(size) = kind {
                self.meter.add_total(1, size);
            }
            self.give(found(path, spot, kind, meta));
        }
        Ok(())
    }

    /// Whether nothing was given under this name; it is, if it is the same or another directory.
    fn is_new(&mut self, path: &[u8], meta: &Meta) -> Result<bool, ReadSource> {
        match self.claims.claim(path, meta.kind) {
            Ok(Claim::Free) => {}
            Ok(Claim::Taken) => return Err(ReadSource::JustMade),
            Err(error) => {
                self.fault.report(error);
                return Ok(false);
            }
        }
        let Some(made) = &mut self.made else { return Ok(true) };
        match made.get(path) {
            Some((Kind::Dir, _)) if meta.kind == Kind::Dir => Ok(false),
            Some((_, identity)) if *identity == meta.identity => Ok(false),
            Some(_) => Err(ReadSource::JustMade),
            None => {
                made.insert(path.to_vec(), (meta.kind, meta.identity));
                Ok(true)
            }
        }
    }

    fn give(&self, found: Found) {
        // The receiving end is closed only after a fault, which ends the walk.
        let _ = self.found.send(found);
    }
}

fn found(path: Vec<u8>, spot: Spot, kind: FoundKind, meta: &Meta) -> Found {
    let (mode, modified, owner) = (meta.mode, meta.modified, meta.owner);
    Found { path, spot, kind, mode, modified, owner, version: of_meta(meta) }
}

const fn special(kind: Option<Special>) -> ReadSource {
    match kind {
        Some(Special::Fifo) => ReadSource::Special("a FIFO"),
        Some(Special::Socket) => ReadSource::Special("a socket"),
        Some(Special::Device) => ReadSource::Special("a device"),
        None => ReadSource::Changed,
    }
}

#[cfg(test)]
mod tests;
