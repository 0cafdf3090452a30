//! The published rule for a transfer that looks at its connections: the bytes between two looks are its chunks.
//!
//! A chunk begins when as many connections carry bytes as were asked for, and four round trips have passed since. So what slow
//! start costs belongs to no number.

use crate::look::{Look, Measured};
use crate::paper::Paper;
use crate::sample::{Decision, LimitedBy, Next, Phase, Sample};
use crate::window::{Delay, Verdict, Window};
use core::time::Duration;
use hikyaku_units::{DataSize, Instant};

/// Round trips between the last connection's first byte and the beginning of a chunk.
const SETTLE_ROUND_TRIPS: u32 = 4;
/// Time that connections have to come up. A chunk begins with those that have.
const OPEN_MAX: Duration = Duration::from_secs(5);

/// The published rule, and the chunk that it measures.
#[derive(Clone, Debug)]
pub(crate) struct Chunked {
    paper: Paper,
    asked: Decision,
    asked_at: Option<Instant>,
    full_since: Option<Instant>,
    window: Option<Window>,
    delay: Delay,
}

impl Chunked {
    pub(crate) const fn new(paper: Paper) -> Self {
        let asked = paper.start();
        let delay = Delay::new();
        Self { paper, asked, asked_at: None, full_since: None, window: None, delay }
    }

    pub(crate) const fn n(&self) -> u32 {
        self.asked.n
    }

    pub(crate) const fn phase(&self) -> Phase {
        self.asked.phase
    }

    pub(crate) fn handle_look(&mut self, look: &Look<'_>, cap: u32) -> Option<Measured> {
        let (now, queue) = (look.now, self.delay.look(look));
        let asked_at = *self.asked_at.get_or_insert(now);
        let (open, wanted) = (look.connections.len(), self.asked.n.min(cap));
        let Some(window) = &mut self.window else {
            let is_full = open >= wanted as usize;
            self.full_since = if is_full { self.full_since.or(Some(now)) } else { None };
            let settle = self.delay.round_trip() * SETTLE_ROUND_TRIPS;
            let is_settled = self.full_since.is_some_and(|at| now - at >= settle);
            if is_settled || (now - asked_at >= OPEN_MAX && open > 0) {
                self.window = Some(Window::begin(look));
            }
            return None;
        };
        window.add(look, (wanted, queue), Duration::ZERO);
        let Next::Bytes(size) = self.asked.next else { return None };
        if window.bytes(look) < size.bytes() || window.elapsed().is_zero() {
            return None;
        }
        let (mut measured, verdict) = (window.measured(look), window.verdict(look));
        let n = if let Verdict::Few(open) = verdict { open } else { wanted };
        let is_held_up = verdict == Verdict::HeldUp;
        self.asked = self.paper.handle_sample(&Sample {
            n,
            bytes: DataSize::from_bytes(window.bytes(look)),
            elapsed: window.elapsed(),
            limited_by: if is_held_up { LimitedBy::Disk } else { LimitedBy::Network },
        });
        measured.asked = self.asked.n;
        (self.window, self.full_since, self.asked_at) = (None, None, Some(now));
        Some(measured)
    }
}
