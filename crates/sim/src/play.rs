//! Runs a [`Plot`] on two connections and checks invariants.
//!
//! Every byte is delivered once and unchanged. Neither end exceeds its flow-control credit. No
//! packet number is used twice. A handled timer is in the future, and no timer fires without effect
//! again and again. At the end the path works, and all transfers complete. With a malicious peer,
//! the honest end must not panic.

use crate::apps::Apps;
use crate::duo::{Duo, Mark, Words, index, other};
use crate::idle::Idle;
use crate::ops::{Op, Plot};
use crate::visits::Visits;
use crate::watch::Watch;
use hikyaku_proto::{CloseReason, Priority, Side, StreamId, StreamKind};
use hikyaku_units::Instant;
use hikyaku_wire::{Ack, Block, Frame, SHORT_HEADER_LEN, Sample, ShortHeader, Trailer, is_long};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// The one-way delay of the path, which has no queue.
const ONE_WAY_DELAY: Duration = Duration::from_millis(5);
/// Maximum packets in flight in one direction; a router drops the others.
const IN_FLIGHT_MAX: usize = 3000;
/// Steps of one millisecond in which all transfers must complete at the end.
const SETTLE_STEPS: u32 = 60_000;
/// The same with a malicious peer, whose transfers need not complete.
const SETTLE_STEPS_WITH_LIARS: u32 = 2000;
/// An end that received a packet this recently before the path worked again does not time out,
/// because its peer keeps sending.
const RECENT_PACKET_AGE_MAX: Duration = Duration::from_secs(15);

/// Runs the test case. Returns the violated invariant as an error.
pub fn play(plot: &Plot) -> Result<(), String> {
    let mut stage = Stage::new(plot);
    for (number, &op) in plot.ops.iter().enumerate() {
        stage.act(op).map_err(|what| format!("step {number}, {op:?}: {what}"))?;
    }
    stage.settle().map_err(|what| format!("after the last step: {what}"))
}

struct Stage {
    duo: Duo,
    apps: Apps,
    watch: Watch,
    flying: [VecDeque<Flying>; 2],
    visits: Visits,
    /// The largest datagram that the path carries.
    widest: usize,
    honesty: Honesty,
    /// When something new last arrived at each end.
    last_news: [Instant; 2],
    is_judged: [bool; 2],
    idle: Idle,
    close_asked: bool,
    has_flipped: bool,
    /// Since when the path works without faults.
    calm_since: Option<Instant>,
}

/// A packet in flight.
#[derive(Clone)]
struct Flying {
    /// The client's address, as source or destination.
    address: SocketAddr,
    bytes: Vec<u8>,
}

/// Whether both ends are honest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Honesty {
    Honest,
    Lying,
}

impl Stage {
    fn new(plot: &Plot) -> Self {
        let [client, server] = plot.configs();
        let duo = Duo::apart(&client, &server);
        Self {
            last_news: [duo.now; 2],
            is_judged: [false; 2],
            duo,
            apps: Apps::new(u64::from(plot.settings)),
            watch: Watch::new([&client, &server]),
            flying: Default::default(),
            visits: Visits::new(),
            widest: usize::MAX,
            honesty: Honesty::Honest,
            idle: Idle::default(),
            close_asked: false,
            has_flipped: false,
            calm_since: None,
        }
    }

