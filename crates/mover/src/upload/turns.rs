//! Whose turn it is: which file a stream sends next, and when.

use super::queue::{Given, Turn};
use super::run::{At, Attempt, LOOK, Run};
use super::state::State;
use std::sync::PoisonError;

impl Run<'_> {
    /// Gives a lane its next file, once there is one and the server has room; `None` when there is nothing more to do.
    pub(super) fn next(&self, at: At) -> Option<Attempt> {
        let mut state = self.state();
        loop {
            if state.is_over || state.links[at.server.0].epoch != at.epoch {
                return None;
            }
            if let Some(attempt) = self.take(&mut state, at) {
                return Some(attempt);
            }
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives a lane its next file if there is one at this moment, without waiting.
    pub(super) fn next_now(&self, at: At) -> Option<Attempt> {
        let mut state = self.state();
        let is_there = !state.is_over && state.links[at.server.0].epoch == at.epoch;
        is_there.then(|| self.take(&mut state, at)).flatten()
    }

    fn take(&self, state: &mut State, at: At) -> Option<Attempt> {
        if !state.links[at.server.0].flow.has_room() {
            return None;
        }
        let loads = state.loads(self.now());
        let Given { id, attempt, before } = state.queue.take(at.server, &loads)?;
        let (file, size) = (state.queue.task(id).file, state.queue.task(id).size);
        state.links[at.server.0].backlog += size;
        if let Some(before) = before {
            self.uncount(state, id, before);
        }
        state.busy += 1;
        Some(Attempt { id, number: attempt, file })
    }

    /// A lane has sent what it had.
    pub(super) fn idle(&self) {
        self.state().busy -= 1;
        self.changed.notify_all();
    }

    /// Waits until the server has room, and counts `bytes` as sent. `false` if the file is not to be sent to this
    /// server any more.
    pub(super) fn room(&self, at: At, attempt: Attempt, bytes: u64) -> bool {
        self.pace(at.server, bytes);
        let mut state = self.state();
        loop {
            let turn = state.turn(at, attempt);
            if turn == Turn::Over {
                return false;
            }
            let flow = &mut state.links[at.server.0].flow;
            if turn == Turn::GoOn && flow.has_room() {
                flow.sent(bytes, self.now());
                return true;
            }
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits until the server has room. `false` if the file is not to be sent there any more.
    pub(super) fn waits_for_room(&self, at: At, attempt: Attempt) -> bool {
        let mut state = self.state();
        loop {
            let turn = state.turn(at, attempt);
            match turn {
                Turn::Over => return false,
                Turn::GoOn if state.links[at.server.0].flow.has_room() => return true,
                Turn::GoOn | Turn::Wait => {}
            }
            state =
                self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Counts `bytes` as sent, for which the server had room before. `false` if the file is not to be sent to this
    /// server any more.
    pub(super) fn sends(&self, at: At, attempt: Attempt, bytes: u64) -> bool {
        self.pace(at.server, bytes);
        let mut state = self.state();
        let is_wanted = state.turn(at, attempt) != Turn::Over;
        if is_wanted {
            let now = self.now();
            state.links[at.server.0].flow.sent(bytes, now);
        }
        is_wanted
    }

    /// Whether nothing more is to be sent.
    pub(super) fn is_ended(&self) -> bool {
        self.is_stopped() || self.state().is_over
    }

    /// Hands the rest of a file to the connection. `false` if another server has the file now.
    pub(super) fn hand_over(&self, attempt: Attempt) -> bool {
        self.state().queue.hand_over(attempt.id, attempt.number)
    }
}
