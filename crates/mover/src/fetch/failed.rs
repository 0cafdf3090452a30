//! Files that fail, begin anew, or stay for the next run.

use super::FetchError;
use super::asked::server_id;
use super::run::{Run, Stage, State};
use crate::target::Target;
use hikyaku_run_log::FileStage;
use hikyaku_store::StoreError;
use std::sync::atomic::Ordering;

impl Run<'_> {
    /// A file has an error of the store. It begins anew if the store may have another place for it.
    /// `tried` is the try of the file that had it.
    pub(super) fn fail(
        &self,
        state: &mut State<'_>,
        (number, tried): (usize, u32),
        error: StoreError,
    ) {
        let target = self.targets[number].as_ref().filter(|_| state.stages[number] != Stage::Over);
        if target.is_some_and(|target| target.tries() != tried) {
            return;
        }
        if self.job.stop.load(Ordering::Relaxed) {
            // The stop ends the connections of some stores, and then a write fails. The written part stays for the next run.
            return self.give_up(state, number, FetchError::Stopped);
        }
        let may_begin = !state.is_over && self.job.store.lost().is_none();
        let anew = target.filter(|_| may_begin);
        let anew = anew.and_then(|target| target.begins_anew(&error, self.job.tries));
        match anew {
            Some(bytes) => self.begins_anew(state, number, bytes),
            None => self.give_up(state, number, error.into()),
        }
    }

    /// A file that an earlier run began has other bytes at its source now. Two contents are not mixed.
    pub(super) fn differs(&self, state: &mut State<'_>, (number, tried): (usize, u32)) {
        let target = self.targets[number].as_ref().filter(|_| state.stages[number] != Stage::Over);
        if let Some(target) = target.filter(|target| target.tries() == tried) {
            self.begins_anew(state, number, target.anew());
        }
    }

    /// Begins a file anew. The meter subtracts the `bytes` of it that were written.
    fn begins_anew(&self, state: &mut State<'_>, number: usize, bytes: u64) {
        let target = self.targets[number].as_ref();
        self.job.meter.take_back_written(bytes);
        self.job.meter.take_back_kept(target.map_or(0, Target::take_back_kept));
        let Some(id) = self.id(number) else {
            state.whole.push(number);
            self.to_name.notify_one();
            return;
        };
        if std::mem::replace(&mut state.stages[number], Stage::Open) == Stage::Whole {
            state.open += 1;
            state.unnamed -= 1;
            state.done_since = None;
        }
        state.spread.handle_void(id);
        let rate = self.job.parameters.client.rate;
        if let Some(window) = target.and_then(|target| target.window(rate)) {
            state.spread.handle_reach(id, window);
        }
        self.wake();
    }

    /// Nothing more of a file is wanted.
    pub(super) fn give_up(&self, state: &mut State<'_>, number: usize, error: FetchError) {
        let file = &self.job.plan.files[number];
        match std::mem::replace(&mut state.stages[number], Stage::Over) {
            Stage::Over => return,
            Stage::Whole => {
                state.unnamed -= 1;
                self.wake();
            }
            Stage::Open => {
                state.open -= 1;
                // The scheduler counts the file as missing at each of its servers, and so requests it from none of
                // them.
                if let Some(id) = self.id(number) {
                    for server in &file.at {
                        state.spread.handle_missing(server_id(*server), id);
                    }
                }
            }
        }
        self.job.meter.tell_file(FileStage::Failed, file.path.as_bytes(), file.seen.size);
        let is_continued = error.leaves_the_file() || self.job.store.lost().is_some();
        state.fetched.failed.push((file.path.as_bytes().to_vec(), error));
        let Some(target) = &self.targets[number] else { return };
        if is_continued && target.is_continued() {
            target.leave();
        } else {
            target.give_up();
            self.job.meter.take_back_kept(target.take_back_kept());
            self.job.meter.take_back_written(target.take_back());
        }
    }
}
