//! Signals that end a command: SIGINT, SIGTERM and SIGHUP.
//!
//! A process has one [`Interrupt`]. Each piece of work that can be stopped alone, such as a copy, has a [`Scope`] of it.
//! Whatever must end with the work is registered with the scope: an action that is called, or a child process that gets
//! the signal. The first signal stops all scopes, and the second ends the process by its default action. If no action
//! is registered, the first signal ends the process as well, because nothing would end in response to it.
//!
//! A scope that is stopped by [`Scope::stop`] or [`Interrupt::stop`] leaves the others alone.

mod child;
#[cfg(test)]
mod tests;

use crate::exit_code::{Exit, ExitCode};
use child::ChildProcess;
use rustix::process::Signal;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::process::{Child, Command};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The signals that end a command.
const TERMINATION_SIGNALS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

/// All scopes of a process, and the signal that it received. Clones share them.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<Shared>);

/// Work that can be stopped alone. Clones are the same scope.
#[derive(Clone)]
pub struct Scope(Arc<OwnedScope>);

/// Identifies a scope within its [`Interrupt`]. An id is used once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ScopeId(u64);

/// Why a scope was stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopCause {
    /// The process received this signal.
    Signal(i32),
    /// The program stopped the scope.
    Request,
}

/// Something that ends with a scope. Dropping it removes exactly this one.
///
/// An action that has been started on another thread runs to its end even if its registration is dropped in between. No
/// signal is sent to a child process after its registration has been dropped.
#[must_use = "dropping it removes what was registered"]
pub struct Registration {
    interrupt: Interrupt,
    id: u64,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a scope is stopped.
    stopped: Condvar,
}

#[derive(Default)]
struct State {
    /// The first signal that was received.
    signal: Option<i32>,
    is_listening: bool,
    next_id: u64,
    /// Scopes that the program stopped.
    stopped: BTreeSet<ScopeId>,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    scope: ScopeId,
    ends: Ends,
}

/// What ends with a scope.
enum Ends {
    Action(Action),
    Child(ChildProcess),
}

type Action = Arc<dyn Fn() + Send + Sync>;

struct OwnedScope {
    interrupt: Interrupt,
    id: ScopeId,
}

/// What a signal leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Response {
    /// The scopes have been told to end.
    Stops,
    /// The process ends.
    Ends,
}

