//! Walks: many directories are listed at once.
//!
//! Requests are answered in their order, so the oldest one is awaited and its answer brings new requests. No thread is
//! needed for each directory.

use crate::convert::reason;
use crate::listing::{Listed, Listing};
use crate::store::Sftp;
use hikyaku_sftp::{Failed, Request, Ticket};
use hikyaku_store::{Entry, ErrorKind, Found, Kind, Result, Store, StoreError, StorePath};
use std::collections::VecDeque;
use std::ops::ControlFlow;

/// Directories that are open at the server at once.
const OPEN_MAX: usize = 32;

/// A request that is under way.
enum Step {
    Open(StorePath, Ticket),
    Read(StorePath, Listing),
    /// The text of a link that was found.
    Link(StorePath, Found, Ticket),
    /// The metadata of an entry of which a listing has only the name.
    Look(StorePath, Ticket),
}

/// Why a walk ends early.
enum End {
    /// The caller wants no more.
    Enough,
    Lost(StoreError),
}

type Flow = std::result::Result<(), End>;

struct Walk<'a> {
    store: &'a Sftp,
    each: &'a mut dyn FnMut(Entry) -> ControlFlow<()>,
    /// Directories that are to be listed. The last one comes first, so that few wait.
    pending: Vec<StorePath>,
    under_way: VecDeque<Step>,
    open: usize,
}

/// Walks the tree at and below `root`.
pub(crate) fn walk(
    store: &Sftp,
    root: &StorePath,
    each: &mut dyn FnMut(Entry) -> ControlFlow<()>,
) -> Result<()> {
    let found = store.look(root)?;
    let (pending, under_way) = (Vec::new(), VecDeque::new());
    let mut walk = Walk { store, each, pending, under_way, open: 0 };
    let done = walk.found(root.clone(), found).and_then(|()| walk.run());
    walk.close();
    match done {
        Ok(()) | Err(End::Enough) => Ok(()),
        Err(End::Lost(error)) => Err(error),
    }
}

impl Walk<'_> {
    fn run(&mut self) -> Flow {
        loop {
            while self.open < OPEN_MAX
                && let Some(dir) = self.pending.pop()
            {
                let ticket = self.store.ask_for_dir(&dir);
                self.under_way.push_back(Step::Open(dir, ticket));
                self.open += 1;
            }
            match self.under_way.pop_front() {
                Some(step) => self.step(step)?,
                None => return Ok(()),
            }
        }
    }

    fn step(&mut self, step: Step) -> Flow {
        let store = self.store;
        let client = &store.inner.client;
        match step {
            Step::Open(dir, ticket) => match Listing::opened(self.store, ticket) {
                Ok(listing) => {
                    self.under_way.push_back(Step::Read(dir, listing));
                    Ok(())
                }
                Err(failed) => {
                    self.open -= 1;
                    self.unlisted(&dir, &failed)
                }
            },
            Step::Read(dir, listing) => self.read(dir, listing),
            Step::Link(path, found, ticket) => {
                let text = client.answer(ticket).name();
                let (found, link) = match text {
                    Ok(text) => (Ok(found), Some(text)),
                    Err(failed) => (self.failed("read the link", &path, &failed), None),
                };
                self.report(Entry::new(path, found, link))
            }
            Step::Look(path, ticket) => match client.answer(ticket).attributes() {
                Ok(attributes) => match self.store.of_entry(&path, &attributes) {
                    Ok(found) => self.found(path, found),
                    Err(kind) => self.refused("look at", path, kind),
                },
                // It was removed meanwhile.
                Err(failed) if failed.is_absent() => Ok(()),
                Err(failed) => self.refused("look at", path, reason(&failed)),
            },
        }
    }

    fn read(&mut self, dir: StorePath, mut listing: Listing) -> Flow {
        let entries = match listing.next(self.store) {
            Ok(Some(entries)) => entries,
            ended => {
                listing.close(self.store);
                self.open -= 1;
                return ended.map_or_else(|failed| self.unlisted(&dir, &failed), |_| Ok(()));
            }
        };
        let mut done = Ok(());
        for entry in &entries {
            done = match Listed::of(self.store, &dir, entry) {
                Listed::Hidden => continue,
                Listed::Unusable => self.report(Entry::of_bad_name(&dir)),
                Listed::Item(name, found) => match dir.join(&name) {
                    Ok(path) => self.found(path, found),
                    Err(_) => self.report(Entry::of_bad_name(&dir)),
                },
                Listed::Bare(name) => match dir.join(&name) {
                    Ok(path) => {
                        let at = self.store.at(&path);
                        let ticket = self.store.inner.client.ask(&Request::LStat(&at));
                        self.under_way.push_back(Step::Look(path, ticket));
                        Ok(())
                    }
                    Err(_) => self.report(Entry::of_bad_name(&dir)),
                },
            };
            if done.is_err() {
                break;
            }
        }
        self.under_way.push_back(Step::Read(dir, listing));
        done
    }

    /// Reports an entry, at once or when the text of the link is known.
    fn found(&mut self, path: StorePath, found: Found) -> Flow {
        match found.kind {
            Kind::Link => {
                let at = self.store.at(&path);
                let ticket = self.store.inner.client.ask(&Request::ReadLink(&at));
                self.under_way.push_back(Step::Link(path, found, ticket));
                return Ok(());
            }
            Kind::Dir => self.pending.push(path.clone()),
            Kind::File | Kind::Special => {}
        }
        self.report(Entry::new(path, Ok(found), None))
    }

    /// A directory was not listed to its end.
    fn unlisted(&mut self, dir: &StorePath, failed: &Failed) -> Flow {
        let found = self.failed("list", dir, failed);
        match found {
            Err(error) if failed.is_end() => Err(End::Lost(error)),
            found => self.report(Entry::new(dir.clone(), found, None)),
        }
    }

    fn failed(&self, what: &'static str, path: &StorePath, failed: &Failed) -> Result<Found> {
        Err(StoreError::new(what, path, self.store.why_not_used(path, failed)))
    }

    fn refused(&mut self, what: &'static str, path: StorePath, kind: ErrorKind) -> Flow {
        let error = StoreError::new(what, &path, kind);
        match kind {
            ErrorKind::Unreachable => Err(End::Lost(error)),
            _ => self.report(Entry::new(path, Err(error), None)),
        }
    }

    fn report(&mut self, entry: Entry) -> Flow {
        match (self.each)(entry) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(End::Enough),
        }
    }

    /// Closes the directories of a walk that has ended early.
    fn close(&mut self) {
        for step in self.under_way.drain(..) {
            match step {
                Step::Open(_, ticket) => {
                    if let Ok(listing) = Listing::opened(self.store, ticket) {
                        listing.close(self.store);
                    }
                }
                Step::Read(_, listing) => listing.close(self.store),
                Step::Link(..) | Step::Look(..) => {}
            }
        }
    }
}