    fn act(&mut self, op: Op) -> Result<(), String> {
        match op {
            Op::Open { by, kind } => {
                self.apps.open(self.duo.end(by), kind);
            }
            Op::Write { by, nth, len } => {
                self.apps.write(self.duo.end(by), nth.into(), len.into());
            }
            Op::Finish { by, nth } => self.apps.finish(self.duo.end(by), nth.into()),
            Op::BreakOff { by, nth } => self.apps.break_off(self.duo.end(by), nth.into()),
            Op::Cut { by, nth } => self.apps.cut(self.duo.end(by), nth.into()),
            Op::Hurry { by, nth } => {
                let priority = if nth & 1 == 0 { Priority::Urgent } else { Priority::Normal };
                self.apps.set_priority(self.duo.end(by), nth.into(), priority);
            }
            Op::Reset { by, nth } => self.apps.reset(self.duo.end(by), nth.into()),
            Op::Stop { by, nth } => self.apps.stop(self.duo.end(by), nth.into()),
            Op::Read { by, len } => self.read(by, len.into())?,
            Op::Pass { time } => self.pass(Duration::from_micros(10) * u32::from(time))?,
            Op::Wait { seconds } => self.pass(Duration::from_secs(seconds.into()))?,
            Op::Deliver { to, count } => self.deliver(to, count.into()),
            Op::Drop { to, count } => {
                let flying = &mut self.flying[index(to)];
                flying.drain(..usize::from(count).min(flying.len()));
            }
            Op::Duplicate { to } => {
                if let Some(packet) = self.flying[index(to)].front().cloned() {
                    self.arrive(to, packet, Mark::None);
                }
            }
            Op::Delay { to, behind } => {
                let flying = &mut self.flying[index(to)];
                if let Some(packet) = flying.pop_front() {
                    flying.insert(usize::from(behind).min(flying.len()), packet);
                }
            }
            Op::Flip { to, bit } => {
                if let Some(packet) = self.flying[index(to)].front_mut() {
                    let bit = usize::from(bit) % (packet.bytes.len() * 8);
                    packet.bytes[bit / 8] ^= 1 << (bit % 8);
                    self.has_flipped = true;
                }
            }
            Op::Mark { to } => {
                if let Some(packet) = self.flying[index(to)].pop_front() {
                    self.arrive(to, packet, Mark::Congestion);
                }
            }
            Op::Flow { rounds } => {
                (0..rounds).try_for_each(|_| self.flow())?;
            }
            Op::Narrow { over } => self.widest = 1200 + usize::from(over),
            Op::Refuse { by, over } => {
                let now = self.duo.now;
                self.duo.end(by).handle_too_big(now, 1200 + usize::from(over));
            }
            Op::Forge { to, what, value } => self.forge(to, what, value),
            Op::Close { by } => {
                self.duo.end(by).close(0x100, "enough");
                self.close_asked = true;
            }
            Op::Move { host } => self.visits.go(host),
        }
        self.turn()
    }

    fn read(&mut self, by: Side, most: usize) -> Result<(), String> {
        self.allowing_lies(|stage| stage.apps.read(stage.duo.end(by), most))
    }

