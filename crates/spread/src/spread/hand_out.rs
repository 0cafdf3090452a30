//! Handing out work: the server that is idle first takes from the group of which the plan allots it most.
//!
//! A server takes a piece only if it can send it until the planned end, or if the other living replicas would not be
//! done sooner with all that is left. So a slow server does not begin the last segments of a transfer.

use super::Spread;
use crate::ask::Hold;
use crate::segments::SEGMENT_BYTES;
use crate::settings::Asking;
use crate::stock::Cursor;
use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// The time in which a server sends one piece.
const PIECE_TIME: Duration = Duration::from_millis(250);

/// The largest piece.
const PIECE_BYTES_MAX: u64 = 64 << 20;

/// A range of a connection is what it sends in this time and this many round trips, if enough is left: each range costs a round
/// trip.
const RANGE_TIME: Duration = Duration::from_secs(4);
const RANGE_ROUND_TRIPS: u32 = 20;

/// Of the time until the planned end, a range takes this share: rates change until then.
const RANGE_SHARE: f64 = 2.0 / 3.0;

/// Round trips in which a connection sends at least a range that is not the last one.
const RANGE_ROUND_TRIPS_MIN: u32 = 4;

/// The work that a server may take now.
struct Offer {
    group: usize,
    bytes: u64,
}

impl Offer {
    /// The offer, with at most `room` bytes.
    fn within(self, room: u64) -> Self {
        Self { bytes: self.bytes.min(room), ..self }
    }
}

impl Spread {
    /// Hands out work until no server has room or may take any.
    pub(super) fn hand_out(&mut self, now: Instant) {
        let rates: Vec<f64> = self.servers.iter().map(|server| server.rate(now)).collect();
        let mut waits = vec![false; self.servers.len()];
        while self.stock.free_bytes() > 0
            && let Some(room) = self.room()
        {
            let candidates = (0..self.servers.len()).filter(|&at| {
                let server = &self.servers[at];
                server.is_ready() && !waits[at] && server.has_room(rates[at])
            });
            let idle_at = |&at: &usize| self.servers[at].left as f64 / rates[at];
            let Some(server) = candidates.min_by(|a, b| idle_at(a).total_cmp(&idle_at(b))) else {
                return;
            };
            let offer = self.offer(server, &rates, now).map(|offer| offer.within(room));
            waits[server] = offer.and_then(|offer| self.hand(server, &offer, now)).is_none();
        }
    }

    /// How many bytes may be asked for. `None`: what is asked for has to arrive first.
    fn room(&self) -> Option<u64> {
        let Some(sink) = self.client.sink else { return Some(u64::MAX) };
        let asked: u64 = self.servers.iter().map(|server| server.left).sum();
        let segments = sink.bytes().saturating_sub(asked) / SEGMENT_BYTES;
        (segments > 0 || asked == 0).then(|| segments.max(1) * SEGMENT_BYTES)
    }

    /// Asks the server for what it was offered. `None` if there is nothing in the group.
    fn hand(&mut self, server: usize, offer: &Offer, now: Instant) -> Option<()> {
        let others = (0..self.servers.len()).filter(|&other| other != server);
        let mut others: Vec<u32> = others.filter_map(|other| self.servers[other].current).collect();
        others.sort_unstable();
        let small = self.small_file(server);
        let own = &mut self.servers[server].current;
        let cursor = Cursor { own, others: &others, small };
        let piece = self.stock.take(offer.group, DataSize::from_bytes(offer.bytes), cursor)?;
        let before = self.servers[server].left;
        self.ask(server, vec![piece], Hold::Owned, now);
        self.network.take(offer.group, server, self.servers[server].left - before);
        Some(())
    }

    /// The group that a server is to take from next, and how much.
    fn offer(&mut self, server: usize, rates: &[f64], now: Instant) -> Option<Offer> {
        if self.plan.scarce_first.is_some() {
            return self.offer_scarce(server, rates, now);
        }
        let has_free = |group: usize| self.stock.groups()[group].free_bytes() > 0;
        let planned = self.network.of_server(server).filter(|&(group, _)| has_free(group));
        let current = self.servers[server].current.filter(|&file| self.stock.is_unfinished(file));
        let current = current.map(|file| self.stock.group_index(file));
        // First the group of the file that it is in the middle of, then those with most bytes in the plan, then
        // those with the fewest living replicas.
        let key = |&(group, bytes): &(usize, u64)| {
            let is_current = bytes > 0 && Some(group) == current;
            (is_current, bytes, core::cmp::Reverse(self.living(group)), group)
        };
        let mut order: Vec<(usize, u64)> = planned.collect();
        order.sort_unstable_by_key(|entry| core::cmp::Reverse(key(entry)));
        order.into_iter().find_map(|(group, _)| {
            self.share(server, group, rates, now).map(|bytes| Offer { group, bytes })
        })
    }

