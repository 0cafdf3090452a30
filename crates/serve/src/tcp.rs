//! Clients that come over TCP, until their handshake has shown who they are.

use crate::daemon::Attendance;
use hikyaku_reach::tcp::{Admitted, TcpDoor};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Handshakes at a time. Who comes beyond that is hung up on.
const HANDSHAKES: usize = 64;
/// The same of one address, so that one host cannot take all of them.
const HANDSHAKES_OF_ONE: usize = 16;
/// A handshake takes at most this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the daemon ends.
const LOOK: Duration = Duration::from_millis(200);
/// A pause after an error of the system, such as too many open files, which would come again at once.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a client that is refused may take to hear it.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Lets clients in until `is_over` is set.
pub(crate) fn accept(door: &TcpDoor, attendance: &Attendance, is_over: &AtomicBool) {
    let waiting = Waiting::default();
    thread::scope(|scope| {
        while !is_over.load(Ordering::Relaxed) {
            let (stream, from) = match door.accept(LOOK) {
                Ok(Some(guest)) => guest,
                Ok(None) => continue,
                Err(_) => {
                    thread::sleep(PAUSE);
                    continue;
                }
            };
            let Some(place) = waiting.enter(from.ip()) else { continue };
            let shake = move || {
                let shaken = door.admit(stream, PATIENCE);
                drop(place);
                // Who is no client hears nothing.
                if let Ok(Admitted::New(connection, key)) = shaken {
                    attendance.admit(&connection, key);
                    if connection.close_reason().is_some() {
                        connection.flush(LAST_WORD);
                    }
                }
            };
            let named = thread::Builder::new().name("serve-tcp".to_owned());
            if named.spawn_scoped(scope, shake).is_err() {
                thread::sleep(PAUSE);
            }
        }
    });
}

/// The addresses whose handshakes are under way, and how many each has.
#[derive(Default)]
struct Waiting(Mutex<HashMap<IpAddr, usize>>);

/// The place of one handshake. Dropping it gives the place back.
struct Place<'a> {
    waiting: &'a Waiting,
    from: IpAddr,
}

impl Waiting {
    /// A place for one more of this address; `None` if it, or all together, have as many as they may.
    fn enter(&self, from: IpAddr) -> Option<Place<'_>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (total, own) = (all.values().sum::<usize>(), all.get(&from).copied().unwrap_or(0));
        if total >= HANDSHAKES || own >= HANDSHAKES_OF_ONE {
            return None;
        }
        all.insert(from, own + 1);
        Some(Place { waiting: self, from })
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut all = self.waiting.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.from) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn one_address_cannot_take_all_places() {
        let waiting = Waiting::default();
        let address = |last| IpAddr::V4(Ipv4Addr::new(192, 0, 2, last));
        let held: Vec<_> = (0..HANDSHAKES_OF_ONE).map(|_| waiting.enter(address(1))).collect();
        assert!(held.iter().all(Option::is_some));
        assert!(waiting.enter(address(1)).is_none());
        let mut others = Vec::new();
        for last in 2..=u8::MAX {
            others.extend(waiting.enter(address(last)));
        }
        assert_eq!(others.len() + held.len(), HANDSHAKES);
        drop(held);
        assert!(waiting.enter(address(1)).is_some());
    }
}
