//! Transfers whose number of connections a controller decides, on one path.

use crate::path::{Path, Random, Spec};
use hikyaku_tuner::{Carried, Controller, Look};
use hikyaku_units::{DataSize, Instant};
use std::time::Duration;

/// Numbers of connections that a transfer may have.
const SLOTS: usize = 64;
/// Seconds between two looks.
const LOOK: f64 = 0.1;

/// Knowledge of round-trip times.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sight {
    RoundTrips,
    Nothing,
}

/// One transfer.
pub(crate) struct Transfer {
    controller: Controller,
    sight: Sight,
    begins: f64,
    first: usize,
    /// Its connections, the oldest first.
    open: Vec<usize>,
    /// Bytes of each, with the noise of measuring.
    seen: Vec<(f64, f64)>,
    handshake: Option<f64>,
    random: Random,
    /// When the number changed, and to what.
    pub(crate) numbers: Vec<(f64, u32)>,
}

impl Transfer {
    pub(crate) fn new(controller: Controller, sight: Sight, begins: f64) -> Self {
        let (seen, random) = (vec![(0.0, 0.0); SLOTS], Random(0));
        let (first, open, numbers) = (0, Vec::new(), Vec::new());
        Self { controller, sight, begins, first, open, seen, handshake: None, random, numbers }
    }

    /// A transfer that knows the path's round-trip time from an earlier transfer, in seconds.
    pub(crate) fn knowing(self, rtt: f64) -> Self {
        Self { handshake: Some(rtt), ..self }
    }

    /// The number of its connections at the end.
    pub(crate) fn n(&self) -> usize {
        self.open.len()
    }

    fn look(&mut self, path: &mut Path) {
        self.use_as_many(path);
        let round_trip = path.spec.rtt + path.waits;
        let handshake = *self.handshake.get_or_insert(round_trip);
        // The mean over a window has the deviation of the path.
        let looks = (0.6_f64).max(3.0 * path.spec.rtt) / LOOK;
        let factor = 1.0 + path.spec.noise * looks.sqrt() * self.random.normal();
        let connections: Vec<Carried> = self
            .open
            .iter()
            .filter(|slot| path.flows[self.first + **slot].is_flowing())
            .map(|&slot| {
                let bytes = path.flows[self.first + slot].bytes;
                let (seen, blurred) = &mut self.seen[slot];
                *blurred += (bytes - *seen) * factor.max(0.0);
                *seen = bytes;
                let round_trip =
                    (self.sight == Sight::RoundTrips).then(|| Duration::from_secs_f64(round_trip));
                Carried {
                    id: slot as u32,
                    bytes: DataSize::from_bytes(*blurred as u64),
                    round_trip,
                }
            })
            .collect();
        let all = self.seen.iter().map(|(_, blurred)| blurred).sum::<f64>();
        self.controller.handle_look(&Look {
            now: Instant::ZERO + Duration::from_secs_f64(path.now),
            bytes: DataSize::from_bytes(all as u64),
            held_up: Duration::ZERO,
            round_trip: Duration::from_secs_f64(handshake),
            left: None,
            connections: &connections,
        });
        self.use_as_many(path);
    }

    /// Opens and closes connections until there are as many as are wanted, or granted.
    fn use_as_many(&mut self, path: &mut Path) {
        let now = Instant::ZERO + Duration::from_secs_f64(path.now);
        while self.controller.n() as usize > path.spec.granted {
            self.controller.handle_refusal(path.spec.granted as u32, now);
        }
        let n = (self.controller.n() as usize).min(SLOTS);
        if self.numbers.last().is_none_or(|(_, last)| *last as usize != n) {
            self.numbers.push((path.now, n as u32));
        }
        while self.open.len() > n
            && let Some(slot) = self.open.pop()
        {
            path.close(self.first + slot);
        }
        for slot in 0..SLOTS {
            if self.open.len() < n && !self.open.contains(&slot) {
                path.open(self.first + slot);
                self.open.push(slot);
            }
        }
    }
}

/// Runs transfers on a path for some seconds. Returns the bytes of each at each of these times.
pub(crate) fn run(
    spec: Spec,
    transfers: &mut [Transfer],
    (seconds, times): (f64, &[f64]),
    seed: u64,
) -> Vec<Vec<f64>> {
    let mut path = Path::new(spec, SLOTS * transfers.len(), seed);
    for (number, transfer) in transfers.iter_mut().enumerate() {
        transfer.first = number * SLOTS;
        transfer.random = Random(seed ^ ((number as u64 + 1) << 32));
    }
    let (mut looked, mut at) = (0.0, Vec::new());
    while path.now < seconds {
        if path.now >= looked {
            looked += LOOK.max(path.step);
            let now = path.now;
            for transfer in transfers.iter_mut().filter(|one| now >= one.begins) {
                transfer.look(&mut path);
            }
        }
        path.advance();
        if at.len() < times.len() && path.now >= times[at.len()] {
            let bytes = |one: &Transfer| {
                path.flows[one.first..one.first + SLOTS].iter().map(|flow| flow.bytes).sum()
            };
            at.push(transfers.iter().map(bytes).collect());
        }
    }
    at
}
