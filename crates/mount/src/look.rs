//! Answers of the server about names: the only place at which they enter the nodes.
//!
//! The rule of [`crate::changes`] is kept here: an answer to a request from before a change of this mount is not used.
//! The request is repeated if a caller waits for it.

use crate::ask::What;
use crate::changes::Turn;
use crate::core::{Core, Standing, State};
use crate::listings::Listing;
use crate::nodes::{Company, Seen};
use hikyaku_store::{ErrorKind, Kind, StorePath};
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Core {
    /// Requests the metadata of a path. `note` stores the answer in the state, and `done` receives the value that `note` returns.
    pub(crate) fn look<T: 'static>(
        self: &Arc<Self>,
        path: StorePath,
        note: impl FnOnce(&mut State, Result<Seen, ErrorKind>) -> T + Send + 'static,
        done: impl FnOnce(T) + Send + 'static,
    ) {
        let (core, asked) = (self.clone(), path.clone());
        let look = move |seen: Result<Seen, ErrorKind>, sent: Turn| {
            let mut state = core.state();
            let is_told = matches!(seen, Ok(_) | Err(ErrorKind::NotFound));
            if is_told && !state.changes.serves(&path, sent) {
                drop(state);
                return core.look(path, note, done);
            }
            let noted = note(&mut state, seen);
            drop(state);
            done(noted);
        };
        self.ask(What::Look(asked, Box::new(look)));
    }

    /// Asks for the metadata of a node. The error is `Gone` if its path has another file, or none.
    pub(crate) fn look_node(
        self: &Arc<Self>,
        number: u64,
        done: impl FnOnce(Result<(), ErrorKind>) + Send + 'static,
    ) {
        let path = self.state().nodes.at(number).map(|node| node.path.clone());
        let Some(path) = path else { return done(Err(ErrorKind::Gone)) };
        let (core, asked) = (self.clone(), path.clone());
        let note = move |state: &mut State, seen: Result<Seen, ErrorKind>| {
            let looked = state.note_seen(&path, seen.clone());
            let node = state.nodes.at(number)?;
            // It was given another name meanwhile.
            let is_there = node.path == path;
            Some((is_there, state.looked(number, looked, seen)))
        };
        self.look(asked, note, move |looked| match looked {
            Some((true, looked)) => done(looked),
            Some((false, _)) => core.look_node(number, done),
            None => done(Err(ErrorKind::Gone)),
        });
    }
}

/// The path of a node, as it was before something was asked of the server for it.
pub(crate) struct At {
    pub(crate) path: StorePath,
    /// The last change of this mount then.
    turn: Turn,
}

impl Core {
    /// Calls `then` when this mount is changing neither a path nor the name of a directory above it.
    pub(crate) fn after_changes(self: &Arc<Self>, at: At, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if !state.changes.is_under_way(&at.path) {
            drop(state);
            return then();
        }
        let core = self.clone();
        state.change_waits.push(Box::new(move || core.after_changes(at, then)));
    }
}

impl State {
    /// The path of a node, before something is asked of the server for it.
    pub(crate) fn at(&self, path: StorePath) -> At {
        At { path, turn: self.changes.turn() }
    }

    /// Whether this mount has changed the name of a node, or of a directory above it, since its path was read, or is changing it:
    /// the server may not have found the node at that path.
    pub(crate) fn has_moved(&self, number: u64, at: &At) -> bool {
        let node = self.nodes.at(number).filter(|node| !node.is_stale);
        node.is_some_and(|node| node.path != at.path || !self.changes.serves(&at.path, at.turn))
    }

    /// Stores the server's metadata of a path. Returns the number of its node.
    pub(crate) fn note_seen(
        &mut self,
        path: &StorePath,
        seen: Result<Seen, ErrorKind>,
    ) -> Result<u64, ErrorKind> {
        match seen {
            Ok(seen) => Ok(self.observe(path, seen)),
            Err(kind) => {
                if kind == ErrorKind::NotFound {
                    self.observe_absent(path);
                }
                Err(kind)
            }
        }
    }

