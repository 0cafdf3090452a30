//! Near sides that come over TCP, to the port that the far side has for UDP.

use super::PATIENCE;
use crate::carrier::{Connection, Stream};
use crate::meet::{Door, DoorConfig, DoorError};
use crate::tcp::{Admitted, HandshakeLimits, Handshakes, TcpDoor};
use hikyaku_crypto::{Fingerprint, ServerCredentials};
use hikyaku_net::blocking::{Stop, wait};
use hikyaku_net::code;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Handshakes at a time.
const HANDSHAKES: HandshakeLimits = HandshakeLimits { all: 32, of_network: 16 };
/// A handshake takes at most this long.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the thread waits for the next that comes.
const LOOK: Duration = Duration::from_secs(1);

/// How many ports are tried of which another program has the TCP port. The default range is part of that from which Linux takes
/// the ports of outgoing connections.
const PORTS_MAX: usize = 8;

/// Opens a port for UDP and the one with the same number for TCP. If only ports are found that are taken for TCP, near sides come
/// over UDP alone.
pub(super) fn open(config: &DoorConfig<'_>) -> Result<(Door, Option<TcpDoor>), DoorError> {
    // Each of these keeps its port from being chosen again.
    let mut taken = Vec::new();
    loop {
        match Door::open(config) {
            Ok(door) => match bind(&door, config) {
                Ok(tcp) => return Ok((door, Some(tcp))),
                Err(_) if taken.len() + 1 < PORTS_MAX => taken.push(door),
                Err(_) => return Ok((door, None)),
            },
            Err(error) => return taken.pop().map(|door| (door, None)).ok_or(error),
        }
    }
}

fn bind(door: &Door, config: &DoorConfig<'_>) -> io::Result<TcpDoor> {
    let (port, credentials) = (door.invitation().port, ServerCredentials::mutual(door.identity()));
    let of_v6 = TcpDoor::bind((Ipv6Addr::UNSPECIFIED, port).into(), credentials.clone());
    // A machine without IPv6 has no socket for it.
    let bound = of_v6.or_else(|_| TcpDoor::bind((Ipv4Addr::UNSPECIFIED, port).into(), credentials));
    Ok(bound?.with_limits(config.tuning.of_pipes(config.service), config.tuning.silence()))
}

/// Lets clients in as long as the process lives. `come` is told of each connection of the holder of `key` on which it has
/// begun to speak, and says whether it is wanted.
pub(super) fn listen(
    door: TcpDoor,
    key: Fingerprint,
    come: impl Fn(Connection, Stream) -> bool + Send + Sync + 'static,
) -> io::Result<()> {
    let door = Arc::new(door);
    let (come, handshakes) = (Arc::new(come), Handshakes::new(HANDSHAKES));
    let accept = move || {
        loop {
            let (stream, from) = match door.accept(LOOK) {
                Ok(Some(guest)) => guest,
                Ok(None) => continue,
                Err(_) => {
                    thread::sleep(LOOK);
                    continue;
                }
            };
            let Ok(place) = handshakes.enter(&stream, from.ip()) else { continue };
            let (door, come) = (door.clone(), come.clone());
            let attend = move || {
                let admitted = door.admit(stream, &place, HANDSHAKE);
                drop(place);
                if let Ok(Admitted::New(connection, shown)) = admitted {
                    let is_wanted = shown == Some(key) && speaks(&connection, come.as_ref());
                    if !is_wanted {
                        connection.close(code::APPLICATION, "another one was invited");
                    }
                }
            };
            // Without a thread the place is given back, and the connection ends.
            let _ = thread::Builder::new().name("serve-tcp".to_owned()).spawn(attend);
        }
    };
    thread::Builder::new().name("serve-tcp".to_owned()).spawn(accept).map(drop)
}

/// Waits until the other end begins to speak. Returns whether the connection is the one.
fn speaks(connection: &Connection, come: &impl Fn(Connection, Stream) -> bool) -> bool {
    let until = Some(Instant::now() + PATIENCE);
    match wait(connection.accept_stream(), &Stop::default(), until) {
        Ok(Ok(stream)) => come(connection.clone(), stream),
        Ok(Err(_)) | Err(_) => false,
    }
}

#[cfg(test)]
mod tests;
