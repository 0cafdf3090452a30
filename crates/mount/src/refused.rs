//! Changes that were confirmed to programs, and that the server refuses for a reason that may pass: its storage is full, or
//! a quota is used up.
//!
//! They are kept, and sent again. With `--stage` they stay in the journal, of which nothing is sent until the next attempt; then
//! all of it that may not be on the server's disk is sent in its order. Of what was decided under a lease, the changes of
//! each refused file are kept from the refused one on, and are made one after the other. While such files exist, the
//! mount decides nothing: further writes are requests to the server, and return its error.
//!
//! `hikyaku umount` asks whether the server has everything before it takes the mount away ([`Core::flush`]).

use crate::answer::Slot;
use crate::core::{Core, State, errno};
use crate::unconfirmed::{Call, Sent};
use bytes::Bytes;
use fuser::{Errno, ReplyXattr};
use hikyaku_console::ExitCode;
use hikyaku_remote::{Edit, RemoteError};
use hikyaku_store::{ErrorKind, Found, StorePath};
use hikyaku_units::{DataSize, counted};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

/// Refused changes that are sent again.
#[derive(Default)]
pub(crate) struct Refused {
    /// Changes that were decided here, by the number of the node.
    kept: BTreeMap<u64, Kept>,
    /// The error that keeps the journal from being sent, and its time.
    journal: Option<(ErrorKind, Instant)>,
    /// Lost writes that no call has reported, and the number of all of them.
    untold: BTreeMap<StorePath, Errno>,
    untold_count: u64,
    /// The time since which a caller waits for the next attempt, which is then made without a pause.
    urgent: Option<Instant>,
    /// Requests that wait until the server has everything, with their times.
    flushes: Vec<(Instant, Slot<ReplyXattr>)>,
}

/// Changes of a file, from the first one that was refused.
struct Kept {
    edits: VecDeque<(Edit, Bytes)>,
    why: ErrorKind,
    /// When the first one was refused last; `None` while it is being asked for.
    refused: Option<Instant>,
}

/// The writes of programs that the server does not have.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Unsent {
    /// Some of the files, and how many there are.
    pub(crate) paths: Vec<String>,
    pub(crate) files: usize,
    pub(crate) bytes: u64,
    /// Why.
    pub(crate) why: Option<String>,
    /// Whether the server has refused it.
    pub(crate) is_refused: bool,
    /// The journal that has it. Without one it is in the memory of the mount only.
    pub(crate) journal: Option<PathBuf>,
    /// Some of the files of which writes are lost, why, and how many writes there were.
    pub(crate) lost: Vec<(String, String)>,
    pub(crate) lost_count: u64,
}

/// The time between two attempts.
const PAUSE: Duration = Duration::from_secs(2);
/// Lost files that are remembered, and files that are named to the user.
const UNTOLD_MAX: usize = 1000;
const NAMED_MAX: usize = 10;
/// Characters of a path that are shown to the user.
const PATH_CHARS_MAX: usize = 300;

/// Whether the server may accept later what it refuses for this reason.
pub(crate) const fn may_pass(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NoSpace | ErrorKind::Quota | ErrorKind::Unreachable | ErrorKind::TimedOut
    )
}

impl State {
    /// Why changes of a node wait for the next attempt, if they do.
    pub(crate) fn refusal(&self, number: u64) -> Option<Errno> {
        let staged = || self.nodes.at(number).is_some_and(|node| node.staged > 0);
        let journal = || self.refused.journal.filter(|_| staged()).map(|(kind, _)| kind);
        self.refused.kept.get(&number).map(|kept| kept.why).or_else(journal).map(errno)
    }

    /// Whether nothing of the journal is sent.
    pub(crate) const fn is_held_back(&self) -> bool {
        self.refused.journal.is_some()
    }

    /// Whether this mount may decide on changes: not while some that it has decided on are refused.
    pub(crate) fn may_decide(&self) -> bool {
        self.refused.kept.is_empty()
    }

    /// Why something is not at the server, for `--status`.
    pub(crate) fn refused_because(&self) -> Option<ErrorKind> {
        let kept = self.refused.kept.values().map(|kept| kept.why).next();
        self.refused.journal.map(|(kind, _)| kind).or(kept)
    }

