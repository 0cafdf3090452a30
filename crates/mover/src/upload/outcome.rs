//! The outcome of an upload: the results of its files, and the bytes that count as sent.

use super::queue::{GivenBack, Judged, Sending, TaskId, Turn};
use super::run::{At, Attempt, Run};
use super::source::Counted;
use super::state::State;
use crate::census::{File, ServerId};
use crate::fetch::FetchError;
use hikyaku_remote::RemoteError;
use hikyaku_run_log::FileStage;
use hikyaku_store::ErrorKind;

/// The number of tasks of a file that has failed: none of them can make it complete.
const FAILED: usize = usize::MAX;

impl Run<'_> {
    pub(super) fn moved(&self, server: ServerId, bytes: u64) {
        if self.job.source.counted == Counted::Target {
            self.job.meter.add_moved(server, bytes);
        }
    }

    /// Bytes have come by a channel of the source.
    pub(super) fn came(&self, channel: ServerId, bytes: u64) {
        if self.job.source.counted == Counted::Source {
            self.job.meter.add_moved(channel, bytes);
        }
    }

    pub(super) fn written(&self, state: &mut State, at: At, attempt: Attempt, bytes: u64) {
        let (counted, progress) = state.queue.written(attempt.id, attempt.number, bytes);
        state.links[at.server.0].backlog -= counted;
        self.job.meter.add_written(progress);
        self.moved(at.server, progress);
    }

    pub(super) fn ended(
        &self,
        state: &mut State,
        (at, attempt): (At, Attempt),
        result: Result<(), FetchError>,
    ) {
        if state.queue.turn(attempt.id, attempt.number) == Turn::Over {
            return;
        }
        let file = &self.job.plan.files[attempt.file];
        match result {
            Ok(()) => {
                if let Some((dir, _)) = file.to.split() {
                    state.links[at.server.0].touched.insert(dir);
                }
                let sent = state.queue.end(attempt.id);
                for sending in sent.main.iter().chain(&sent.trials) {
                    state.links[sending.server.0].backlog -= sending.left;
                }
                state.tasks[attempt.file] -= 1;
                if state.tasks[attempt.file] == 0 {
                    state.uploaded.files += 1;
                    state.uploaded.bytes += file.seen.size;
                    self.job.meter.add_file();
                    let path = file.to.as_bytes();
                    self.job.meter.tell_file(FileStage::End, path, file.seen.size);
                }
            }
            Err(FetchError::Server(error)) if error.is_of_server() => self.lose(state, at, error),
            Err(FetchError::Server(RemoteError::Refused {
                kind: ErrorKind::NoSpace | ErrorKind::Quota,
                ..
            })) if state.fits_elsewhere(at.server, attempt.id) => {
                let link = &mut state.links[at.server.0];
                link.full_from = link.full_from.min(file.seen.size);
                self.take_back(state, attempt.id, attempt.number);
            }
            Err(_) if state.queue.is_trial(attempt.id, attempt.number) => {
                self.take_back(state, attempt.id, attempt.number);
            }
            Err(error) => self.fail(state, attempt.id, error),
        }
    }

    /// A file's task has failed for good; what else is to be done for the file is not done.
    pub(super) fn fail(&self, state: &mut State, id: TaskId, error: FetchError) {
        let file = state.queue.task(id).file;
        let sent = state.queue.end(id);
        for trial in sent.trials {
            state.links[trial.server.0].backlog -= trial.left;
        }
        if let Some(main) = sent.main {
            self.uncount(state, id, main);
        }
        // Tasks of the same file for other servers go on: each replaces an older version.
        if std::mem::replace(&mut state.tasks[file], FAILED) < FAILED / 2 {
            let File { to, seen, .. } = &self.job.plan.files[file];
            let path = to.as_bytes();
            self.job.meter.tell_file(FileStage::Failed, path, seen.size);
            state.uploaded.failed.push((path.to_vec(), error));
        }
    }

    /// A server does not send a file any more, which waits again unless a trial of it goes on.
    pub(super) fn take_back(&self, state: &mut State, id: TaskId, attempt: u32) {
        match state.queue.give_back(id, attempt) {
            Some(GivenBack::Trial(trial)) => state.links[trial.server.0].backlog -= trial.left,
            Some(GivenBack::Main { sending, heir }) => {
                self.uncount(state, id, sending);
                heir.iter().for_each(|heir| self.count(state, id, *heir));
            }
            None => {}
        }
    }

    /// The bytes that a sending has written do not count any more.
    pub(super) fn uncount(&self, state: &mut State, id: TaskId, sending: Sending) {
        state.links[sending.server.0].backlog -= sending.left;
        let written = state.queue.task(id).size - sending.left;
        match self.job.source.counted {
            Counted::Target => self.job.meter.take_back(sending.server, written),
            Counted::Source => self.job.meter.take_back_written(written),
        }
    }

    /// The bytes that a trial has written count from now on.
    pub(super) fn count(&self, state: &State, id: TaskId, sending: Sending) {
        let written = state.queue.task(id).size - sending.left;
        self.job.meter.add_written(written);
        self.moved(sending.server, written);
    }

    /// Ends trials whose servers' rates are known.
    pub(super) fn judge(&self, state: &mut State) {
        let loads = state.loads(self.now());
        for Judged { id, loser, winner } in state.queue.judge(&loads) {
            match winner {
                Some(winner) => {
                    self.uncount(state, id, loser);
                    self.count(state, id, winner);
                }
                None => state.links[loser.server.0].backlog -= loser.left,
            }
        }
    }
}
