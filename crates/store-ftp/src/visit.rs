//! Walks: directories that the walk has found are listed before it comes to them.
//!
//! A server that sends listings as replies is asked for many of them together, over one session. With others a listing costs
//! some round trips and a data connection. So threads list directories, each over a session of its own. A server that accepts
//! no further session has the walk with those that are open.

use crate::convert::kind;
use crate::ftp::Ftp;
use crate::listing::Listing;
use hikyaku_fs::Name;
use hikyaku_gridftp::{Facts, FtpError, Kind as Theirs};
use hikyaku_store::{Kind, StorePath};
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
/// Directories that one session is asked for together.
const TOGETHER_MAX: usize = 32;

/// An event of a walk, for the directory that it is about.
#[derive(Debug)]
pub enum Visited<'v> {
    /// The directory has these entries, in the order of their names, and as many as `skipped` whose names cannot be used.
    Listed {
        /// The entries.
        entries: &'v mut [Item],
        /// The number of other entries.
        skipped: u64,
    },
    /// The directory was not listed, for this reason.
    Unlisted(FtpError),
}

/// An entry of a directory.
#[derive(Debug)]
pub struct Item {
    /// Its name.
    pub name: Name,
    /// Its path below the root of the store.
    pub path: StorePath,
    /// Its facts.
    pub facts: Facts,
    /// Whether it is entered. The caller may change [`Enter::Yes`] to [`Enter::No`].
    pub enter: Enter,
}

/// Whether a walk enters an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Enter {
    /// It is a directory.
    Yes,
    /// It is no directory, or the caller does not want it.
    No,
    /// It is a directory that leads back to one above it, by a link.
    Circle,
}

/// The decision of the caller after an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The walk goes on.
    Go,
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
    /// Walks the tree below the directory `root`, which has these facts: a directory comes before its subdirectories.
    pub fn visit(
        &self,
        (root, facts): (&StorePath, &Facts),
        links: Links,
        each: &mut dyn FnMut(&StorePath, Visited<'_>) -> Next,
    ) {
        let lister = Lister { ftp: self, state: Mutex::default(), changed: Condvar::new() };
        let above = Above { unique: facts.unique.clone(), above: None };
        let mut dirs = vec![(root.clone(), Arc::new(above))];
        thread::scope(|scope| {
            while let Some((dir, above)) = dirs.pop() {
                let Listing { entries, skipped } = match lister.take(&dir) {
                    Ok(listing) => listing,
                    Err(error) => match each(&dir, Visited::Unlisted(error)) {
                        Next::Go => continue,
                        Next::Again => {
                            dirs.push((dir, above));
                            continue;
                        }
                        Next::Stop => break,
                    },
                };
                let item = |(name, path, facts): (Name, StorePath, Facts)| {
                    let enter = match is_dir(&facts, links) {
                        false => Enter::No,
                        true if above.has(facts.unique.as_ref()) => Enter::Circle,
                        true => Enter::Yes,
                    };
                    Item { name, path, facts, enter }
                };
                let mut entries: Vec<Item> = entries.into_iter().map(item).collect();
                let visited = Visited::Listed { entries: &mut entries, skipped };
                if each(&dir, visited) == Next::Stop {
                    break;
                }
                let first = dirs.len();
                let below = |unique| Arc::new(Above { unique, above: Some(Arc::clone(&above)) });
                // Subdirectories leave the list in the order of their names.
                let entered = entries.into_iter().rev().filter(|item| item.enter == Enter::Yes);
                dirs.extend(entered.map(|item| (item.path, below(item.facts.unique))));
                lister.add(dirs[first..].iter().map(|(dir, _)| dir.clone()), scope);
            }
            lister.end();
        });
    }
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
        if self.ftp.lists_at_once() {
            return;
        }
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
    fn take(&self, dir: &StorePath) -> Result<Listing, FtpError> {
        let mut state = self.state();
        while state.under_way.contains(dir) {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let listed = state.listed.remove(dir);
        state.waiting.retain(|waiting| waiting != dir);
        if listed.is_none() && self.ftp.lists_at_once() {
            return self.list_with_others(dir, state);
        }
        drop(state);
        self.changed.notify_all();
        listed.map_or_else(|| self.ftp.listed(dir), Ok)
    }

    /// Lists a directory, and with it those that are wanted next.
    fn list_with_others(
        &self,
        dir: &StorePath,
        mut state: MutexGuard<'_, State>,
    ) -> Result<Listing, FtpError> {
        let room = AHEAD_MAX.saturating_sub(state.listed.len()).min(TOGETHER_MAX);
        let first = state.waiting.len().saturating_sub(room);
        let others = state.waiting.split_off(first).into_iter().rev();
        let dirs: Vec<StorePath> = std::iter::once(dir.clone()).chain(others).collect();
        let mut listed = self.ftp.listed_each(&dirs)?.into_iter().zip(dirs);
        let wanted = listed.next().map_or(Err(FtpError::Stopped), |(listed, _)| listed);
        // A directory that fails is listed again when the walk comes to it, which reports the error.
        let others = listed.filter_map(|(listed, dir)| Some((dir, listed.ok()?)));
        state.listed.extend(others);
        wanted
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