    /// The server has answered a change that was decided here. Whether it is kept, and made again later.
    pub(crate) fn keep_refused(
        &mut self,
        number: u64,
        (edit, bytes): (&Edit, &Bytes),
        refused: Option<ErrorKind>,
    ) -> bool {
        let is_of_file = matches!(
            edit,
            Edit::Create { .. }
                | Edit::Write { .. }
                | Edit::SetLength { .. }
                | Edit::Change { .. }
                | Edit::MakeLink { .. }
        );
        let passing = refused.filter(|&kind| may_pass(kind));
        let is_behind = self.refused.kept.contains_key(&number);
        if !is_of_file || (passing.is_none() && !is_behind) {
            return false;
        }
        let Some(node) = self.nodes.at_mut(number) else { return false };
        if node.is_stale {
            // A file that was removed here afterwards needs nothing.
            return passing.is_some() && node.held > 1;
        }
        let kept = self.refused.kept.entry(number).or_insert_with(|| {
            node.unconfirmed += 1;
            let why = passing.unwrap_or(ErrorKind::NoSpace);
            Kept { edits: VecDeque::new(), why, refused: Some(Instant::now()) }
        });
        kept.edits.push_back((edit.clone(), bytes.clone()));
        true
    }

    /// Takes out what is kept of a node.
    fn take_kept(&mut self, number: u64) -> Option<Kept> {
        let kept = self.refused.kept.remove(&number)?;
        if let Some(node) = self.nodes.at_mut(number) {
            node.unconfirmed -= 1;
        }
        Some(kept)
    }

    /// A write is lost, and no handle is left to report it.
    pub(crate) fn lost_untold(&mut self, path: &StorePath, error: Errno) {
        self.refused.untold_count += 1;
        if self.refused.untold.len() < UNTOLD_MAX {
            self.refused.untold.insert(path.clone(), error);
        }
    }

    /// A call has reported the lost writes of a file.
    pub(crate) fn told_of(&mut self, path: &StorePath) {
        if self.refused.untold.remove(path).is_some() && self.refused.untold.is_empty() {
            self.refused.untold_count = 0;
        }
    }

    /// Removes the callers that wait for a node which waits for the next attempt. Each of them receives the error.
    fn refused_waits(&mut self) -> Vec<Call> {
        let waits = std::mem::take(&mut self.writes.settle_waits);
        let (now, later): (Vec<_>, Vec<_>) =
            waits.into_iter().partition(|(number, _)| self.refusal(*number).is_some());
        self.writes.settle_waits = later;
        now.into_iter().map(|(_, call)| call).collect()
    }
}

impl Core {
    /// The server has refused a write from the journal. Nothing of it is sent for a while.
    pub(crate) fn hold_back(self: &Arc<Self>, kind: ErrorKind) {
        let Some(stage) = &self.stage else { return };
        let mut state = self.state();
        state.refused.journal = Some((kind, Instant::now()));
        let calls = state.refused_waits();
        drop(state);
        stage.give_up(errno(kind));
        calls.into_iter().for_each(|call| call());
    }

    /// Makes the next attempts.
    pub(crate) fn tend_refused(self: &Arc<Self>) {
        let urgent = self.state().refused.urgent;
        self.attempt(urgent.max(Instant::now().checked_sub(PAUSE)));
        self.tell_flushed();
    }

    /// Tries again what was refused before `since`.
    fn attempt(self: &Arc<Self>, since: Option<Instant>) {
        let Some(since) = since else { return };
        let mut state = self.state();
        if !state.crew.is_up() {
            return;
        }
        let is_due = |at: Instant| at <= since;
        // Answers that are under way belong to the attempt before.
        let stage = self.stage.as_ref().filter(|stage| !stage.is_in_flight());
        let resumed = stage.filter(|_| state.refused.journal.is_some_and(|(_, at)| is_due(at)));
        // Earlier changes under a lease are sent by another thread, and arrive first.
        let due: Vec<u64> = match state.writes.last_held() {
            Some(_) => Vec::new(),
            None => {
                let kept = state.refused.kept.iter();
                kept.filter(|(_, kept)| kept.refused.is_some_and(is_due)).map(|(&n, _)| n).collect()
            }
        };
        if resumed.is_some() {
            state.refused.journal = None;
        }
        drop(state);
        if resumed.is_some() {
            self.doubt_staged();
            let numbers = self.state().writes.numbers();
            self.outbox.replace(numbers);
        }
        due.into_iter().for_each(|number| self.make_kept(number));
    }