    /// Stores the server's metadata of a node after a change by this mount.
    pub(crate) fn note_node(&mut self, number: u64, seen: Seen) {
        let node = self.nodes.at(number).filter(|node| !node.is_stale);
        let Some(path) = node.map(|node| node.path.clone()) else { return };
        let seen = Seen { sent: self.changes.turn(), ..seen };
        let found = self.observe(&path, seen.clone());
        // One that has lost its path to another file is stale by that.
        let _ = self.looked(number, Ok(found), Ok(seen));
    }

    /// The result of a request for the path of a node, at which `found` is the present node. The error is `Gone` if the path
    /// has another file.
    fn looked(
        &mut self,
        number: u64,
        found: Result<u64, ErrorKind>,
        seen: Result<Seen, ErrorKind>,
    ) -> Result<(), ErrorKind> {
        let is_stale = self.nodes.at(number).is_none_or(|node| node.is_stale);
        match (found, seen) {
            (Ok(at), _) if at == number => Ok(()),
            // Another node has its path, and the same file.
            (Ok(_), Ok(seen)) if !is_stale => {
                self.go_on(number, seen).map(drop).ok_or(ErrorKind::Gone)
            }
            (Ok(_), _) | (Err(ErrorKind::NotFound), _) => Err(ErrorKind::Gone),
            (Err(kind), _) => Err(kind),
        }
    }

    /// Updates the node of a path with the server's metadata. Returns the number of the node.
    pub(crate) fn observe(&mut self, path: &StorePath, seen: Seen) -> u64 {
        let (kind, sent) = (seen.found.kind, seen.sent);
        let before = self.nodes.of_path(path).map(|(number, node)| (number, node.content));
        if !self.changes.serves(path, sent) {
            if let Some((number, _)) = before {
                return number;
            }
            let number = self.nodes.observe(path, seen);
            self.nodes.doubt(path);
            return number;
        }
        let number = self.nodes.observe(path, seen);
        if kind == Kind::Dir && !self.changes.serves_entries(path, sent) {
            self.nodes.doubt(path);
        }
        match before {
            Some((old, content)) if old != number => {
                self.doubt_listing(path);
                if self.nodes.at(old).is_none() {
                    self.pages.drop_content(content);
                }
            }
            Some((_, content)) => self.renew_readers(number, content),
            None => {}
        }
        number
    }

    /// A file that several hosts use continues with the server's content. Returns whether the kernel has pages of another
    /// content; `None` if the path has another file.
    pub(crate) fn go_on(&mut self, number: u64, seen: Seen) -> Option<Pages> {
        let before = self.nodes.at(number)?.content;
        let pages = self.nodes.go_on(number, seen)?;
        for handle in self.handles.values_mut().filter(|handle| handle.number == number) {
            handle.standing = Standing::Present;
        }
        self.renew_readers(number, before);
        Some(pages)
    }

    /// The node of a removed file continues with the present file of its name. Programs that have the removed one open read
    /// nothing of the new one.
    pub(crate) fn succeed(
        &mut self,
        (number, path): (u64, &StorePath),
        seen: Seen,
    ) -> Option<Company> {
        let node = self.nodes.at(number).filter(|node| node.path == *path)?;
        let before = node.content;
        let company = self.nodes.succeed(number, seen)?;
        for handle in self.handles.values_mut().filter(|handle| handle.number == number) {
            handle.standing = Standing::Outdated;
        }
        self.renew_readers(number, before);
        Some(company)
    }

    /// The content of a node may have changed: its handles go on with the new one.
    fn renew_readers(&mut self, number: u64, before: hikyaku_read_ahead::Content) {
        let Some(node) = self.nodes.at(number).filter(|node| node.content != before) else {
            return;
        };
        let size = node.found.size;
        self.pages.drop_content(before);
        for handle in self.handles.values_mut().filter(|handle| handle.number == number) {
            handle.reader.set_size(size);
            handle.reader.handle_lost(0);
        }
    }

