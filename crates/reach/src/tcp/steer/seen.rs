//! What the kernel has counted of each pipe of a connection.

use hikyaku_net::{LeastRoundTrip, Memory};
use hikyaku_tuner::{Carried, Held};
use hikyaku_units::DataSize;
use std::collections::BTreeMap;
use std::net::{IpAddr, TcpStream};
use std::time::{Duration, Instant};

/// The sockets of the pipes, by their numbers.
pub(in crate::tcp) struct Seen {
    pipes: BTreeMap<u32, Counted>,
    /// The least that a kernel has reported.
    round_trip: LeastRoundTrip,
    memory: Memory,
    /// The number of pipes that is in the memory.
    noted: Option<Held>,
    looked: Option<Instant>,
    /// Time for which pipes that sent had nothing to send, summed over them.
    unsent: Duration,
}

/// A socket, and what it had carried at the last look.
struct Counted {
    socket: TcpStream,
    received: u64,
    acknowledged: u64,
    busy: Duration,
}

impl Counted {
    const fn new(socket: TcpStream) -> Self {
        Self { socket, received: 0, acknowledged: 0, busy: Duration::ZERO }
    }
}

impl Seen {
    /// Of a connection with one pipe.
    pub(in crate::tcp) fn new(first: TcpStream, memory: Memory) -> Self {
        let pipes = BTreeMap::from([(0, Counted::new(first))]);
        let round_trip = LeastRoundTrip::new(memory.clone());
        let (looked, unsent, noted) = (None, Duration::ZERO, None);
        Self { pipes, round_trip, memory, noted, looked, unsent }
    }

    /// Pipes were added.
    pub(super) fn add(&mut self, pipes: Vec<(u32, TcpStream)>) {
        self.pipes.extend(pipes.into_iter().map(|(id, socket)| (id, Counted::new(socket))));
    }

    /// The pipes that an earlier connection to the other host has held without a queue.
    pub(super) fn held_before(&self) -> Option<u32> {
        let (peer, local) = addresses(&self.pipes.values().next()?.socket)?;
        self.memory.held(peer, local)
    }

    /// Remembers the pipes that were held.
    pub(super) fn note_held(&mut self, held: Option<Held>) {
        let first = self.pipes.values().next().and_then(|first| addresses(&first.socket));
        let Some((peer, local)) = first.filter(|_| held != self.noted) else { return };
        self.noted = held;
        if let Some(held) = held {
            self.memory.note_held(peer, local, held.remembered());
        }
    }

    /// The least round-trip time; zero if none is known.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.get()
    }

    /// The time for which pipes that sent had nothing to send, summed over them: the sender's disk was slower.
    pub(super) const fn unsent(&self) -> Duration {
        self.unsent
    }

    /// The first `width` pipes that are open, as far as they carry bytes.
    pub(super) fn look(&mut self, width: usize) -> Vec<Carried> {
        let known = |time: Duration| (!time.is_zero()).then_some(time);
        let (mut all, mut count, now) = (Vec::new(), 0, Instant::now());
        let since = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
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
            if !is_download && count < width && !info.busy.is_zero() {
                self.unsent += since.saturating_sub(info.busy.saturating_sub(pipe.busy));
            }
            (pipe.received, pipe.acknowledged, pipe.busy) = (received, sent, info.busy);
            self.round_trip.note(info.min_rtt, || addresses(&pipe.socket));
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

/// The addresses of the other end and of this one.
fn addresses(socket: &TcpStream) -> Option<(IpAddr, IpAddr)> {
    Some((socket.peer_addr().ok()?.ip(), socket.local_addr().ok()?.ip()))
}
