//! Questions about names, each of which is answered once: by the server, or by an error when its time is up.
//!
//! A question stays when the connection is lost, and is asked again over the next one.

use crate::core::Core;
use crate::crew::{Places, Told, Whole};
use crate::listings::Listing;
use crate::nodes::Seen;
use hikyaku_remote::{Edit, Listed, RemoteError};
use hikyaku_store::{ErrorKind, Space, StorePath};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Hears the answer.
pub(crate) type Done<T> = Box<dyn FnOnce(Result<T, ErrorKind>) + Send>;

/// What is asked.
pub(crate) enum What {
    /// The metadata of a path.
    Look(StorePath, Done<Seen>),
    /// The entries of a directory, and about so many entries of those below it. Whoever wants the listing waits in
    /// `list_waits`.
    List(StorePath, u32),
    /// The text of a link.
    ReadLink(StorePath, Done<Vec<u8>>),
    /// The space of the store.
    Space(Done<Space>),
    /// A change of a name or of metadata. What is heard is the metadata after it, where the server tells them.
    Edit(Edit, Done<Option<Seen>>),
}

impl What {
    /// Whether it may be asked twice: the second time changes nothing.
    const fn is_repeatable(&self) -> bool {
        match self {
            Self::Edit(edit, _) => {
                matches!(edit, Edit::SetLength { .. } | Edit::Change { .. } | Edit::Sync { .. })
            }
            _ => true,
        }
    }
}

/// A question and when its time is up.
pub(crate) struct Op {
    deadline: Instant,
    what: What,
}

/// Entries of directories below one that is listed which are told with it.
pub(crate) const AHEAD: u32 = 1024;

impl Core {
    /// Asks.
    pub(crate) fn ask(self: &Arc<Self>, what: What) {
        let deadline = Instant::now() + self.settings.timeout;
        let mut state = self.state();
        let id = state.next();
        state.ops.insert(id, Op { deadline, what });
        drop(state);
        self.start(id);
    }

    /// The metadata of a path, as the server has them from here on.
    pub(crate) fn look(
        self: &Arc<Self>,
        path: StorePath,
        done: impl FnOnce(Result<Seen, ErrorKind>) + Send + 'static,
    ) {
        self.ask(What::Look(path, Box::new(done)));
    }

    /// The entries of a directory, which may be as old as metadata may be.
    pub(crate) fn list(
        self: &Arc<Self>,
        dir: &StorePath,
        done: impl FnOnce(Result<Arc<Listing>, ErrorKind>) + Send + 'static,
    ) {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(listing) = state.listings.of(dir)
            && listing.fresh(self.settings.attr_ttl, now).is_some()
        {
            let listing = listing.clone();
            drop(state);
            return done(Ok(listing));
        }
        state.list_waits.entry(dir.clone()).or_default().push(Box::new(done));
        drop(state);
        self.list_ahead(dir);
    }

    /// Asks for the entries of a directory that a program may want soon, unless they are asked for already.
    pub(crate) fn list_ahead(self: &Arc<Self>, dir: &StorePath) {
        if self.state().lists.insert(dir.clone()) {
            self.ask(What::List(dir.clone(), AHEAD));
        }
    }

