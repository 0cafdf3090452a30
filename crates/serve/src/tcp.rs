//! Clients that come over TCP, until their handshake has shown who they are.

use crate::daemon::Attendance;
use hikyaku_reach::tcp::{Admitted, HandshakeLimits, Handshakes, TcpDoor};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Handshakes at a time, and of one network: none can take all of them.
const HANDSHAKES: HandshakeLimits = HandshakeLimits { all: 64, of_network: 16 };
/// A handshake takes at most this long.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the daemon ends.
const LOOK: Duration = Duration::from_millis(200);
/// A pause after an error of the system, such as too many open files, which would come again at once.
const PAUSE: Duration = Duration::from_millis(100);
/// Time for sending the reason to a refused client.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Lets clients in until `is_over` is set.
pub(crate) fn accept(door: &TcpDoor, attendance: &Attendance, is_over: &AtomicBool) {
    let handshakes = Handshakes::new(HANDSHAKES);
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
            let Ok(place) = handshakes.enter(&stream, from.ip()) else {
                thread::sleep(PAUSE);
                continue;
            };
            let shake = move || {
                let shaken = door.admit(stream, &place, PATIENCE);
                drop(place);
                // A peer without a completed handshake receives no answer.
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
