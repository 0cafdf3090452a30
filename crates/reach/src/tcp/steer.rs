//! The number of TCP connections that carry a connection, from what they carry.
//!
//! The end that connected opens pipes and says how many of them carry data, for both directions: it measures what both
//! together move. The rule is that of `hikyaku-tuner`. Nothing is opened before there is something to carry, and a time in
//! which nothing moves counts for nothing. Pipes that are given up stay open: taken back, they need no handshake.

use super::{Decisions, Further};
use hikyaku_pipes::Extender;
use hikyaku_tuner::{ClimbOptions, Controller, Look};
use hikyaku_units::{DataSize, Instant as LookAt};
pub(super) use seen::Seen;
use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

mod seen;
#[cfg(test)]
mod tests;

/// How many TCP connections carry a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Pipes {
    /// As many as bring something, at most [`PIPES_MAX`].
    #[default]
    Auto,
    /// This many; at least one, and at most [`PIPES_MAX`].
    Fixed(u32),
}

/// The largest number of TCP connections that carry a connection.
pub const PIPES_MAX: u32 = Extender::PIPES_MAX as u32;

/// The shortest time between two looks at the counters.
const TICK: Duration = Duration::from_millis(100);
/// Bytes that are carried by the first pipe, before others are opened.
const ALONE_BYTES: u64 = 256 << 10;
/// Handshakes at a time. A daemon hangs up on more of one address.
const HANDSHAKES: usize = 12;
/// A pause after a pipe could not be opened.
const PAUSE: Duration = Duration::from_secs(1);
/// Nothing has moved for so many round trips: less than one sees bursts and pauses.
const PAUSE_ROUND_TRIPS: f64 = 1.5;

/// Opens pipes as the controller asks for them, until the connection has ended.
pub(super) struct Steer {
    extender: Extender,
    further: Further,
    /// The number of the next pipe. The first one has 0.
    next: AtomicU32,
    controller: Controller,
    /// How many carry data.
    width: u32,
    seen: Seen,
    idle: Idle,
    decisions: Decisions,
}

impl Steer {
    /// Starts the thread that steers. `seen` has the socket of the first pipe.
    pub(super) fn start(
        extender: Extender,
        (pipes, decisions): (Pipes, Decisions),
        (round_trip, seen): (Duration, Seen),
        further: Further,
    ) -> io::Result<()> {
        let mut controller = match pipes {
            Pipes::Auto => {
                Controller::climb(&ClimbOptions { cap: PIPES_MAX, ..ClimbOptions::default() })
            }
            Pipes::Fixed(0 | 1) => return Ok(()),
            Pipes::Fixed(n) => Controller::fixed(n.min(PIPES_MAX)),
        };
        seen.held_before().into_iter().for_each(|held| controller.begin_after(held));
        let (next, width) = (AtomicU32::new(1), u32::MAX);
        let idle = Idle::new(Instant::now(), round_trip);
        let steer = Self { extender, further, next, controller, width, seen, idle, decisions };
        thread::Builder::new().name("tcp-steer".to_owned()).spawn(move || steer.run()).map(drop)
    }

    fn run(mut self) {
        while self.moved() < ALONE_BYTES || self.extender.token().is_none() {
            if self.extender.is_over() {
                return;
            }
            thread::sleep(TICK / 4);
        }
        let begin = Instant::now();
        while !self.extender.is_over() {
            self.open_missing();
            let wanted = self.controller.n();
            if wanted != self.width {
                self.extender.set_width(wanted);
                self.width = wanted;
            }
            thread::sleep(TICK);
            let (now, moved) = (Instant::now(), self.moved());
            let connections = self.seen.look(wanted as usize);
            self.idle.look(now, moved, connections.len());
            let phase = self.controller.phase();
            let measured = self.controller.handle_look(&Look {
                now: LookAt::ZERO + (now - begin),
                bytes: DataSize::from_bytes(moved),
                held_up: self.idle.lasted + self.seen.unsent(),
                round_trip: self.seen.round_trip(),
                left: None,
                connections: &connections,
            });
            if let Some(measured) = measured {
                self.decisions.add((measured, phase));
                self.seen.note_held(self.controller.held());
            }
        }
    }

    /// Bytes that both directions have moved.
    fn moved(&self) -> u64 {
        let figures = self.extender.figures();
        figures.arrived + figures.confirmed
    }

    /// Opens as many pipes as are missing, some at a time.
    fn open_missing(&mut self) {
        let wanted = self.controller.n() as usize;
        while !self.extender.is_over() {
            let missing = wanted.saturating_sub(self.extender.figures().pipes);
            let Some(token) = self.extender.token().filter(|_| missing > 0) else { return };
            let (next, further, extender) = (&self.next, &self.further, &self.extender);
            let open = || {
                let id = next.fetch_add(1, Ordering::Relaxed);
                Some((id, further.open(id, token, extender).ok()?))
            };
            let opened: Vec<(u32, TcpStream)> = thread::scope(|scope| {
                let all: Vec<_> = (0..missing.min(HANDSHAKES)).map(|_| scope.spawn(open)).collect();
                all.into_iter().filter_map(|one| one.join().ok()?).collect()
            });
            if opened.is_empty() {
                thread::sleep(PAUSE);
                return;
            }
            self.seen.add(opened);
        }
    }
}

/// The time in which nothing was carried, summed over the pipes: there was nothing to send.
struct Idle {
    looked: Instant,
    /// When it was seen last that something had moved, and how much had then.
    moved: (Instant, u64),
    patience: Duration,
    lasted: Duration,
}

impl Idle {
    fn new(now: Instant, round_trip: Duration) -> Self {
        let patience = round_trip.mul_f64(PAUSE_ROUND_TRIPS).max(TICK);
        Self { looked: now, moved: (now, 0), patience, lasted: Duration::ZERO }
    }

    fn look(&mut self, now: Instant, moved: u64, pipes: usize) {
        let since = now.duration_since(self.looked);
        self.looked = now;
        if moved != self.moved.1 {
            self.moved = (now, moved);
        } else if now.duration_since(self.moved.0) >= self.patience {
            self.lasted += since * u32::try_from(pipes).unwrap_or(u32::MAX);
        }
    }
}
