//! Watching for the end of the other program: the channel of ssh ends when that program is killed, but also when only the
//! connection of ssh was lost, and then the session continues.

use crate::carrier::Connection;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_net::{CloseReason, code};
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Maximum interval between packets of a running end.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// Time of silence after the end of the channel that means the end of the other program.
const SILENCE: Duration = Duration::from_secs(5);
/// Time for packets over UDP to arrive again after the other carrier has connected.
const COME_BACK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(500);

/// Code with which an end closes an idle connection. A peer that receives it may connect again.
pub const GONE: u64 = code::APPLICATION + 1;

/// Why the other end has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gone {
    /// Its program has ended. Contains its name.
    Ended(String),
    /// Unknown: the connection of ssh was lost, and the session is silent.
    Lost,
}

/// The result of a watcher.
#[derive(Clone, Default, Debug)]
pub struct Fate(Arc<OnceLock<Gone>>);

impl Fate {
    /// Sets why the other end has ended, unless that is known.
    pub(crate) fn set(&self, gone: Gone) {
        let _ = self.0.set(gone);
    }

    /// Why the other end has ended, if that is known.
    pub fn get(&self) -> Option<&Gone> {
        self.0.get()
    }
}

/// Reads `channel` to its end, then watches the connection until it ends or is silent. `why` explains the end of the
/// channel.
pub(crate) fn watch(
    mut channel: impl Read,
    connection: &Connection,
    fate: &Fate,
    why: impl FnOnce() -> Gone,
) {
    let mut rest = [0; 512];
    while channel.read(&mut rest).is_ok_and(|length| length > 0) {}
    if listen(connection, SILENCE) == Ended::Silent {
        // Set before the connection is closed.
        fate.set(why());
        give_up(connection);
    }
}

/// The end of watching a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    /// The connection has ended, with its close reason if it is known.
    Over(Option<CloseReason>),
    /// The connection was silent for too long.
    Silent,
}

/// Watches a connection until it ends, or is silent for `silence`.
fn listen(connection: &Connection, silence: Duration) -> Ended {
    let (mut heard, mut last) = (None, Instant::now());
    loop {
        let seen = wait(connection.seen(), &Stop::default(), Some(Instant::now() + LOOK));
        let Ok(Some(seen)) = seen else { return Ended::Over(connection.close_reason()) };
        if heard != Some(seen.heard) {
            (heard, last) = (Some(seen.heard), Instant::now());
        } else if last.elapsed() > silence {
            return Ended::Silent;
        }
        if let Ok(reason) = wait(connection.closed(), &Stop::default(), Some(Instant::now() + LOOK))
        {
            return Ended::Over(Some(reason));
        }
    }
}

/// Watches a connection over UDP, and closes it if it is silent while the other end answers by another carrier
/// (`is_there`): then UDP is blocked, and a new connection can use the other carrier.
pub(crate) fn watch_udp(
    connection: &Connection,
    silence: Duration,
    fate: &Fate,
    is_there: impl Fn() -> bool,
) {
    while listen(connection, silence) == Ended::Silent {
        // UDP may work again since the other carrier has connected.
        if is_there() && listen(connection, COME_BACK) == Ended::Silent {
            fate.set(Gone::Lost);
            return give_up(connection);
        }
    }
}

fn give_up(connection: &Connection) {
    connection.close(GONE, "nothing was heard for too long");
}

/// Watches a connection through a pipe, and sets the fate of the far side at its end. A pipe has no time-out of its own:
/// while TCP retransmits, it is silent and does not end.
pub(crate) fn watch_pipe(
    connection: &Connection,
    silence: Duration,
    fate: &Fate,
    why: impl FnOnce() -> Gone,
) {
    match listen(connection, silence) {
        // The channel ends with the far side's program.
        Ended::Over(Some(CloseReason::TimedOut)) => fate.set(why()),
        Ended::Over(_) => {}
        Ended::Silent => {
            fate.set(Gone::Lost);
            give_up(connection);
        }
    }
}