    /// Sends a question over the present connection, if there is one.
    pub(crate) fn start(self: &Arc<Self>, id: u64) {
        let state = self.state();
        let (crew, epoch) = (state.crew.clone(), state.epoch);
        if !crew.is_up() {
            return;
        }
        let Some(op) = state.ops.get(&id) else { return };
        let (core, asked) = (self.clone(), Instant::now());
        match &op.what {
            What::Look(path, _) => {
                let path = path.clone();
                drop(state);
                crew.look_then(&path, move |found| {
                    if let Some((What::Look(_, done), found)) = core.finish((id, epoch), found) {
                        done(found.map(|(found, at)| Seen { found, link: None, at, asked }));
                    }
                });
            }
            What::ReadLink(path, _) => {
                let path = path.clone();
                drop(state);
                crew.read_link_then(&path, move |text| {
                    if let Some((What::ReadLink(_, done), text)) = core.finish((id, epoch), text) {
                        done(text);
                    }
                });
            }
            What::Space(_) => {
                drop(state);
                crew.space_then(move |space| {
                    if let Some((What::Space(done), space)) = core.finish((id, epoch), space) {
                        done(space);
                    }
                });
            }
            What::Edit(edit, _) => {
                let edit = edit.clone();
                drop(state);
                crew.edit_then(edit, &[], move |found| {
                    if let Some((What::Edit(_, done), found)) = core.finish((id, epoch), found) {
                        let at = Places::only(0);
                        let seen = |found| Seen { found, link: None, at, asked };
                        done(found.map(|found| found.map(seen)));
                    }
                });
            }
            What::List(path, ahead) => {
                let (path, ahead) = (path.clone(), *ahead);
                drop(state);
                let mut parts: HashMap<StorePath, Vec<(Listed, Places)>> = HashMap::new();
                crew.list_then(&path.clone(), ahead, move |listing| match listing {
                    Ok(Told::Entries(dir, entries, whole)) => {
                        let part = parts.entry(dir.clone()).or_default();
                        part.extend(entries);
                        if whole == Whole::Yes {
                            let listed = std::mem::take(part);
                            core.listed(dir, Listing::new(listed, asked));
                        }
                    }
                    Ok(Told::End) => {
                        core.finish((id, epoch), Ok(()));
                        core.list_ended(&path, ErrorKind::Damaged);
                    }
                    Err(error) => {
                        if let Some((_, Err(kind))) = core.finish::<()>((id, epoch), Err(error)) {
                            core.list_ended(&path, kind);
                        }
                    }
                });
            }
        }
    }

    /// A directory has been listed completely.
    fn listed(&self, dir: StorePath, listing: Listing) {
        let listing = Arc::new(listing);
        let mut state = self.state();
        let waits = state.list_waits.remove(&dir).unwrap_or_default();
        state.listings.insert(dir, listing.clone());
        drop(state);
        waits.into_iter().for_each(|done| done(Ok(listing.clone())));
    }

    /// A request for listings has ended: whoever still waits for its first directory hears why.
    fn list_ended(&self, dir: &StorePath, why: ErrorKind) {
        let mut state = self.state();
        state.lists.remove(dir);
        let waits = state.list_waits.remove(dir).unwrap_or_default();
        drop(state);
        waits.into_iter().for_each(|done| done(Err(why)));
    }

    /// Takes out a question that was answered; `None` if it is asked again, or its time was up.
    fn finish<T>(
        self: &Arc<Self>,
        (id, epoch): (u64, u64),
        answer: Result<T, RemoteError>,
    ) -> Option<(What, Result<T, ErrorKind>)> {
        let answer = match answer {
            Ok(answer) => Ok(answer),
            Err(RemoteError::Refused { kind, .. }) => Err(kind),
            Err(RemoteError::Protocol(_)) => Err(ErrorKind::Damaged),
            Err(RemoteError::Closed(_)) => {
                // It is asked again when there is a connection, which may be already.
                let mut state = self.state();
                if state.ops.get(&id).is_some_and(|op| !op.what.is_repeatable()) {
                    // Nobody knows whether it was done.
                    let op = state.ops.remove(&id)?;
                    return Some((op.what, Err(ErrorKind::Unreachable)));
                }
                let is_other = state.epoch != epoch && state.crew.is_up();
                drop(state);
                if is_other {
                    self.start(id);
                }
                return None;
            }
        };
        let op = self.state().ops.remove(&id)?;
        Some((op.what, answer))
    }

    /// Fails questions whose time is up.
    pub(crate) fn expire_ops(&self, now: Instant) {
        let mut state = self.state();
        let late = state.ops.iter().filter(|(_, op)| op.deadline <= now);
        let late: Vec<u64> = late.map(|(&id, _)| id).collect();
        let late: Vec<Op> = late.iter().filter_map(|id| state.ops.remove(id)).collect();
        drop(state);
        for op in late {
            match op.what {
                What::Look(_, done) => done(Err(ErrorKind::TimedOut)),
                What::List(dir, _) => self.list_ended(&dir, ErrorKind::TimedOut),
                What::ReadLink(_, done) => done(Err(ErrorKind::TimedOut)),
                What::Space(done) => done(Err(ErrorKind::TimedOut)),
                What::Edit(_, done) => done(Err(ErrorKind::TimedOut)),
            }
        }
    }
}
