//! Questions about names, each of which is answered once: by the server, or by an error when its time is up.
//!
//! A question stays when the connection is lost, and is asked again over the next one.

use crate::changes::Turn;
use crate::core::{Core, State};
use crate::crew::{Crew, Places, Told, Whole};
use crate::listings::Listing;
use crate::nodes::Seen;
use hikyaku_remote::{Edit, Extent, Leased, Listed, RemoteError};
use hikyaku_store::{ErrorKind, Space, StorePath};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

/// Receives the answer.
pub(crate) type Done<T> = Box<dyn FnOnce(Result<T, ErrorKind>) + Send>;

/// Receives the metadata of a path, and the last change of this mount that the server had made when the request was sent.
pub(crate) type OnLooked = Box<dyn FnOnce(Result<Seen, ErrorKind>, Turn) + Send>;

/// The kind of a request.
pub(crate) enum What {
    /// The metadata of a path.
    Look(StorePath, OnLooked),
    /// The entries of a directory, and about this number of entries of the directories below it. Callers that need the
    /// listing wait in `list_waits`.
    List(StorePath, u32),
    /// The entries of a directory, and a lease for writing of it.
    Take(StorePath),
    /// The text of a link, and the servers that have it.
    ReadLink(StorePath, Places, Done<Vec<u8>>),
    /// The space of the store.
    Space(Done<Space>),
    /// A change of a name or of metadata. The answer is the metadata after it, if the server sends them.
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
    /// The last change of this mount that the server had made when it was sent.
    pub(crate) sent: Turn,
    what: What,
}

/// Entries of directories below a listed one that the server sends with it.
pub(crate) const AHEAD: u32 = 1024;

impl Core {
    /// Asks.
    pub(crate) fn ask(self: &Arc<Self>, what: What) {
        let state = self.state();
        if state.is_ahead_of_server(&what) {
            drop(state);
            // The server is asked when it knows what was decided here.
            let core = self.clone();
            return self.after_held(move || core.ask(what));
        }
        drop(state);
        self.ask_at_once(what);
    }

    /// Asks, whatever the server does not know yet.
    pub(crate) fn ask_at_once(self: &Arc<Self>, what: What) {
        let deadline = Instant::now() + self.settings.timeout;
        let mut state = self.state();
        state.totals.asked += 1;
        let id = state.next();
        let sent = state.turn_there();
        state.ops.insert(id, Op { deadline, sent, what });
        drop(state);
        self.start(id);
    }

    /// The entries of a directory, which may be as old as metadata may be.
    pub(crate) fn list(
        self: &Arc<Self>,
        dir: &StorePath,
        done: impl FnOnce(Result<Arc<Listing>, ErrorKind>) + Send + 'static,
    ) {
        let now = Instant::now();
        let mut state = self.state();
        if let Some(listing) = state.own_listing(dir, now) {
            drop(state);
            return done(Ok(Arc::new(listing)));
        }
        if let Some(listing) = state.listings.of(dir)
            && state.listing_fresh(dir, listing, self.settings.attr_ttl, now).is_some()
        {
            let listing = listing.clone();
            drop(state);
            return done(Ok(listing));
        }
        let began = state.changes.turn();
        state.list_waits.entry(dir.clone()).or_default().push((began, Box::new(done)));
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
        let mut state = self.state();
        let (crew, epoch) = (state.crew.clone(), state.epoch);
        if !crew.is_up() {
            return;
        }
        let (asked, sent) = (Instant::now(), state.turn_there());
        let Some(op) = state.ops.get_mut(&id) else { return };
        op.sent = sent;
        let core = self.clone();
        match &op.what {
            What::Look(path, _) => {
                let path = path.clone();
                drop(state);
                crew.look_then(&path, move |found| {
                    if let Some((What::Look(_, done), found)) = core.finish((id, epoch), found) {
                        let seen = |(found, at)| Seen { found, link: None, at, asked, sent };
                        done(found.map(seen), sent);
                    }
                });
            }
            What::ReadLink(path, at, _) => {
                let (path, at) = (path.clone(), *at);
                drop(state);
                crew.read_link_then(&path, at, move |text| {
                    if let Some((What::ReadLink(.., done), text)) = core.finish((id, epoch), text) {
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
                        let at = State::place();
                        let seen = |found| Seen { found, link: None, at, asked, sent };
                        done(found.map(|found| found.map(seen)));
                    }
                });
            }
            What::Take(path) => {
                let path = path.clone();
                drop(state);
                core.start_take((id, epoch), &crew, path, (asked, sent));
            }
            What::List(path, ahead) => {
                let (path, ahead) = (path.clone(), *ahead);
                drop(state);
                let mut parts: HashMap<StorePath, Vec<(Listed, Places)>> = HashMap::new();
                let mut leases: HashMap<StorePath, Leased> = HashMap::new();
                let mut is_told = false;
                crew.list_then(
                    &path.clone(),
                    (Extent::Read, ahead),
                    move |listing| match listing {
                        Ok(Told::Leased(dir, leased)) => drop(leases.insert(dir, leased)),
                        Ok(Told::Entries(dir, entries, whole)) => {
                            let part = parts.entry(dir.clone()).or_default();
                            part.extend(entries);
                            if whole == Whole::Yes {
                                is_told |= dir == path;
                                let listed = std::mem::take(part);
                                let leased = leases.remove(&dir);
                                core.listed((dir, listed), leased, (asked, sent));
                            }
                        }
                        Ok(Told::End) => {
                            core.finish((id, epoch), Ok(()));
                            match is_told {
                                true => core.list_again(&path),
                                false => core.list_ended(&path, ErrorKind::Damaged, sent),
                            }
                        }
                        Err(error) => {
                            if let Some((_, Err(kind))) = core.finish::<()>((id, epoch), Err(error))
                            {
                                core.list_ended(&path, kind, sent);
                            }
                        }
                    },
                );
            }
        }
    }