impl Interrupt {
    /// Handles the signals of this process from here on. Signals that the parent process has set to be ignored, as
    /// nohup(1) does, stay ignored. Later calls have no effect.
    ///
    /// # Errors
    /// The system refuses a signal handler or a thread.
    pub fn listen(&self) -> io::Result<()> {
        if std::mem::replace(&mut self.state().is_listening, true) {
            return Ok(());
        }
        let ignored = ignored_signals();
        let is_handled = |signal: &i32| ignored & (1 << (signal - 1)) == 0;
        let mut signals = Signals::new(TERMINATION_SIGNALS.into_iter().filter(is_handled))?;
        let interrupt = self.clone();
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if interrupt.handle(signal) == Response::Ends {
                    interrupt.end_by(signal);
                }
            }
        })?;
        Ok(())
    }

    /// A new scope.
    pub fn scope(&self) -> Scope {
        let id = ScopeId(self.state().new_id());
        Scope(Arc::new(OwnedScope { interrupt: self.clone(), id }))
    }

    /// Stops one scope: calls its actions, and sends SIGTERM to its child processes. Once the last clone of the scope
    /// has been dropped, this has no effect.
    pub fn stop(&self, scope: ScopeId) {
        let mut state = self.state();
        if state.signal.is_some() || !state.stopped.insert(scope) {
            return;
        }
        let actions = state.stop_entries(Signal::TERM, |entry| entry.scope == scope);
        drop(state);
        self.announce(&actions);
    }

    /// The exit of this process as a shell reports it, after its work has ended with `code`: that of the signal, if the process
    /// received one.
    pub fn exit(&self, code: ExitCode) -> Exit {
        self.state().signal.map_or_else(|| code.into(), Exit::of_signal)
    }

    /// Ends this process by the default action of the signal that it received, if it received one. A shell loop around
    /// the process then ends, and the shell reports 128 plus the number of the signal. Child processes that are still
    /// registered get the signal as well.
    pub fn end_by_signal(&self) {
        let signal = self.state().signal;
        if let Some(signal) = signal {
            self.end_by(signal);
        }
    }

    fn end_by(&self, signal: i32) {
        // Kept to the end: no thread starts another child process.
        let state = self.state();
        state.stop_entries(of_number(signal), |_| true);
        // It fails only for signals without a default action; none of those is handled here.
        let _ = emulate_default_handler(signal);
        drop(state);
    }

    /// Stops all scopes on the first signal.
    fn handle(&self, signal: i32) -> Response {
        let mut state = self.state();
        let is_first = state.signal.is_none();
        state.signal.get_or_insert(signal);
        if !is_first || !state.has_actions() {
            return Response::Ends;
        }
        let actions = state.stop_entries(of_number(signal), |_| true);
        drop(state);
        self.announce(&actions);
        Response::Stops
    }

    /// Wakes those who wait in [`Scope::sleep`], and calls the actions.
    fn announce(&self, actions: &[Action]) {
        self.0.stopped.notify_all();
        actions.iter().for_each(|action| action());
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Scope {
    /// A scope that no signal stops, because its [`Interrupt`] does not listen.
    fn default() -> Self {
        Interrupt::default().scope()
    }
}

impl Scope {
    /// Identifies it for [`Interrupt::stop`].
    pub fn id(&self) -> ScopeId {
        self.0.id
    }

    /// Calls `action` when the scope is stopped, on whichever thread stops it. If it has been stopped already, the
    /// action is called at once.
    pub fn on_stop(&self, action: impl Fn() + Send + Sync + 'static) -> Registration {
        let action: Action = Arc::new(action);
        let mut state = self.0.interrupt.state();
        let is_stopped = state.cause(self.0.id).is_some();
        let id = state.add(self.0.id, Ends::Action(action.clone()));
        drop(state);
        if is_stopped {
            action();
        }
        Registration { interrupt: self.0.interrupt.clone(), id }
    }

    /// Starts a child process, which gets the signal that stops the scope, or SIGTERM if no signal does. If the scope has been
    /// stopped already, the signal is sent at once. A signal that arrives meanwhile waits until the child is registered, so no
    /// child outlives it.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn spawn(&self, command: &mut Command) -> io::Result<(Child, Registration)> {
        let mut state = self.0.interrupt.state();
        let child = command.spawn()?;
        let process = ChildProcess::new(&child);
        match state.cause(self.0.id) {
            Some(StopCause::Signal(signal)) => process.send(of_number(signal)),
            Some(StopCause::Request) => process.send(Signal::TERM),
            None => {}
        }
        let id = state.add(self.0.id, Ends::Child(process));
        drop(state);
        Ok((child, Registration { interrupt: self.0.interrupt.clone(), id }))
    }

    /// Stops this scope; see [`Interrupt::stop`].
    pub fn stop(&self) {
        self.0.interrupt.stop(self.0.id);
    }

    /// Why the scope was stopped, if it was. A signal stops all scopes.
    pub fn stop_cause(&self) -> Option<StopCause> {
        self.0.interrupt.state().cause(self.0.id)
    }

    /// Waits for `duration`, or until the scope is stopped; returns why it was stopped, if it was. A wait is no reaction
    /// to a signal: without an action the first signal ends the process in the middle of it.
    pub fn sleep(&self, duration: Duration) -> Option<StopCause> {
        let shared = &self.0.interrupt.0;
        let is_running = |state: &mut State| state.cause(self.0.id).is_none();
        let state = self.0.interrupt.state();
        let waited = shared.stopped.wait_timeout_while(state, duration, is_running);
        waited.unwrap_or_else(PoisonError::into_inner).0.cause(self.0.id)
    }
}

impl State {
    fn new_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    fn add(&mut self, scope: ScopeId, ends: Ends) -> u64 {
        let id = self.new_id();
        self.entries.insert(id, Entry { scope, ends });
        id
    }

    fn cause(&self, scope: ScopeId) -> Option<StopCause> {
        let requested = self.stopped.contains(&scope).then_some(StopCause::Request);
        requested.or_else(|| self.signal.map(StopCause::Signal))
    }

    fn has_actions(&self) -> bool {
        self.entries.values().any(|entry| matches!(entry.ends, Ends::Action(_)))
    }

    /// Sends `signal` to the selected child processes. Returns the selected actions in the order of their
    /// registration: the caller calls them without the lock, because they may register or drop something.
    fn stop_entries(&self, signal: Signal, is_selected: impl Fn(&Entry) -> bool) -> Vec<Action> {
        let mut actions = Vec::new();
        for entry in self.entries.values().filter(|entry| is_selected(entry)) {
            match &entry.ends {
                Ends::Action(action) => actions.push(action.clone()),
                Ends::Child(process) => process.send(signal),
            }
        }
        actions
    }
}

impl Drop for OwnedScope {
    fn drop(&mut self) {
        self.interrupt.state().stopped.remove(&self.id);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let entry = self.interrupt.state().entries.remove(&self.id);
        // What the action owns is dropped without the lock, because it may be the last clone of a scope.
        drop(entry);
    }
}

impl fmt::Debug for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupt").field("signal", &self.state().signal).finish_non_exhaustive()
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.0.id).finish()
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Registration").field(&self.id).finish()
    }
}

/// Makes a write beyond the limit of a file's size (`ulimit -f`) fail with EFBIG, in place of ending the process by
/// SIGXFSZ.
///
/// # Errors
/// The system refuses the signal handler.
pub fn survive_file_size_limit() -> io::Result<()> {
    // A handled signal does not end the process. Nobody reads the flag.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map(drop)
}

/// The signal of this number, or SIGTERM for a real-time signal, which is never handled here.
fn of_number(signal: i32) -> Signal {
    Signal::from_named_raw(signal).unwrap_or(Signal::TERM)
}

/// The signals that this process ignores, one bit each: `SigIgn` of proc_pid_status(5).
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
