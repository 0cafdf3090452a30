//! The order of a target that takes its bytes in order only, or takes them much better so: a FIFO, a device, standard output,
//! a file of a daemon, of a Gfarm file system or of a bucket. Servers send the parts of a
//! file in any order, so that those that come early wait in memory, as many as the [`window`] has room for.

use hikyaku_store::{Draft, Result, StoreError};
use hikyaku_units::{DataSize, Rate};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes behind the first missing one that servers are asked for: what 1 Gbit/s brings in a second, so that a path of that
/// rate is filled while the slowest of its servers sends what all wait for.
const WINDOW_MAX: DataSize = DataSize::from_bytes(128 << 20);
/// Those where the rate is limited are what comes in this time.
const WINDOW_TIME: Duration = Duration::from_secs(1);
/// At least the pieces of a few requests.
const WINDOW_MIN: DataSize = DataSize::from_bytes(16 << 20);

/// Bytes behind the first missing one that servers are asked for at this limit of the rate. More of them would only wait in
/// memory, and come in place of those that all wait for.
pub(crate) fn window(rate: Option<Rate>) -> DataSize {
    rate.map_or(WINDOW_MAX, |rate| rate.in_time(WINDOW_TIME).clamp(WINDOW_MIN, WINDOW_MAX))
}

/// Bytes on their way into a stream. Several threads may bring them.
#[derive(Default)]
pub(crate) struct InOrder {
    state: Mutex<State>,
    poured: Condvar,
}

#[derive(Default)]
struct State {
    /// Bytes that the stream has taken.
    taken: u64,
    /// What came early, by its place.
    early: BTreeMap<u64, Vec<u8>>,
    work: Work,
}

/// What is done with the stream.
#[derive(Default)]
enum Work {
    /// Nobody writes to it: the next bytes are missing.
    #[default]
    Waits,
    /// A thread writes to it.
    Pours,
    /// It takes nothing any more.
    Failed(StoreError),
}

impl InOrder {
    /// For a stream that has taken this number of bytes.
    pub(crate) fn from(taken: u64) -> Self {
        Self { state: State { taken, ..State::default() }.into(), ..Self::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes that the stream has taken, and whether it is being written to.
    pub(crate) fn progress(&self) -> (u64, bool) {
        let state = self.state();
        (state.taken, matches!(state.work, Work::Pours))
    }

    /// Takes the bytes at `at`. Those that come next are written, with what came early and follows them. `on_taken` is called
    /// after each piece, with its length and that of the stream: a call may write pieces for minutes while no other one is made.
    ///
    /// # Errors
    ///
    /// The stream has failed.
    pub(crate) fn write(
        &self,
        stream: &dyn Draft,
        (at, bytes): (u64, &[u8]),
        on_taken: &dyn Fn(u64, u64),
    ) -> Result<()> {
        let mut state = self.state();
        match &state.work {
            Work::Failed(error) => return Err(error.clone()),
            Work::Waits if at == state.taken => state.work = Work::Pours,
            Work::Waits | Work::Pours => {
                state.early.insert(at, bytes.to_vec());
                return Ok(());
            }
        }
        let mut piece = Cow::Borrowed(bytes);
        loop {
            let at = state.taken;
            drop(state);
            if let Err(error) = stream.write_at(at, &piece) {
                self.fail(error.clone());
                return Err(error);
            }
            let length = piece.len() as u64;
            self.state().taken = at + length;
            on_taken(length, at + length);
            state = self.state();
            if let Work::Failed(error) = &state.work {
                return Err(error.clone());
            }
            let taken = state.taken;
            match state.early.remove(&taken) {
                Some(next) => piece = Cow::Owned(next),
                None => {
                    state.work = Work::Waits;
                    self.poured.notify_all();
                    return Ok(());
                }
            }
        }
    }

    /// The stream begins anew: nothing of it was taken.
    pub(crate) fn reset(&self) {
        *self.state() = State::default();
    }

    /// Nothing is taken any more, for this reason or the first one.
    pub(crate) fn fail(&self, error: StoreError) {
        let mut state = self.state();
        if !matches!(state.work, Work::Failed(_)) {
            state.work = Work::Failed(error);
        }
        state.early.clear();
        self.poured.notify_all();
    }

    /// Waits until everything that has come is written.
    ///
    /// # Errors
    ///
    /// The stream has failed.
    pub(crate) fn wait(&self) -> Result<()> {
        let mut state = self.state();
        loop {
            match &state.work {
                Work::Failed(error) => return Err(error.clone()),
                Work::Waits => return Ok(()),
                Work::Pours => {
                    state = self.poured.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