    /// Asks for the first kept change of a node.
    fn make_kept(self: &Arc<Self>, number: u64) {
        let mut state = self.state();
        let crew = state.crew.clone();
        let Some(node) = state.nodes.at(number) else { return };
        let (path, identity) = (node.path.clone(), node.found.identity);
        let Some(kept) = state.refused.kept.get_mut(&number) else { return };
        let Some((edit, bytes)) = kept.edits.front().cloned() else { return };
        kept.refused = None;
        drop(state);
        // The file may have another name by now.
        let path = path.as_bytes().to_vec();
        let edit = match edit {
            Edit::Create { mode, .. } => Edit::Create { path, mode },
            Edit::Write { at, length, .. } => Edit::Write { path, identity, at, length },
            Edit::SetLength { size, .. } => Edit::SetLength { path, size },
            Edit::Change { mode, modified, .. } => Edit::Change { path, mode, modified },
            Edit::MakeLink { text, .. } => Edit::MakeLink { path, text },
            other => other,
        };
        let core = self.clone();
        crew.edit_then(edit, &bytes, move |answer| core.on_kept(number, answer));
    }

    fn on_kept(self: &Arc<Self>, number: u64, answer: Result<Option<Found>, RemoteError>) {
        let mut state = self.state();
        let Some(kept) = state.refused.kept.get_mut(&number) else { return };
        match answer {
            Ok(found) => {
                kept.edits.pop_front();
                let is_last = kept.edits.is_empty();
                if let (Some(node), Some(found)) = (state.nodes.at_mut(number), found) {
                    node.found.identity = found.identity;
                }
                if is_last {
                    state.take_kept(number);
                    return self.end_kept(state, number);
                }
                drop(state);
                self.make_kept(number);
            }
            Err(RemoteError::Refused { kind, .. }) if may_pass(kind) => {
                (kept.why, kept.refused) = (kind, Some(Instant::now()));
                let calls = state.refused_waits();
                drop(state);
                calls.into_iter().for_each(|call| call());
            }
            Err(RemoteError::Closed(_)) => kept.refused = Some(Instant::now()),
            Err(RemoteError::Refused { kind, .. }) => self.lose_kept(state, number, kind),
            Err(RemoteError::Protocol(_)) => self.lose_kept(state, number, ErrorKind::Damaged),
        }
    }

    /// Nothing of a node is kept any more.
    fn end_kept(self: &Arc<Self>, mut state: MutexGuard<'_, State>, number: u64) {
        if let Some(node) = state.nodes.at_mut(number) {
            node.written = Some(Instant::now());
            let path = node.path.clone();
            state.doubt_listing(&path);
        }
        let calls = state.settled(number);
        if let Some(content) = state.nodes.prune_left(number) {
            state.pages.drop_content(content);
        }
        drop(state);
        calls.into_iter().for_each(|call| call());
    }

    /// Kept changes of a node are lost.
    fn lose_kept(self: &Arc<Self>, mut state: MutexGuard<'_, State>, number: u64, kind: ErrorKind) {
        let Some(kept) = state.take_kept(number) else { return };
        for (edit, _) in &kept.edits {
            state.lose(number, edit, errno(kind));
        }
        self.end_kept(state, number);
    }

    /// Loses what is kept in memory when the server has been away for too long.
    pub(crate) fn expire_kept(self: &Arc<Self>) {
        let numbers: Vec<u64> = self.state().refused.kept.keys().copied().collect();
        for number in numbers {
            self.lose_kept(self.state(), number, ErrorKind::TimedOut);
        }
    }

    /// A file is removed, or all its bytes are: what waits for the next attempt need not be sent. Returns whether there was
    /// something.
    pub(crate) fn drop_refused(self: &Arc<Self>, number: u64) -> bool {
        let mut state = self.state();
        if state.refusal(number).is_none() {
            return false;
        }
        state.take_kept(number);
        let stage = self.stage.as_ref().filter(|_| state.is_held_back());
        let ids = if stage.is_some() { state.writes.staged_of(number) } else { Vec::new() };
        let mut places = Vec::new();
        for id in ids {
            if let Some(Sent::Staged { place, .. }) =
                state.writes.remove(id).map(|write| write.sent)
            {
                places.push(place);
            }
        }
        let left = stage.map_or(0, |stage| stage.dropped(number, &places));
        if let Some(node) = state.nodes.at_mut(number) {
            node.unconfirmed -= places.len() as u64;
            node.staged -= places.len() as u64;
            node.journaled -= left;
        }
        self.end_kept(state, number);
        self.tend_stage();
        true
    }

    /// Answers when the server has everything, or has refused it once more.
    pub(crate) fn flush(self: &Arc<Self>, reply: Slot<ReplyXattr>) {
        let now = Instant::now();
        self.state().refused.flushes.push((now, reply));
        self.begin_flush(now);
        self.tell_flushed();
    }

    /// Sends everything as soon as that is possible.
    pub(crate) fn begin_flush(self: &Arc<Self>, now: Instant) {
        if let Some(stage) = &self.stage {
            stage.seal();
        }
        self.state().refused.urgent = Some(now);
        self.attempt(Some(now));
        self.tend_stage();
    }

