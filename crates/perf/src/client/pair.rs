//! `--bidir`: two tests, one for each direction, that begin together and are reported together.

use super::{Measured, test};
use crate::args::ClientArgs;
use crate::log::RunLog;
use crate::output::{Output, Sink, end_both};
use crate::plan::Direction;
use crate::report::Start;
use crate::trouble;
use anyhow::{Error, Result, anyhow};
use hikyaku_console::Scope;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Where the threads of the two tests wait for each other.
#[derive(Default)]
struct PairBarrier {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    /// The last step that each test has reached, indexed by [`Direction`].
    steps: [Step; 2],
    starts: [Option<Start>; 2],
    has_failed: bool,
}

/// Steps of a test at which it waits for the other test.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub(super) enum Step {
    #[default]
    Begun,
    Connected,
    Welcomed,
}

/// One test's handle to the pair.
pub(super) struct PairMember<'a> {
    barrier: &'a PairBarrier,
    way: Direction,
    /// The name of the pair, which both tests send to the server.
    name: String,
}

/// This test could not begin because the other one failed; that one reports the reason.
#[derive(Debug)]
struct OtherFailed;

impl fmt::Display for OtherFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the other direction could not begin")
    }
}

impl std::error::Error for OtherFailed {}

impl PairBarrier {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the test of direction `way` has reached `step`.
    fn wait_for(&self, way: Direction, step: Step) -> Result<()> {
        let is_waiting = |state: &mut State| !state.has_failed && state.steps[way as usize] < step;
        let waited = self.moved.wait_while(self.state(), is_waiting);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        if state.steps[way as usize] < step { Err(Error::new(OtherFailed)) } else { Ok(()) }
    }

    fn move_on(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.moved.notify_all();
    }
}

impl PairMember<'_> {
    /// The name of the pair at the server.
    pub(super) fn name(&self) -> String {
        self.name.clone()
    }

    /// Waits until this test may connect. The upload connects first, so that the key of a new
    /// server is remembered once.
    pub(super) fn turn(&self) -> Result<()> {
        match self.way {
            Direction::Upload => Ok(()),
            Direction::Download => self.barrier.wait_for(Direction::Upload, Step::Connected),
        }
    }

    /// Marks `step` as reached and waits until the other test has reached it.
    pub(super) fn reach(&self, step: Step) -> Result<()> {
        self.barrier.move_on(|state| state.steps[self.way as usize] = step);
        self.barrier.wait_for(self.way.other(), step)
    }

    /// Marks the last step as reached and stores this test's start report. The upload prints both
    /// reports.
    pub(super) fn start(&self, start: Start, output: &Output) -> Result<()> {
        self.barrier.move_on(|state| state.starts[self.way as usize] = Some(start));
        self.reach(Step::Welcomed)?;
        if self.way == Direction::Upload
            && let [Some(up), Some(down)] = &self.barrier.state().starts
        {
            output.start_both(up, down);
        }
        Ok(())
    }
}

/// Runs two tests at once, one for each direction.
pub(super) fn run(
    args: &ClientArgs,
    scope: &Scope,
    sink: &Sink,
    log: Option<&RunLog>,
) -> Result<()> {
    let barrier = PairBarrier::default();
    let name = super::token();
    let one = |way: Direction| {
        let mut args = args.clone();
        args.plan.direction = way;
        let output = Output::one_way(sink.clone(), args.common.title.clone(), way);
        let mut output = output.with_log(log.map(|log| log.flow(&args.host, way)));
        let member = PairMember { barrier: &barrier, way, name: name.clone() };
        let measured = test(&args, scope, &mut output, Some(&member));
        if measured.is_err() {
            barrier.move_on(|state| state.has_failed = true);
        }
        (measured, output)
    };
    let (up, down) = thread::scope(|scope| {
        let thread = thread::Builder::new().name("perf-down".to_owned());
        let down = thread.spawn_scoped(scope, || one(Direction::Download));
        let down = down.map_err(trouble::no_thread)?;
        let up = one(Direction::Upload);
        let down = down.join().map_err(|_| anyhow!("the test of the other direction panicked"))?;
        Ok::<_, Error>((up, down))
    })?;
    let ((up, up_output), (down, down_output)) = (up, down);
    let starts = barrier.state().starts.clone();
    let (up, up_error) = split(up);
    let (down, down_error) = split(down);
    let errors = [up_error, down_error].into_iter().flatten();
    // If one test failed because the other could not begin, the other's error is the cause.
    let error = errors.min_by_key(|error| error.is::<OtherFailed>());
    let line = error.as_ref().map(hikyaku_console::causes);
    end_both(&starts, [(up_output, up), (down_output, down)], line);
    error.map_or(Ok(()), Err)
}

fn split(measured: Result<Measured>) -> (Option<crate::report::End>, Option<Error>) {
    match measured {
        Ok(Measured { end, broken, .. }) => (Some(end), broken),
        Err(error) => (None, Some(error)),
    }
}