    /// Ignores the errors that a malicious peer may cause in an application.
    fn allowing_lies(
        &mut self,
        act: impl FnOnce(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        let result = act(self);
        if self.honesty == Honesty::Lying { Ok(()) } else { result }
    }

    /// Lets both ends do what they have to do now.
    fn turn(&mut self) -> Result<(), String> {
        for side in [Side::Client, Side::Server] {
            let packets = self.duo.take_addressed(side);
            if !packets.is_empty() {
                self.idle = Idle::default();
            }
            for (target, bytes) in packets {
                self.allowing_lies(|stage| stage.watch.leaves(side, &bytes))?;
                let address = match side {
                    Side::Client => self.visits.now(),
                    Side::Server => {
                        self.allowing_lies(|stage| stage.visits.leaves_for(target, &bytes))?;
                        target
                    }
                };
                let flying = &mut self.flying[index(other(side))];
                if bytes.len() <= self.widest && flying.len() < IN_FLIGHT_MAX {
                    flying.push_back(Flying { address, bytes });
                }
            }
            self.allowing_lies(|stage| stage.apps.handle_events(stage.duo.end(side)))?;
            self.judge_end(side)?;
        }
        Ok(())
    }

    /// Checks why an end closed. Honest ends close only when asked to, or after a long silence.
    fn judge_end(&mut self, side: Side) -> Result<(), String> {
        let Some(reason) = self.apps.closed(side) else { return Ok(()) };
        if std::mem::replace(&mut self.is_judged[index(side)], true) {
            return Ok(());
        }
        let silence = self.duo.now - self.last_news[index(side)];
        let is_right = match reason {
            CloseReason::Local | CloseReason::Peer { .. } => self.close_asked,
            CloseReason::TimedOut => {
                let was_heard =
                    |calm: Instant| calm - self.last_news[index(side)] < RECENT_PACKET_AGE_MAX;
                let is_alone = self.apps.closed(other(side)).is_some();
                let is_wrong = !is_alone && self.calm_since.is_some_and(was_heard);
                silence >= Duration::from_secs(30) && !is_wrong
            }
            CloseReason::Unreachable => self.duo.now >= Instant::from_millis(11_000),
            // Before the handshake keys exist, a flipped bit cannot be detected.
            CloseReason::Version(_) => self.has_flipped,
            CloseReason::Handshake(_) | CloseReason::Violation(_) => false,
        };
        let is_used_up = matches!(reason, CloseReason::Violation(text) if text.contains("used up"));
        if is_right || is_used_up || self.honesty == Honesty::Lying {
            return Ok(());
        }
        Err(format!("{side:?} ended: {reason}"))
    }

    /// Advances the time, and calls both ends when their timers are due.
    fn pass(&mut self, time: Duration) -> Result<(), String> {
        let until = self.duo.now + time;
        loop {
            let before = self.duo.now;
            let Some(due) = self.duo.next_timeout().filter(|due| *due <= until) else { break };
            // If the timer is due although it was just handled, it is retried a little later, which
            // must not happen often.
            self.duo.now = due.max(before + Duration::from_micros(10)).min(until.max(before));
            self.idle.count(self.duo.now);
            self.turn()?;
            if self.idle.is_busy(self.duo.now) {
                let timers =
                    [Side::Client, Side::Server].map(|side| self.duo.end(side).poll_timeout());
                return Err(format!("a busy loop at {:?}: {timers:?}", self.duo.now));
            }
            if self.duo.now >= until {
                break;
            }
        }
        self.duo.now = until.max(self.duo.now);
        self.turn()
    }

    /// Delivers the next packets to an end. Those of one length are in one buffer.
    fn deliver(&mut self, to: Side, count: usize) {
        let mut left = count;
        while left > 0 {
            let flying = &mut self.flying[index(to)];
            let Some(Flying { address, bytes: first }) = flying.pop_front() else { return };
            let (stride, mut bytes) = (first.len(), first);
            left -= 1;
            while left > 0
                && bytes.len().is_multiple_of(stride)
                && bytes.len() < 60_000
                && flying
                    .front()
                    .is_some_and(|next| next.bytes.len() <= stride && next.address == address)
            {
                let Some(next) = flying.pop_front() else { break };
                bytes.extend_from_slice(&next.bytes);
                left -= 1;
            }
            self.carry(to, Flying { address, bytes }, stride, Mark::None);
        }
    }

    fn arrive(&mut self, to: Side, packet: Flying, mark: Mark) {
        let stride = packet.bytes.len();
        self.carry(to, packet, stride, mark);
    }

    /// Delivers packets of `stride` bytes to an end, if they are addressed to it.
    fn carry(&mut self, to: Side, Flying { address, bytes }: Flying, stride: usize, mark: Mark) {
        let source = match to {
            Side::Client if address != self.visits.now() => return,
            Side::Client => crate::duo::address(Side::Server),
            Side::Server => address,
        };
        for packet in bytes.chunks(stride) {
            self.watch.arrives(to, packet);
            if to == Side::Server {
                self.visits.come_from(source, packet);
            }
        }
        let before = self.duo.end(to).stats().received.packets;
        self.duo.give_from(source, to, (bytes, stride), mark);
        if self.duo.end(to).stats().received.packets > before {
            self.last_news[index(to)] = self.duo.now;
        }
    }

    /// One round trip without faults, in which everything is read.
    fn flow(&mut self) -> Result<(), String> {
        for to in [Side::Server, Side::Client] {
            self.pass(ONE_WAY_DELAY)?;
            let count = self.flying[index(to)].len();
            self.deliver(to, count);
            self.read(to, usize::MAX)?;
            self.turn()?;
        }
        Ok(())
    }

    /// Replaces the content of the next packet.
    fn forge(&mut self, to: Side, what: u8, value: u16) {
        let from = other(to);
        let generation = self.duo.end(from).stats().key_updates;
        let Some(packet) = self.flying[index(to)].front_mut() else { return };
        let Ok(header) = ShortHeader::decode(&packet.bytes) else { return };
        if is_long(&packet.bytes) || packet.bytes.len() < SHORT_HEADER_LEN {
            return;
        }
        self.honesty = Honesty::Lying;
        let words = lie(what, value, header.packet_number);
        packet.bytes = words.packet(from, header.packet_number, generation);
    }

    /// Completes all transfers, then closes both ends.
    fn settle(&mut self) -> Result<(), String> {
        self.widest = usize::MAX;
        self.calm_since = Some(self.duo.now);
        let patience = match self.honesty {
            Honesty::Honest => SETTLE_STEPS,
            Honesty::Lying => SETTLE_STEPS_WITH_LIARS,
        };
        for _ in 0..patience {
            for side in [Side::Client, Side::Server] {
                self.apps.finish_all(self.duo.end(side));
            }
            self.flow()?;
            let is_closed =
                [Side::Client, Side::Server].map(|side| self.apps.closed(side).is_some());
            if self.apps.unfinished().is_none() || is_closed != [false; 2] {
                break;
            }
        }
        let is_closed = [Side::Client, Side::Server].map(|side| self.apps.closed(side).is_some());
        if let (Some(what), [false, false]) = (self.apps.unfinished(), is_closed)
            && self.honesty == Honesty::Honest
        {
            let stats = [Side::Client, Side::Server].map(|side| self.duo.end(side).stats());
            return Err(format!("it never ends: {what}; {stats:#?}"));
        }
        self.close_asked = true;
        self.duo.end(Side::Client).close(0, "done");
        // Closes one end or both.
        if self.watch.packets.is_multiple_of(2) {
            self.duo.end(Side::Server).close(0, "done");
        }
        for _ in 0..SETTLE_STEPS {
            if [Side::Client, Side::Server].map(|side| self.duo.end(side).is_closed()) == [true; 2]
            {
                return Ok(());
            }
            self.flow()?;
        }
        Err("the ends do not go".to_owned())
    }
}

/// Numbers at which an implementation is likely to fail.
fn number(value: u16) -> u64 {
    let small = u64::from(value >> 3);
    match value & 7 {
        0 | 1 => small,
        2 => small << 10,
        3 => small << 20,
        4 => (1 << 32) - 1 - small,
        5 => (1 << 53) + small,
        6 => (1 << 61) + small,
        _ => (1 << 62) - 1 - small,
    }
}

/// A forged content by its number.
fn lie(what: u8, value: u16, around: u64) -> Words {
    let (n, id) = (number(value), StreamId(u32::from(value >> 12)));
    let far = StreamId(u32::try_from(n).unwrap_or(u32::MAX));
    let near = around.saturating_sub(u64::from(value) % 300);
    let ack = |largest: u64, first: u64, runs: Vec<u32>| {
        let sample = Sample { packet_number: first, micros: n, bytes: n };
        let blocks = vec![Block { first, runs }];
        let (packets, ce) = (n, n);
        let samples = vec![sample; usize::from(value % 3)];
        Frame::Ack(Ack { largest, delay_micros: n, packets, ce, host_drops: n, samples, blocks })
    };
    let frame = match what % 24 {
        0 => Frame::Ping,
        1 => ack(near, near.saturating_sub(40), vec![20, 3, 17]),
        2 => ack(n, n.saturating_sub(5), vec![5]),
        3 => ack(near, 0, vec![0, 60_000]),
        4 => ack(near, near, vec![1]),
        5 => Frame::Floor { floor: n, rtt_micros: n },
        6 => Frame::Floor { floor: near, rtt_micros: u64::from(value) },
        7 => Frame::Crypto { offset: n, data: vec![1; 50] },
        8 => Frame::HandshakeDone,
        9 => Frame::MaxData(n),
        10 => Frame::MaxStreamData { stream: id, limit: n },
        11 => Frame::MaxStreamData { stream: far, limit: n },
        12 => Frame::MaxStreams {
            kind: if value & 8 == 0 { StreamKind::Ordered } else { StreamKind::Object },
            count: u32::try_from(n).unwrap_or(u32::MAX),
        },
        13 => Frame::Fin { stream: id, size: n },
        14 => Frame::Fin { stream: far, size: 10 },
        15 => Frame::Reset { stream: id, code: n, size: n },
        16 => Frame::Reset { stream: far, code: n, size: 10 },
        17 => Frame::Stop { stream: id, code: n },
        18 => Frame::Stop { stream: far, code: n },
        19 => Frame::PathChallenge(n),
        20 => Frame::Close { code: n, reason: vec![0x1b; usize::from(value % 256)] },
        21 => {
            let noise = (0..value % 700).map(|at| (at.wrapping_mul(value) >> 5) as u8);
            return Words::Control(noise.collect());
        }
        22 => {
            let trailer = Trailer { stream: far.0, offset: 0 };
            return Words::Data(trailer, vec![9; usize::from(value % 1000)]);
        }
        _ => {
            let trailer = Trailer { stream: id.0, offset: n };
            return Words::Data(trailer, vec![9; usize::from(value % 1000)]);
        }
    };
    Words::frames(&[frame])
}
