//! Who notices that the other end is gone: the channel of ssh ends at once when a program is killed,
//! but it also ends when only ssh's own connection was lost, and then the copy goes on.

use hikyaku_net::blocking::{Stop, wait};
use hikyaku_net::{Connection, code};
use std::io::Read;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Something is heard from a living end at least this often.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(2);
/// From the end of the channel on, silence for so long is the end.
const SILENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(500);

/// With this code an end closes that has heard nothing of the other for too long: who hears of it after all
/// may begin anew.
pub(crate) const GONE: u64 = code::APPLICATION + 1;

/// Why the other end is gone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Gone {
    /// Its program has ended; who it was.
    Ended(String),
    /// Nobody knows: ssh's connection was lost, and ours is silent.
    Lost,
}

/// What a watcher has found out.
#[derive(Clone, Default, Debug)]
pub(crate) struct Fate(Arc<OnceLock<Gone>>);

impl Fate {
    pub(crate) fn get(&self) -> Option<&Gone> {
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
    let (mut heard, mut last) = (None, Instant::now());
    while connection.close_reason().is_none() {
        let stats = wait(connection.stats(), &Stop::default(), Some(Instant::now() + LOOK));
        let Ok(Some(stats)) = stats else { return };
        if heard != Some(stats.received.packets) {
            (heard, last) = (Some(stats.received.packets), Instant::now());
        } else if last.elapsed() > SILENCE {
            // Known before the connection is closed by it.
            let _ = fate.0.set(why());
            connection.close(GONE, "nothing was heard for too long");
            return;
        }
        thread::sleep(LOOK);
    }
}
