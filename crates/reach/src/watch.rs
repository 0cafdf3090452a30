//! Who notices that the other end is gone: the channel of ssh ends at once when a program is killed,
//! but it also ends when only ssh's own connection was lost, and then the session goes on.

use crate::carrier::Connection;
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_net::{CloseReason, code};
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Something is heard from a living end at least this often.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// From the end of the channel on, silence for so long is the end.
const SILENCE: Duration = Duration::from_secs(5);
/// How long a path over UDP may take to be heard again after the other carrier has connected.
const COME_BACK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(500);

/// Code with which an end closes an idle connection. A peer that receives it may connect again.
pub const GONE: u64 = code::APPLICATION + 1;

/// Why the other end is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gone {
    /// Its program has ended; who it was.
    Ended(String),
    /// Nobody knows: ssh's connection was lost, and ours is silent.
    Lost,
}

/// What a watcher has found out.
#[derive(Clone, Default, Debug)]
pub struct Fate(Arc<OnceLock<Gone>>);

impl Fate {
    /// Notes why the other end is gone, unless that is known.
    pub(crate) fn set(&self, gone: Gone) {
        let _ = self.0.set(gone);
    }

    /// Why the other end is gone, if that is known.
    pub fn get(&self) -> Option<&Gone> {
        self.0.get()
    }
}

/// Reads `channel` to its end, then listens to the connection until that is over or silent. `why` says what
/// the end of the channel meant.
pub(crate) fn watch(
    mut channel: impl Read,
    connection: &Connection,
    fate: &Fate,
    why: impl FnOnce() -> Gone,
) {
    let mut rest = [0; 512];
    while channel.read(&mut rest).is_ok_and(|length| length > 0) {}
    if listen(connection, SILENCE) == Ended::Silent {
        // Known before the connection is closed by it.
        fate.set(why());
        give_up(connection);
    }
}

/// How listening to a connection ends.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Ended {
    /// The connection is over, for this reason; or nothing can be seen of it any more.
    Over(Option<CloseReason>),
    /// Nothing was heard for too long.
    Silent,
}

/// Listens to a connection until it is over, or silent for so long.
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

/// Watches a connection over UDP, and gives it up when nothing is heard for so long while the other end `is_there` by another
/// carrier: then UDP does not get through any more, and a new connection can use the other one.
pub(crate) fn watch_udp(
    connection: &Connection,
    silence: Duration,
    fate: &Fate,
    is_there: impl Fn() -> bool,
) {
    while listen(connection, silence) == Ended::Silent {
        // The path may have come back while the other carrier connected.
        if is_there() && listen(connection, COME_BACK) == Ended::Silent {
            fate.set(Gone::Lost);
            return give_up(connection);
        }
    }
}

fn give_up(connection: &Connection) {
    connection.close(GONE, "nothing was heard for too long");
}

/// Watches a connection through a pipe, and notes what its end means for the far side. A pipe has no time-out of its own:
/// while TCP retransmits nothing is heard and nothing ends.
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