    /// Asks for a lease for writing, with the entries of the directory.
    fn start_take(
        self: &Arc<Self>,
        (id, epoch): (u64, u64),
        crew: &Crew,
        path: StorePath,
        when: (Instant, Turn),
    ) {
        let core = self.clone();
        let (mut parts, mut lease, mut is_whole) = (Vec::new(), None, false);
        let dir = path.clone();
        crew.list_then(&path, (Extent::Write, 0), move |listing| match listing {
            Ok(Told::Leased(_, leased)) => lease = Some(leased),
            Ok(Told::Entries(_, entries, whole)) => {
                parts.extend(entries);
                is_whole |= whole == Whole::Yes;
            }
            Ok(Told::End) => {
                if core.finish((id, epoch), Ok(())).is_some() {
                    let listing = Listing::new(std::mem::take(&mut parts), when);
                    let listing = is_whole.then_some(listing);
                    core.taken(&dir, lease.as_ref(), listing);
                }
            }
            Err(error) => {
                if core.finish::<()>((id, epoch), Err(error)).is_some() {
                    core.taken(&dir, lease.as_ref(), None);
                }
            }
        });
    }

    /// A directory has been listed completely.
    fn listed(
        self: &Arc<Self>,
        (dir, listed): (StorePath, Vec<(Listed, Places)>),
        leased: Option<Leased>,
        (asked, sent): (Instant, Turn),
    ) {
        if let Some(leased) = &leased {
            self.lease_listed(&dir, leased, (asked, sent));
        }
        let mut state = self.state();
        let serves = state.serves_entries(&dir, sent);
        // Answers under a lease that is still held are valid at this time.
        let now = Instant::now();
        let is_leased = leased.is_some() && state.leases.since(&dir, now).is_some() && serves;
        let asked = if is_leased { now } else { asked };
        let listing = Arc::new(Listing::new(listed, (asked, sent)));
        let holds = state.writes.holds_in(&dir);
        let waits = state.list_waits.remove(&dir).unwrap_or_default();
        // A call that began before the question was sent may see the directory as it was at any time since.
        let (told, later): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|(began, _)| serves || (*began <= sent && !holds));
        if !later.is_empty() {
            state.list_waits.insert(dir.clone(), later);
        }
        if serves {
            state.listings.insert(dir, listing.clone());
        }
        drop(state);
        told.into_iter().for_each(|(_, done)| done(Ok(listing.clone())));
    }

    /// A request for listings has ended. Callers that began to wait after its first directory had arrived, and that could not
    /// use the cached listing, wait for another request.
    fn list_again(self: &Arc<Self>, dir: &StorePath) {
        let mut state = self.state();
        state.lists.remove(dir);
        let is_waited_for = state.list_waits.contains_key(dir);
        drop(state);
        if is_waited_for {
            self.list_ahead(dir);
        }
    }

    /// A request for listings has failed: callers that wait for its first directory receive the error.
    fn list_ended(self: &Arc<Self>, dir: &StorePath, why: ErrorKind, sent: Turn) {
        let mut state = self.state();
        let serves = state.changes.serves(dir, sent);
        let waits = state.list_waits.remove(dir).unwrap_or_default();
        let (told, later): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|(began, _)| serves || *began <= sent);
        if !later.is_empty() {
            state.list_waits.insert(dir.clone(), later);
        }
        drop(state);
        told.into_iter().for_each(|(_, done)| done(Err(why)));
        self.list_again(dir);
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
                    // Whether the server has made the change is unknown.
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
}

impl State {
    /// Takes out the questions for leases; returns their directories.
    pub(crate) fn drop_takes(&mut self) -> Vec<StorePath> {
        let take = |(&id, op): (&u64, &Op)| match &op.what {
            What::Take(dir) => Some((id, dir.clone())),
            _ => None,
        };
        let takes: Vec<(u64, StorePath)> = self.ops.iter().filter_map(take).collect();
        takes.iter().for_each(|(id, _)| drop(self.ops.remove(id)));
        takes.into_iter().map(|(_, dir)| dir).collect()
    }
}

#[cfg(test)]
impl State {
    /// Takes out a question for metadata.
    pub(crate) fn take_look(&mut self) -> Option<(StorePath, Turn, OnLooked)> {
        let mut ops = self.ops.iter();
        let (&id, _) = ops.find(|(_, op)| matches!(op.what, What::Look(..)))?;
        let op = self.ops.remove(&id)?;
        match op.what {
            What::Look(path, done) => Some((path, op.sent, done)),
            _ => None,
        }
    }
}

impl Core {
    /// Fails questions whose time is up.
    pub(crate) fn expire_ops(self: &Arc<Self>, now: Instant) {
        let mut state = self.state();
        let late = state.ops.iter().filter(|(_, op)| op.deadline <= now);
        let late: Vec<u64> = late.map(|(&id, _)| id).collect();
        let late: Vec<Op> = late.iter().filter_map(|id| state.ops.remove(id)).collect();
        drop(state);
        for op in late {
            match op.what {
                What::Look(_, done) => done(Err(ErrorKind::TimedOut), op.sent),
                What::List(dir, _) => {
                    let all = self.state().changes.turn();
                    self.list_ended(&dir, ErrorKind::TimedOut, all);
                }
                What::Take(dir) => self.taken(&dir, None, None),
                What::ReadLink(.., done) => done(Err(ErrorKind::TimedOut)),
                What::Space(done) => done(Err(ErrorKind::TimedOut)),
                What::Edit(_, done) => done(Err(ErrorKind::TimedOut)),
            }
        }
    }
}
