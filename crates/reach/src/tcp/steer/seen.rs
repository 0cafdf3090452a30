//! What the kernel has counted of each pipe of a connection.

use hikyaku_tuner::Carried;
use hikyaku_units::DataSize;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::Duration;

/// The sockets of the pipes, by their numbers.
pub(super) struct Seen {
    pipes: BTreeMap<u32, Counted>,
    /// The least round-trip time that a kernel has reported.
    round_trip: Option<Duration>,
}

/// A socket, and what it had carried at the last look.
struct Counted {
    socket: TcpStream,
    received: u64,
    acknowledged: u64,
}

impl Counted {
    const fn new(socket: TcpStream) -> Self {
        Self { socket, received: 0, acknowledged: 0 }
    }
}

impl Seen {
    /// Of a connection with one pipe.
    pub(super) fn new(first: TcpStream) -> Self {
        Self { pipes: BTreeMap::from([(0, Counted::new(first))]), round_trip: None }
    }

    /// Pipes were added.
    pub(super) fn add(&mut self, pipes: Vec<(u32, TcpStream)>) {
        self.pipes.extend(pipes.into_iter().map(|(id, socket)| (id, Counted::new(socket))));
    }

    /// The least round-trip time; zero if none is known.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
    }

    /// The first `width` pipes that are open, as far as they carry bytes.
    pub(super) fn look(&mut self, width: usize) -> Vec<Carried> {
        let known = |time: Duration| (!time.is_zero()).then_some(time);
        let (mut all, mut count) = (Vec::new(), 0);
        self.pipes.retain(|id, pipe| {
            // A pipe that was lost has been closed.
            let Some(info) = hikyaku_tcp::info(&pipe.socket).ok().filter(|info| info.is_open)
            else {
                return false;
            };
            let (received, sent) = (info.received.bytes(), info.acknowledged.bytes());
            // The receiver of bytes measures round trips by them, the sender by the acknowledgements of its own.
            let is_download = received - pipe.received >= sent - pipe.acknowledged;
            let rtt = if is_download { info.receive_rtt } else { info.rtt };
            (pipe.received, pipe.acknowledged) = (received, sent);
            self.round_trip = known(info.min_rtt).into_iter().chain(self.round_trip).min();
            if count < width && received + sent > 0 {
                let bytes = DataSize::from_bytes(received + sent);
                all.push(Carried { id: *id, bytes, round_trip: known(rtt) });
            }
            count += 1;
            true
        });
        all
    }
}
