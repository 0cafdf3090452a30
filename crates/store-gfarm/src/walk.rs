//! Everything at and below a path, level by level: a few requests for many directories at once.

use crate::convert::{self, found};
use crate::gfarm::{Gfarm, Trouble, one};
use crate::place::place;
use hikyaku_fs::Token;
use hikyaku_gfarm::{Replica, Stat};
use hikyaku_store::{Entry, ErrorKind, Found, Kind, Place, Result, StoreError, StorePath, doing};
use std::ops::ControlFlow;

/// A name that a walk has found.
pub(crate) struct Walked {
    /// Its path below the root of the file system.
    pub(crate) path: Vec<u8>,
    /// Its metadata, or the reason why they cannot be read. A directory that cannot be listed comes a second time, with the
    /// reason.
    pub(crate) found: std::result::Result<Found, ErrorKind>,
    /// The text of a symbolic link.
    pub(crate) link: Option<Vec<u8>>,
    /// The whole replicas of this content of a file.
    pub(crate) replicas: Vec<Replica>,
}

impl Walked {
    fn new(path: Vec<u8>, found: std::result::Result<Found, ErrorKind>) -> Self {
        Self { path, found, link: None, replicas: Vec::new() }
    }

    fn is(&self, kind: Kind) -> bool {
        self.found.is_ok_and(|found| found.kind == kind)
    }
}

/// Levels of directories.
const LEVELS_MAX: usize = 2048;
/// Directories that are listed by one request, so that the memory for a level is bounded by that of its paths.
const DIRS_AT_ONCE: usize = 1000;

/// The whole replicas of the present content, those of running nodes first.
pub(crate) fn whole(stat: &Stat, mut replicas: Vec<Replica>) -> Vec<Replica> {
    replicas.retain(|one| one.is_complete && one.generation == stat.handle.generation);
    replicas.sort_by_key(|replica| !replica.is_up);
    replicas
}

/// The machines of replicas.
pub(crate) fn places(replicas: Vec<Replica>) -> Vec<Place> {
    let place = |replica: Replica| Place { host: replica.host, is_up: replica.is_up };
    replicas.into_iter().map(place).collect()
}

/// Passes on everything at and below `root`, a directory before its entries, until `each` breaks. No link is followed.
pub(crate) fn walk(
    gfarm: &Gfarm,
    root: &[u8],
    each: &mut dyn FnMut(Walked) -> ControlFlow<()>,
) -> std::result::Result<(), Trouble> {
    let stat = one(gfarm.ask(|session| session.look(&[root]))?.1)?;
    let mut level = Vec::new();
    if pass(gfarm, vec![(root.to_vec(), stat)], &mut level, each)?.is_break() {
        return Ok(());
    }
    for _ in 0..LEVELS_MAX {
        let dirs = std::mem::take(&mut level);
        for some in dirs.chunks(DIRS_AT_ONCE) {
            let paths: Vec<&[u8]> = some.iter().map(Vec::as_slice).collect();
            let listed = gfarm.ask(|session| session.list(&paths))?.1;
            let (mut names, mut failed) = (Vec::new(), Vec::new());
            for (dir, entries) in some.iter().zip(listed) {
                match entries {
                    Ok(entries) => names.extend(in_dir(dir, entries)),
                    Err(code) => failed.push(Walked::new(dir.clone(), Err(convert::error(code)))),
                }
            }
            if pass(gfarm, names, &mut level, each)?.is_break()
                || failed.into_iter().try_for_each(&mut *each).is_break()
            {
                return Ok(());
            }
        }
        if level.is_empty() {
            break;
        }
    }
    Ok(())
}

/// The paths of the entries of a directory, without unfinished files of other copies.
fn in_dir(dir: &[u8], entries: Vec<hikyaku_gfarm::Entry>) -> impl Iterator<Item = (Vec<u8>, Stat)> {
    let finished = entries.into_iter().filter(|(name, _)| !Token::is_in(name));
    finished.map(|(name, stat)| (crate::draft::joined(dir, &name), stat))
}

/// Asks for the replicas of the files and for the texts of the links, and passes all on. The directories among them are added
/// to `dirs`.
fn pass(
    gfarm: &Gfarm,
    names: Vec<(Vec<u8>, Stat)>,
    dirs: &mut Vec<Vec<u8>>,
    each: &mut dyn FnMut(Walked) -> ControlFlow<()>,
) -> std::result::Result<ControlFlow<()>, Trouble> {
    let walked = |(path, stat)| Walked::new(path, Ok(found(&stat)));
    let mut all: Vec<Walked> = names.into_iter().map(walked).collect();
    let paths = |kind: Kind| -> Vec<&[u8]> {
        let of_kind = all.iter().filter(|walked| walked.is(kind));
        of_kind.map(|walked| walked.path.as_slice()).collect()
    };
    let (files, links) = (paths(Kind::File), paths(Kind::Link));
    let mut replicas = match files.is_empty() {
        true => Vec::new().into_iter(),
        false => gfarm.ask(|session| session.replicas(&files))?.1.into_iter(),
    };
    let mut texts = match links.is_empty() {
        true => Vec::new().into_iter(),
        false => gfarm.ask(|session| session.read_links(&links))?.1.into_iter(),
    };
    for mut walked in all.drain(..) {
        match walked.found {
            Ok(Found { kind: Kind::File, .. }) => match replicas.next() {
                // The file may have changed since its directory was read.
                Some(Ok((stat, replicas))) => {
                    walked.found = Ok(found(&stat));
                    walked.replicas = whole(&stat, replicas);
                }
                Some(Err(code)) => walked.found = Err(convert::error(code)),
                None => {}
            },
            Ok(Found { kind: Kind::Link, .. }) => match texts.next() {
                Some(Ok(text)) => {
                    walked.found.iter_mut().for_each(|found| found.size = text.len() as u64);
                    walked.link = Some(text);
                }
                Some(Err(code)) => walked.found = Err(convert::error(code)),
                None => {}
            },
            Ok(Found { kind: Kind::Dir, .. }) => dirs.push(walked.path.clone()),
            _ => {}
        }
        if each(walked).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

impl Gfarm {
    /// [`Store::walk`](hikyaku_store::Store::walk).
    pub(crate) fn walk_below(
        &self,
        root: &StorePath,
        each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        if root != &StorePath::ROOT {
            place(doing("list", root))?;
        }
        let walked = walk(self, root.as_bytes(), &mut |walked| {
            let Ok(path) = StorePath::new(&walked.path) else {
                // Only the last name can be the reason: the path of the directory is one.
                let slash = walked.path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
                let dir = StorePath::new(&walked.path[..slash]).unwrap_or_default();
                return each(Entry::of_bad_name(&dir));
            };
            let found = walked.found.map_err(|kind| StoreError::new("read", &path, kind));
            let places = places(walked.replicas);
            each(Entry { places, ..Entry::new(path, found, walked.link) })
        });
        doing("list", root).or(walked)
    }
}
