//! Signal handling. The first SIGINT, SIGTERM or SIGHUP asks every test of this process to end and
//! report; the second ends the process at once. In both cases the process finally ends by the
//! signal itself, so that a shell loop around it ends too.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The list of actions to call on a signal. Clones share the list.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<Listeners>>);

#[derive(Default)]
struct Listeners {
    /// The first signal received.
    came: Option<i32>,
    is_over: bool,
    next: u64,
    all: Vec<(u64, Box<dyn Fn() + Send>)>,
}

/// A registered action. Dropping it removes the action.
pub(crate) struct Subscription {
    interrupt: Interrupt,
    id: u64,
}

impl Interrupt {
    /// Installs the signal handlers.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let heard = interrupt.clone();
        thread::Builder::new().name("perf-signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                heard.hear(signal);
            }
        })?;
        Ok(interrupt)
    }

    /// Calls `action` on the first signal, or at once if one has already been received.
    pub(crate) fn on_signal(&self, action: impl Fn() + Send + 'static) -> Subscription {
        let mut listeners = self.listeners();
        if listeners.is_over {
            action();
        }
        let id = listeners.next;
        listeners.next += 1;
        listeners.all.push((id, Box::new(action)));
        Subscription { interrupt: self.clone(), id }
    }

    /// Ends every test as a signal would, for another reason.
    pub(crate) fn tell(&self) {
        self.listeners().tell();
    }

    /// Ends the process by the signal's default action, if a signal was received.
    pub(crate) fn follow(&self) {
        let came = self.listeners().came;
        came.into_iter().for_each(end_by);
    }

    fn listeners(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, signal: i32) {
        let mut listeners = self.listeners();
        if listeners.came.replace(signal).is_some() || listeners.all.is_empty() {
            end_by(signal);
        }
        listeners.tell();
    }
}

impl Listeners {
    fn tell(&mut self) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.all.iter().for_each(|(_, action)| action());
        }
    }
}

fn end_by(signal: i32) {
    // The call fails only for signals without a default action; this program handles none of those.
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut listeners = self.interrupt.listeners();
        listeners.all.retain(|(id, _)| *id != self.id);
    }
}