    fn offer_scarce(&mut self, server: usize, rates: &[f64], now: Instant) -> Option<Offer> {
        let list = self.plan.scarce_first.as_mut()?.get_mut(server)?;
        let groups = self.stock.groups();
        while let Some(&last) = list.last() {
            let group = last as usize;
            if groups[group].free_bytes() > 0 {
                return self.share(server, group, rates, now).map(|bytes| Offer { group, bytes });
            }
            list.pop();
        }
        None
    }

    /// The number of living replicas of a group.
    fn living(&self, group: usize) -> u32 {
        self.stock.groups()[group].replicas().common(&self.up)
    }

    /// How many bytes of a group the server should take. `None`: it should leave the group to others.
    fn share(&self, server: usize, group: usize, rates: &[f64], now: Instant) -> Option<u64> {
        let (found, rate) = (&self.servers[server], rates[server]);
        let free = self.stock.groups()[group].free_bytes();
        let least = free.min(SEGMENT_BYTES);
        // A server that keeps its work begins only a piece that it can send whole until the end.
        let (piece, begun) = match found.settings.asking {
            Asking::Pieces(size) if !self.is_shared(server, group) => return Some(size.bytes()),
            Asking::Pieces(size) => (size.bytes(), free.min(size.bytes())),
            // No other server can take a part of it.
            Asking::Ranges(_) if self.is_alone(server, group) => return Some(u64::MAX),
            Asking::Ranges(first) => {
                (range_bytes(found.rtt, first, (rate, self.plan.end - now)), least)
            }
            Asking::Timed => {
                let piece = (rate * PIECE_TIME.as_secs_f64()) as u64;
                (piece.clamp(SEGMENT_BYTES, PIECE_BYTES_MAX), least)
            }
        };
        let left = (self.plan.end - now).as_secs_f64();
        let until_end = ((rate * left) as u64).saturating_sub(found.left);
        if until_end >= begun && found.finish(rate, begun) <= left {
            return Some(piece.min(until_end).max(least));
        }
        let replicas = self.stock.groups()[group].replicas().iter();
        let others = replicas.filter(|&other| other != server && self.servers[other].is_ready());
        let finish = found.finish(rate, least);
        // Segments that the others are done with by then.
        let done = others.map(|other| self.servers[other].segments_within(rates[other], finish));
        (done.sum::<u64>() < free.div_ceil(SEGMENT_BYTES)).then_some(least)
    }

    /// Whether no other server has the files of a group, neither now nor later.
    fn is_alone(&self, server: usize, group: usize) -> bool {
        self.stock.groups()[group].replicas().iter().all(|other| other == server)
    }

    /// Whether a server that gives work back is up and has the files of a group as well.
    fn is_shared(&self, server: usize, group: usize) -> bool {
        let mut replicas = self.stock.groups()[group].replicas().iter();
        replicas.any(|other| {
            let found = &self.servers[other];
            other != server && found.is_ready() && found.is_timed()
        })
    }

    /// Asks for one segment as a copy, to see whether a quiet server answers.
    pub(super) fn probe(&mut self, server: usize, now: Instant) {
        let groups = self.stock.groups().iter().enumerate();
        let mut with_work =
            groups.filter(|(_, group)| group.free_bytes() > 0 && group.replicas().contains(server));
        let piece =
            with_work.next().and_then(|(group, _)| self.stock.peek(group, self.small_file(server)));
        let Some(piece) = piece else { return };
        self.ask(server, vec![piece], Hold::Copy, now);
    }
}

/// The size of the next range of a connection. A range that ends near the planned end takes all until then, because a further
/// request would cost more than the connections may end apart.
fn range_bytes(rtt: Duration, first: DataSize, (rate, left): (f64, Duration)) -> u64 {
    let most = (rate * RANGE_TIME.max(rtt * RANGE_ROUND_TRIPS).as_secs_f64()) as u64;
    let share = rate * left.as_secs_f64() * RANGE_SHARE;
    let least = rate * (rtt * RANGE_ROUND_TRIPS_MIN).as_secs_f64();
    (share.max(least) as u64).clamp(SEGMENT_BYTES, most.max(first.bytes()).max(SEGMENT_BYTES))
}
