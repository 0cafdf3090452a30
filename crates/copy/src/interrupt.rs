//! Ctrl-C and its relatives: the first ends the copy well, the second ends the process.

use hikyaku_net::{Connection, code};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

static CAME: AtomicU32 = AtomicU32::new(0);
static UNDER_WAY: Mutex<Vec<Connection>> = Mutex::new(Vec::new());

/// What a shell reports of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// The user has had enough.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("stopped; the same command again goes on from here")]
pub(crate) struct Interrupted;

/// Listens for signals from here on.
pub(crate) fn listen() -> std::io::Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    thread::Builder::new().name("copy-signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            let under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
            if CAME.fetch_add(1, Ordering::AcqRel) > 0 || under_way.is_empty() {
                std::process::exit(INTERRUPTED);
            }
            for connection in under_way.iter() {
                connection.close(code::APPLICATION, "stopped by the user");
            }
        }
    })?;
    Ok(())
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
        CAME.load(Ordering::Acquire) > 0
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut under_way = UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner);
        let left = under_way.len().saturating_sub(self.connections);
        under_way.truncate(left);
    }
}
