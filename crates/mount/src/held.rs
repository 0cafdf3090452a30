//! Changes under write leases: they are visible in this mount at once, and sent to the server in their order.
//!
//! They are kept until the server has confirmed them. After a lost connection they are sent again, once the directories are
//! leased again. If the server refuses a change, the next use of the file returns the error, as for a lost write; the mount then
//! does not decide in that directory until it has listed it again.

use crate::ask::What;
use crate::changes::Turn;
use crate::core::{Core, State, errno};
use crate::crew::Places;
use crate::unconfirmed::{Held, Sent, Write};
use bytes::Bytes;
use fuser::Errno;
use hikyaku_remote::{Attempt, Decided, Edit, RemoteError};
use hikyaku_store::{ErrorKind, StorePath};
use std::sync::Arc;
use std::time::Instant;
use std::{io, thread};

impl Core {
    /// Starts the thread that sends the changes under leases. Another thread sends other writes, which may have to wait until
    /// another client returns its leases.
    pub(crate) fn start_telling(self: &Arc<Self>) -> io::Result<()> {
        let core = self.clone();
        let named = thread::Builder::new().name("mount-held".to_owned());
        named.spawn(move || {
            loop {
                core.send_held(core.held_outbox.next());
            }
        })?;
        Ok(())
    }

    /// Calls `then` when the server has confirmed all present changes.
    pub(crate) fn after_held(self: &Arc<Self>, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        match state.writes.last_held() {
            Some(last) => state.writes.held_waits.push((last, Box::new(then))),
            None => {
                drop(state);
                then();
            }
        }
    }

    /// Calls `then` when there is room for more changes.
    pub(crate) fn with_room(self: &Arc<Self>, then: impl FnOnce() + Send + 'static) {
        let mut state = self.state();
        if state.writes.is_full() {
            state.writes.room_waits.push_back(Box::new(then));
        } else {
            drop(state);
            then();
        }
    }

    /// Leases are granted again over a new connection: unconfirmed changes are sent once more under them.
    pub(crate) fn retake(self: &Arc<Self>) {
        let mut state = self.state();
        let dirs = state.writes.unsent_dirs();
        if dirs.is_empty() {
            return;
        }
        let left = Arc::new(std::sync::atomic::AtomicUsize::new(dirs.len()));
        for dir in &dirs {
            let (core, left) = (self.clone(), left.clone());
            let waits = state.leases.waits.entry(dir.clone()).or_default();
            waits.push(Box::new(move || {
                if left.fetch_sub(1, std::sync::atomic::Ordering::AcqRel) == 1 {
                    let mut state = core.state();
                    let numbers = state.writes.take_unsent();
                    // Whatever is left of before is among them.
                    core.held_outbox.replace(numbers);
                }
            }));
        }
        drop(state);
        // A lease that is not granted makes the server refuse what was decided under it.
        dirs.into_iter().for_each(|dir| self.ask_at_once(What::Take(dir)));
    }

    fn send_held(self: &Arc<Self>, id: u64) {
        let mut state = self.state();
        let (crew, epoch) = (state.crew.clone(), state.epoch);
        if crew.leasing().is_none() {
            return;
        }
        let Some((edit, attempt, bytes)) = state.writes.send_held(id, epoch) else { return };
        drop(state);
        let core = self.clone();
        crew.held_then((edit, attempt), &bytes, move |answer| match answer {
            Ok(decided) => core.on_decided(id, Ok(decided)),
            Err(RemoteError::Refused { kind, .. }) => core.on_decided(id, Err(kind)),
            Err(RemoteError::Protocol(_)) => core.on_decided(id, Err(ErrorKind::Damaged)),
            // It is sent again over the next connection.
            Err(RemoteError::Closed(_)) => {}
        });
    }

    /// The server has confirmed a change, or refused it.
    pub(crate) fn on_decided(self: &Arc<Self>, id: u64, answer: Result<Decided, ErrorKind>) {
        let mut state = self.state();
        let Some(write) = state.writes.remove(id) else { return };
        let Sent::Held(Held { edit, bytes, .. }) = write.sent else { return };
        let now = Instant::now();
        let (found, leased) = match &answer {
            Ok(Decided::There(found)) => (Some(*found), None),
            Ok(Decided::Leased(leased)) => (Some(leased.found), Some(leased)),
            Ok(Decided::Done) | Err(_) => (None, None),
        };
        let is_kept =
            state.keep_refused(write.node, (&edit, &bytes), answer.as_ref().err().copied());
        state.nodes.confirm(write.node, found, now);
        let inner = &mut *state;
        // For a file with unconfirmed writes, the cached metadata are older than those of the list.
        if let Some(node) =
            inner.nodes.at(write.node).filter(|node| !node.is_stale && !node.is_own())
            && let Some((dir, name)) = node.path.split()
            && let Some(names) = inner.leases.names_mut(&dir, now)
            && let Some(item) = names.get_mut(name.as_bytes())
        {
            item.found = node.found;
        }
        let mut wanted_back = None;
        // The server may have answered until here from before the change.
        state.note_told(&edit);
        if let (Edit::MakeDir { .. }, Some(dir)) = (&edit, changed_path(&edit)) {
            match leased {
                Some(leased) => {
                    wanted_back = state.leases.confirm(&dir, leased).then_some(leased.lease);
                }
                // The server has not made it, or has not leased it.
                None => state.leases.removed(&dir),
            }
        }
        if let Err(kind) = &answer
            && !is_kept
        {
            state.lose(write.node, &edit, errno(*kind));
        }
        let calls = state.settled(write.node);
        if let Some(content) = state.nodes.prune_left(write.node) {
            state.pages.drop_content(content);
        }
        drop(state);
        if let Some(number) = wanted_back {
            self.recall(number);
        }
        calls.into_iter().for_each(|call| call());
    }
}

