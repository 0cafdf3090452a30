//! Settings of the machine that a bench changes, put back whichever way it ends.

use anyhow::{Context, Result};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::fs;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The largest UDP buffers that a program without privileges may ask for.
const BUFFER_LIMITS: [&str; 2] = ["/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"];

/// What our message advises, and Debian's own.
pub(crate) const RAISED: u32 = 32 << 20;
pub(crate) const DEBIAN: u32 = 212_992;

/// The limits of UDP buffers while this lives.
pub(crate) struct Buffers {
    before: Vec<(&'static str, String)>,
}

impl Buffers {
    /// Sets both limits to `bytes`.
    pub(crate) fn limit(bytes: u32) -> Result<Self> {
        static WATCH: OnceLock<()> = OnceLock::new();
        WATCH.get_or_init(restore_on_signals);
        let mut buffers = Self { before: Vec::new() };
        for path in BUFFER_LIMITS {
            let value = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
            buffers.before.push((path, value.clone()));
            changed().push((path, value));
            fs::write(path, bytes.to_string()).with_context(|| format!("cannot set {path}"))?;
        }
        Ok(buffers)
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        restore(&self.before);
        changed().clear();
    }
}

/// What is to be put back by whoever ends the program.
fn changed() -> MutexGuard<'static, Vec<(&'static str, String)>> {
    static CHANGED: Mutex<Vec<(&str, String)>> = Mutex::new(Vec::new());
    CHANGED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn restore(values: &[(&'static str, String)]) {
    for (path, value) in values {
        if let Err(error) = fs::write(path, value) {
            eprintln!("bench: cannot set {path} back to {}: {error}", value.trim());
        }
    }
}

/// Ctrl-C ends the program with everything put back. The programs that it runs get the signal too.
fn restore_on_signals() {
    let Ok(mut signals) = Signals::new([SIGINT, SIGTERM]) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            restore(&changed());
            std::process::exit(128 + signal);
        }
    });
}
