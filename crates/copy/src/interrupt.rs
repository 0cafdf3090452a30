//! Ctrl-C and its relatives: the first ends the copy well, the second ends the process.

use crate::engine::Meter;
use hikyaku_net::code;
use hikyaku_reach::{Children, Connection};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

/// The first signal that came.
static CAME: AtomicI32 = AtomicI32::new(0);
static UNDER_WAY: Mutex<Vec<Connection>> = Mutex::new(Vec::new());
/// Programs that get in somewhere, and may ask the user something.
static STARTING: LazyLock<Children> = LazyLock::new(Children::default);

/// The user has had enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Interrupted {
    /// What has been copied is kept.
    #[error("stopped; the same command again goes on from here")]
    GoesOn,
    /// A stream is read or written once.
    #[error("stopped; what came through the pipe is gone")]
    Over,
}

impl Interrupted {
    /// What it means for a copy that has come so far.
    pub(crate) fn after(meter: &Meter) -> Self {
        if meter.is_spent() || meter.has_streamed() { Self::Over } else { Self::GoesOn }
    }
}

/// Listens for signals from here on; not for those that whoever started us wants ignored, as `nohup` does.
pub(crate) fn listen() -> std::io::Result<()> {
    let ignored = ignored();
    let wanted = [SIGINT, SIGTERM, SIGHUP].into_iter();
    let mut signals = Signals::new(wanted.filter(|signal| ignored & (1 << (signal - 1)) == 0))?;
    thread::Builder::new().name("copy-signals".to_owned()).spawn(move || {
        for signal in signals.forever() {
            let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
            if CAME.swap(signal, Ordering::AcqRel) != 0 || under_way.is_empty() {
                end_by_signal();
            }
            for connection in under_way.iter() {
                connection.close(code::APPLICATION, "stopped by the user");
            }
        }
    })?;
    Ok(())
}

/// A file over the limit of its size (`ulimit -f`) is a failure of that file, and not the silent end of the
/// process.
pub(crate) fn survive_file_size_limit() -> std::io::Result<()> {
    // What handles the signal keeps it from doing anything else.
    let came = std::sync::Arc::default();
    signal_hook::flag::register(signal_hook::consts::SIGXFSZ, came).map(drop)
}

/// Ends this process as the signal that came would have: a shell sees that, and ends its loop. Nothing, if
/// none came.
pub fn end_by_signal() {
    let signal = CAME.load(Ordering::Acquire);
    if signal != 0 {
        STARTING.signal(signal);
        // It does not return, unless the signal is one that ends nothing.
        let _ = emulate_default_handler(signal);
    }
}

/// Signals that are ignored, a bit each, as Linux says it.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// A connection that a signal closes for as long as this lives.
pub(crate) struct Guard {
    connections: usize,
}

impl Guard {
    pub(crate) fn new(all: Vec<Connection>) -> Self {
        let connections = all.len();
        UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner).extend(all);
        Self { connections }
    }

    /// Whether a signal came.
    pub(crate) fn was_interrupted(&self) -> bool {
        CAME.load(Ordering::Acquire) != 0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let left = under_way.len().saturating_sub(self.connections);
        under_way.truncate(left);
    }
}

/// The list of programs that a signal ends, too.
pub(crate) fn starting() -> Children {
    STARTING.clone()
}
