//! What the kernel has counted of each pipe of a connection.

use hikyaku_net::Memory;
use hikyaku_tuner::Carried;
use hikyaku_units::DataSize;
use std::collections::BTreeMap;
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// A round-trip time that is shorter by less than this part of it is no news.
const ROUND_TRIP_NEWS: u32 = 16;

/// The sockets of the pipes, by their numbers.
pub(in crate::tcp) struct Seen {
    pipes: BTreeMap<u32, Counted>,
    memory: Memory,
    /// The least round-trip time that a kernel has reported.
    round_trip: Option<Duration>,
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
    /// Of a connection with one pipe. Earlier connections may have seen the path with shorter queues.
    pub(in crate::tcp) fn new(first: TcpStream, memory: Memory) -> Self {
        let pipes = BTreeMap::from([(0, Counted::new(first))]);
        Self { pipes, memory, round_trip: None, looked: None, unsent: Duration::ZERO }
    }

    /// Pipes were added.
    pub(super) fn add(&mut self, pipes: Vec<(u32, TcpStream)>) {
        self.pipes.extend(pipes.into_iter().map(|(id, socket)| (id, Counted::new(socket))));
    }

    /// The least round-trip time; zero if none is known.
    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip.unwrap_or_default()
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
            if let Some(least) = known(info.min_rtt)
                && self.round_trip.is_none_or(|known| least < known - known / ROUND_TRIP_NEWS)
            {
                let addresses = pipe
                    .socket
                    .peer_addr()
                    .and_then(|peer| pipe.socket.local_addr().map(|local| (peer.ip(), local.ip())));
                let all =
                    addresses.map(|(peer, local)| self.memory.least_round_trip(peer, local, least));
                self.round_trip = Some(all.unwrap_or(least));
            }
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
