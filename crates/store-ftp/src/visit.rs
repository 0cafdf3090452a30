//! Walks: several directories are listed at once, each over a session of its own.
//!
//! A listing costs some round trips and a data connection. So threads list directories that the walk has found before it
//! comes to them. A server that accepts no further session has the walk with those that are open.

use crate::convert::kind;
use crate::ftp::Ftp;
use crate::listing::Listing;
use hikyaku_gridftp::{Facts, FtpError, Kind as Theirs};
use hikyaku_store::{Kind, Result, StorePath, doing};
use hikyaku_transfer::Links;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

/// Threads that list directories, beside the caller's.
const THREADS_MAX: usize = 7;
/// A thread is started for each of these directories that wait: a session costs as much as some listings.
const DIRS_OF_THREAD: usize = 4;
/// Directories that are listed before the walk comes to them.
const AHEAD_MAX: usize = 64;

/// An event of a walk, for the path that it is about.
#[derive(Debug)]
pub enum Visited {
    /// The path has these facts.
    Entry(Facts),
    /// The path is a directory that leads back to one above it, by a link. It is not entered.
    Circle,
    /// The path is a directory that was not listed, for this reason.
    Unlisted(FtpError),
    /// The path is a directory with an entry whose name cannot be part of a path.
    BadName,
}

/// The decision of the caller after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The walk goes on, also into this entry if it is a directory.
    Go,
    /// The entry is not entered.
    Skip,
    /// A directory that was not listed is listed again.
    Again,
    /// The walk ends.
    Stop,
}

/// The directories from an entry up to the root of the walk, by what identifies each.
struct Above {
    unique: Option<String>,
    above: Option<Arc<Self>>,
}

impl Above {
    fn has(&self, unique: Option<&String>) -> bool {
        let Some(wanted) = unique else { return false };
        self.unique.as_ref() == Some(wanted)
            || self.above.as_ref().is_some_and(|above| above.has(unique))
    }
}

impl Ftp {
    /// Walks the tree at and below `root`: a directory comes before its entries, all entries of a directory come together in
    /// the order of their names, and before those of its subdirectories.
    ///
    /// # Errors
    ///
    /// `root` does not exist, or the server cannot be asked for it.
    pub fn visit(
        &self,
        root: &StorePath,
        links: Links,
        each: &mut dyn FnMut(&StorePath, Visited) -> Next,
    ) -> Result<()> {
        let facts = self.facts(doing("look at", root))?;
        let is_dir = *root == StorePath::ROOT || is_dir(&facts, links);
        let unique = facts.unique.clone();
        if each(root, Visited::Entry(facts)) != Next::Go || !is_dir {
            return Ok(());
        }
        let lister = Lister { ftp: self, state: Mutex::default(), changed: Condvar::new() };
        let mut dirs = vec![(root.clone(), Above { unique, above: None })];
        thread::scope(|scope| {
            while let Some((dir, above)) = dirs.pop() {
                let first = dirs.len();
                if visit_dir(&lister, (&dir, above), links, (each, &mut dirs)) == Next::Stop {
                    break;
                }
                // Subdirectories leave the list in the order of their names.
                dirs[first..].reverse();
                lister.add(dirs[first..].iter().map(|(dir, _)| dir.clone()), scope);
            }
            lister.end();
        });
        Ok(())
    }
}

/// Reports the entries of a directory, and adds its subdirectories to `dirs`.
fn visit_dir(
    lister: &Lister<'_>,
    (dir, above): (&StorePath, Above),
    links: Links,
    (each, dirs): (&mut dyn FnMut(&StorePath, Visited) -> Next, &mut Vec<(StorePath, Above)>),
) -> Next {
    let Listing { entries, skipped } = loop {
        match lister.take(dir) {
            Ok(listing) => break listing,
            Err(error) => match each(dir, Visited::Unlisted(error)) {
                Next::Again => {}
                next => return next,
            },
        }
    };
    let above = Arc::new(above);
    for (_, path, facts) in entries {
        let (is_dir, unique) = (is_dir(&facts, links), facts.unique.clone());
        let is_circle = is_dir && above.has(unique.as_ref());
        let visited = if is_circle { Visited::Circle } else { Visited::Entry(facts) };
        match each(&path, visited) {
            Next::Stop => return Next::Stop,
            Next::Go if is_dir && !is_circle => {
                dirs.push((path, Above { unique, above: Some(Arc::clone(&above)) }));
            }
            Next::Go | Next::Skip | Next::Again => {}
        }
    }
    if skipped > 0 { each(dir, Visited::BadName) } else { Next::Go }
}

/// Whether an entry is a directory that a walk may enter.
fn is_dir(facts: &Facts, links: Links) -> bool {
    match links {
        Links::Kept => kind(facts) == Kind::Dir,
        Links::Followed => facts.kind == Theirs::Directory,
    }
}

/// Lists directories, some of them before they are wanted.
struct Lister<'a> {
    ftp: &'a Ftp,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Directories that no thread lists. The last one is wanted first.
    waiting: Vec<StorePath>,
    under_way: HashSet<StorePath>,
    listed: HashMap<StorePath, Listing>,
    threads: usize,
    sessions: Sessions,
    is_over: bool,
}

/// Whether the server accepts another session.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Sessions {
    #[default]
    More,
    NoMore,
}

impl Lister<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds directories; the last one is wanted first.
    fn add<'scope>(
        &'scope self,
        dirs: impl Iterator<Item = StorePath>,
        scope: &'scope Scope<'scope, '_>,
    ) {
        let mut state = self.state();
        state.waiting.extend(dirs);
        while state.sessions == Sessions::More
            && state.threads < THREADS_MAX
            && state.waiting.len() > DIRS_OF_THREAD * (state.threads + 1)
        {
            // Without a thread more the others list.
            let named = thread::Builder::new().name("ftp-lists".to_owned());
            if named.spawn_scoped(scope, || self.list_ahead()).is_err() {
                break;
            }
            state.threads += 1;
        }
        drop(state);
        self.changed.notify_all();
    }

    /// A directory. The caller lists it if no thread has done or begun that, or if a thread has failed.
    fn take(&self, dir: &StorePath) -> std::result::Result<Listing, FtpError> {
        let mut state = self.state();
        while state.under_way.contains(dir) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let listed = state.listed.remove(dir);
        state.waiting.retain(|waiting| waiting != dir);
        drop(state);
        self.changed.notify_all();
        listed.map_or_else(|| self.ftp.listed(dir), Ok)
    }

    /// The walk is over.
    fn end(&self) {
        self.state().is_over = true;
        self.changed.notify_all();
    }

    /// Lists directories until the walk is over.
    fn list_ahead(&self) {
        if self.ftp.open_another().is_err() {
            self.state().sessions = Sessions::NoMore;
            return;
        }
        let mut state = self.state();
        while !state.is_over {
            let has_room = state.listed.len() + state.under_way.len() < AHEAD_MAX;
            let Some(dir) = state.waiting.pop_if(|_| has_room) else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            state.under_way.insert(dir.clone());
            drop(state);
            let listed = self.ftp.listed(&dir);
            state = self.state();
            state.under_way.remove(&dir);
            state.listed.extend(listed.ok().map(|listing| (dir, listing)));
            self.changed.notify_all();
        }
    }
}