    /// Whether nothing more is sent: the server has everything, or has refused the rest since then, or is away for too long.
    pub(crate) fn is_flushed(&self, since: Instant) -> bool {
        let state = self.state();
        let is_again = |at: Instant| at > since;
        let away = state.down.is_some_and(|down| down.elapsed() >= self.settings.timeout);
        let is_held_back = state.refused.journal.is_some_and(|(_, at)| is_again(at));
        let mut kept = state.refused.kept.values();
        let is_kept = kept.all(|kept| kept.refused.is_some_and(is_again));
        let is_sent = state.writes.is_empty();
        let is_confirmed = state.writes.mortal_numbers().is_empty();
        let has_unnamed = state.has_unnamed();
        drop(state);
        if has_unnamed && !away {
            return false;
        }
        match &self.stage {
            None => is_sent && is_kept,
            Some(stage) => away || (is_sent && stage.is_empty()) || (is_confirmed && is_held_back),
        }
    }

    /// Whether the mount has changes in memory that the server refuses.
    pub(crate) fn has_kept(&self) -> bool {
        !self.state().refused.kept.is_empty()
    }

    fn tell_flushed(&self) {
        let flushes = std::mem::take(&mut self.state().refused.flushes);
        for (since, reply) in flushes {
            if self.is_flushed(since) {
                let told = serde_json::to_vec(&self.unsent()).unwrap_or_default();
                reply.answer(|reply| reply.data(&told));
            } else {
                self.state().refused.flushes.push((since, reply));
            }
        }
    }

    /// The writes that the server does not have.
    pub(crate) fn unsent(&self) -> Unsent {
        let state = self.state();
        let (mut paths, mut bytes) = (BTreeSet::new(), 0);
        for (&number, kept) in &state.refused.kept {
            paths.extend(state.nodes.at(number).map(|node| node.path.clone()));
            bytes += kept.edits.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>();
        }
        let journal = self.stage.as_ref().filter(|stage| !stage.is_empty());
        if let Some(stage) = journal {
            paths.extend(stage.paths());
            bytes += stage.bytes();
        }
        let lost = state.refused.untold.iter().take(NAMED_MAX);
        Unsent {
            files: paths.len(),
            paths: paths.iter().take(NAMED_MAX).map(shown).collect(),
            bytes,
            why: state.refused_because().map(|kind| kind.to_string()),
            is_refused: state.refused_because().is_some(),
            journal: journal.map(|stage| stage.dir().to_owned()),
            lost: lost.map(|(path, error)| (shown(path), words(*error))).collect(),
            lost_count: state.refused.untold_count,
        }
    }
}

impl Unsent {
    /// An error that names what the server does not have, if there is something.
    pub(crate) fn into_result(self) -> anyhow::Result<()> {
        let mut causes = Vec::new();
        if self.files > 0 {
            let why = self.why.as_ref().map_or_else(String::new, |why| format!(" ({why})"));
            let size = DataSize::from_bytes(self.bytes);
            let files = listed(self.files, &self.paths);
            causes.push(match &self.journal {
                Some(journal) => format!(
                    "the server does not have what was written to {files}{why}; {size} of it stay in {} and \
                     are sent by the next mount with the same --stage",
                    journal.display()
                ),
                None => format!("the server does not have what was written to {files}{why}"),
            });
        }
        if self.lost_count > 0 {
            let named = self.lost.iter().map(|(path, why)| format!("{path} ({why})"));
            let names: Vec<String> = named.collect();
            let files = listed(names.len(), &names);
            causes.push(format!("{} writes are lost, to {files}", self.lost_count));
        }
        let code = match (self.lost_count, self.is_refused) {
            (0, false) => ExitCode::MayPass,
            (0, true) => ExitCode::WillFail,
            _ => ExitCode::Failed,
        };
        match causes.is_empty() {
            true => Ok(()),
            false => Err(code.error(causes.join("; "))),
        }
    }
}

/// How many files, with the names of some of them.
fn listed(count: usize, names: &[String]) -> String {
    let more = if count > names.len() { ", ..." } else { "" };
    format!("{}: {}{more}", counted(count, "file"), names.join(", "))
}

/// The end of a path, for people.
fn shown(path: &StorePath) -> String {
    let text = path.to_string();
    let long = text.char_indices().rev().nth(PATH_CHARS_MAX).map(|(at, _)| at);
    long.map_or_else(|| text.clone(), |at| format!("...{}", &text[at..]))
}

/// The words of the system for an error.
pub(crate) fn words(error: Errno) -> String {
    hikyaku_fs::words(&std::io::Error::from_raw_os_error(error.code()))
}