    /// The server has no such path.
    pub(crate) fn observe_absent(&mut self, path: &StorePath) {
        self.nodes.observe_absent(path);
        let listed = path
            .split()
            .and_then(|(dir, name)| Some(self.listings.of(&dir)?.find(name.as_bytes()).is_some()));
        if listed == Some(true) {
            self.doubt_listing(path);
        }
    }

    /// This mount has changed a name: what was asked for before that is not used for it.
    pub(crate) fn note_change(&mut self, path: &StorePath) {
        self.changes.name(path);
        self.listings.remove_within(path);
        if let Some((dir, _)) = path.split() {
            self.listings.remove(&dir);
        }
        self.prune_changes();
    }

    /// The server has changed a name for this mount, or has refused to: what is known of its directory is asked for again.
    pub(crate) fn note_change_there(&mut self, path: &StorePath) {
        self.note_change(path);
        if let Some((dir, _)) = path.split() {
            self.leases.doubt(&dir);
            // It has another time.
            self.nodes.doubt(&dir);
            if let Some(node) = self.nodes.of_path_mut(&dir) {
                let (shown, now) = (node.found.modified, crate::write::now());
                node.found.modified = node.touched.give_again(shown, now);
            }
        }
    }

    /// An entry of a directory is not as it was listed.
    pub(crate) fn doubt_listing(&mut self, path: &StorePath) {
        if let Some((dir, _)) = path.split() {
            self.leases.doubt(&dir);
            self.note_entries(&dir);
        }
    }

    /// An entry of this directory has changed: listings that were asked for before that are not used.
    pub(crate) fn note_entries(&mut self, dir: &StorePath) {
        self.changes.entries(dir);
        self.listings.remove(dir);
        self.prune_changes();
    }

    fn prune_changes(&mut self) {
        if self.changes.is_full() {
            let oldest = self.ops.values().map(|op| op.sent).min();
            self.changes.prune(oldest.unwrap_or_else(|| self.turn_there()));
        }
    }

    /// Whether a listing holds for calls that begin now, which was asked for then.
    pub(crate) fn serves_entries(&self, dir: &StorePath, sent: Turn) -> bool {
        self.changes.serves_entries(dir, sent) && !self.writes.holds_in(dir)
    }

    /// The metadata of a path in the listing of its directory, if that may still be used.
    pub(crate) fn listed(&self, path: &StorePath, limit: Duration, now: Instant) -> Option<Seen> {
        let (dir, name) = path.split()?;
        if self.nodes.of_path(path).is_some_and(|(_, node)| node.is_doubted) {
            return None;
        }
        if let Some(names) = self.leases.names(&dir, now) {
            // The time of a directory changes with its entries, which this lease does not cover.
            let item = names.get(name.as_bytes()).filter(|item| item.found.kind != Kind::Dir)?;
            return Some(item.seen((now, self.changes.turn())));
        }
        let listing = self.listings.of(&dir)?;
        self.listing_fresh(&dir, listing, limit, now)?;
        Some(listing.seen(listing.find(name.as_bytes())?))
    }

    /// How long a listing of a directory may be used.
    pub(crate) fn listing_fresh(
        &self,
        dir: &StorePath,
        listing: &Listing,
        limit: Duration,
        now: Instant,
    ) -> Option<Duration> {
        listing.fresh(limit, now).or_else(|| self.covers(dir, listing, now).then_some(limit))
    }

    /// Whether a listing of a directory holds because of a lease.
    pub(crate) fn covers(&self, dir: &StorePath, listing: &Listing, now: Instant) -> bool {
        self.leases.since(dir, now).is_some_and(|since| listing.asked >= since)
    }
}

/// Whether the kernel has pages of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pages {
    /// Those of the present content, or none.
    Right,
    /// It may have some of another content.
    Other,
}