impl State {
    /// Keeps a change that was decided here, until the server has confirmed it. It is noted in `changes` by the same call of a
    /// program, just before or after this. Returns its number, which is to be put into the outbox.
    pub(crate) fn hold(&mut self, node: u64, edit: Edit, bytes: Bytes) -> u64 {
        let id = self.next();
        let dirs = dirs_of(&edit);
        if let Some(node) = self.nodes.at_mut(node) {
            node.unconfirmed += 1;
            node.held += 1;
        }
        self.totals.held += 1;
        let before = self.changes.turn().before();
        let held = Held { edit, bytes, dirs, before, attempt: Attempt::First, sent: None };
        self.writes.insert(id, Write { node, sent: Sent::Held(held) });
        id
    }

    /// Whether a question concerns what was decided here and the server may not know.
    pub(crate) fn is_ahead_of_server(&self, what: &What) -> bool {
        // Otherwise nothing is waited for.
        let Some(there) = self.writes.before_held() else { return false };
        let is_ahead = |path: &StorePath| {
            let in_dir = path.split().is_some_and(|(dir, _)| self.writes.holds_in(&dir));
            in_dir || !self.changes.serves(path, there)
        };
        match what {
            What::ReadLink(path, ..) => is_ahead(path),
            // The time of a directory is that of the last change in it.
            What::Look(path, _) | What::List(path, _) | What::Take(path) => {
                self.writes.holds_in(path) || is_ahead(path)
            }
            What::Edit(..) => true,
            What::Space(_) => false,
        }
    }

    /// The last change that the server has made for certain, together with all before it.
    pub(crate) fn turn_there(&self) -> Turn {
        self.writes.before_held().unwrap_or_else(|| self.changes.turn())
    }

    /// The server has made, or refused, a change that was decided here.
    fn note_told(&mut self, edit: &Edit) {
        let paths = edit.paths().filter_map(|path| StorePath::new(path).ok());
        for path in paths {
            match edit {
                Edit::Write { .. }
                | Edit::Append { .. }
                | Edit::SetLength { .. }
                | Edit::Change { .. }
                | Edit::Sync { .. } => {
                    if let Some((dir, _)) = path.split() {
                        self.note_entries(&dir);
                    }
                }
                Edit::Create { .. }
                | Edit::MakeDir { .. }
                | Edit::MakeLink { .. }
                | Edit::Remove { .. }
                | Edit::Withdraw { .. }
                | Edit::Rename { .. } => self.note_change(&path),
            }
        }
    }

    /// A change was refused.
    pub(crate) fn lose(&mut self, number: u64, edit: &Edit, errno: Errno) {
        self.totals.lost += 1;
        let mut is_told = false;
        for open in self.handles.values_mut().filter(|open| open.number == number) {
            open.error = Some(errno);
            is_told = true;
        }
        if let Some(node) = self.nodes.at_mut(number).filter(|_| !is_told) {
            node.lost = Some(errno);
        }
        let Some(path) = changed_path(edit) else { return };
        if !is_told {
            self.lost_untold(&path, errno);
        }
        self.doubt_listing(&path);
        match edit {
            Edit::Create { .. } | Edit::MakeDir { .. } | Edit::MakeLink { .. } => {
                self.nodes.observe_absent(&path);
            }
            _ => self.nodes.doubt(&path),
        }
    }

    /// The metadata of a new entry until the server sends its own.
    pub(crate) fn provisional(
        &mut self,
        dir: &StorePath,
        (kind, mode, size): (hikyaku_store::Kind, u32, u64),
    ) -> hikyaku_store::Found {
        let owner = self.nodes.of_path(dir).map(|(_, node)| node.found.owner).unwrap_or_default();
        let number = self.next();
        hikyaku_store::Found {
            kind,
            size,
            allocated: 0,
            mode: mode & 0o1777,
            owner,
            modified: crate::write::now(),
            identity: hikyaku_store::Identity { device: u64::MAX, number },
            version: None,
        }
    }

    /// Where a file is that the server alone has: there is one server where leases are.
    pub(crate) const fn place() -> Places {
        Places::only(0)
    }
}

/// The path that a change makes or changes.
fn changed_path(edit: &Edit) -> Option<StorePath> {
    edit.paths().last().and_then(|path| StorePath::new(path).ok())
}

/// The directories in which a change is made.
fn dirs_of(edit: &Edit) -> Vec<StorePath> {
    let mut dirs: Vec<StorePath> =
        changed_path(edit).and_then(|path| Some(path.split()?.0)).into_iter().collect();
    if let Edit::Rename { from, .. } = edit
        && let Some((dir, _)) = StorePath::new(from).ok().and_then(|path| path.split())
        && !dirs.contains(&dir)
    {
        dirs.push(dir);
    }
    dirs
}
