//! Ctrl-C and its relatives: the first asks every test of this process to end well, the second
//! ends the process.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Whom to tell. Clones mean the same.
#[derive(Clone, Default)]
pub(crate) struct Interrupt(Arc<Mutex<Listeners>>);

#[derive(Default)]
struct Listeners {
    came: u32,
    next: u64,
    all: Vec<(u64, Box<dyn Fn() + Send>)>,
}

/// Ends when dropped.
pub(crate) struct Subscription {
    interrupt: Interrupt,
    id: u64,
}

/// What a shell reports of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

impl Interrupt {
    /// Listens for signals from here on.
    pub(crate) fn listen() -> io::Result<Self> {
        let interrupt = Self::default();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        let heard = interrupt.clone();
        thread::Builder::new().name("perf-signals".to_owned()).spawn(move || {
            for _ in signals.forever() {
                heard.hear();
            }
        })?;
        Ok(interrupt)
    }

    /// Calls `action` at the first signal, or at once if it came already.
    pub(crate) fn on_signal(&self, action: impl Fn() + Send + 'static) -> Subscription {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.came > 0 {
            action();
        }
        let id = listeners.next;
        listeners.next += 1;
        listeners.all.push((id, Box::new(action)));
        Subscription { interrupt: self.clone(), id }
    }

    fn hear(&self) {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.came += 1;
        if listeners.came > 1 || listeners.all.is_empty() {
            std::process::exit(INTERRUPTED);
        }
        for (_, action) in &listeners.all {
            action();
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut listeners = self.interrupt.0.lock().unwrap_or_else(PoisonError::into_inner);
        listeners.all.retain(|(id, _)| *id != self.id);
    }
}
