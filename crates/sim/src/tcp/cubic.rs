//! CUBIC (RFC 9438) with HyStart as Linux has it.

use super::AckInfo;
use hikyaku_units::Instant;
use std::time::Duration;

pub(super) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before the last reduction (W_max).
    window_max: f64,
    epoch: Option<Epoch>,
    /// The window that Reno would have (W_est).
    reno: f64,
    start: HyStart,
}

/// The time since the last reduction, in which the window follows one cubic curve.
struct Epoch {
    began: Instant,
    /// When the curve reaches its plateau, in seconds (K).
    plateau: f64,
    origin: f64,
}

/// One round of slow start.
struct HyStart {
    end: u64,
    began: Instant,
    last: Instant,
    samples: u32,
    least: f64,
}

const INITIAL_WINDOW: f64 = 10.0;
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const WINDOW_MIN: f64 = 2.0;
/// The window from which HyStart applies, and the samples of a round that it uses.
const HYSTART_WINDOW_MIN: f64 = 16.0;
const HYSTART_SAMPLES: u32 = 8;
/// Acknowledgements within this interval belong to one train.
const TRAIN_INTERVAL_MAX: Duration = Duration::from_millis(2);

impl Cubic {
    pub(super) const fn new() -> Self {
        Self {
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            window_max: 0.0,
            epoch: None,
            reno: INITIAL_WINDOW,
            start: HyStart {
                end: 0,
                began: Instant::ZERO,
                last: Instant::ZERO,
                samples: 0,
                least: f64::INFINITY,
            },
        }
    }

    pub(super) fn window(&self) -> usize {
        self.window as usize
    }

    pub(super) fn on_ack(&mut self, ack: &AckInfo) {
        if self.window < self.threshold {
            self.window += 1.0;
            if self.window >= HYSTART_WINDOW_MIN && self.start.is_over(ack) {
                self.threshold = self.window;
            }
            return;
        }
        let (window, window_max) = (self.window, self.window_max);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: ack.now,
            plateau: ((window_max - window).max(0.0) / C).cbrt(),
            origin: window.max(window_max),
        });
        let at = (ack.now - epoch.began).as_secs_f64() + ack.rtt.least;
        let target = C.mul_add((at - epoch.plateau).powi(3), epoch.origin);
        let target = target.clamp(window, 1.5 * window);
        self.window += (target - window) / window;
        // At least as fast as Reno (RFC 9438, section 4.3).
        let alpha = if self.reno < window_max { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.reno += alpha / window;
        self.window = self.window.max(self.reno);
    }

    pub(super) fn on_loss(&mut self) {
        // Fast convergence (RFC 9438, section 4.7).
        self.window_max = if self.window < self.window_max {
            self.window * (1.0 + BETA) / 2.0
        } else {
            self.window
        };
        self.window = (self.window * BETA).max(WINDOW_MIN);
        self.threshold = self.window;
        self.reno = self.window;
        self.epoch = None;
    }

    pub(super) fn on_timeout(&mut self) {
        self.on_loss();
        self.window = 1.0;
    }
}

impl HyStart {
    /// Whether the path seems to be full: the round-trip time has grown, or a train of
    /// acknowledgements lasts half of it.
    fn is_over(&mut self, ack: &AckInfo) -> bool {
        if ack.number >= self.end {
            *self = Self {
                end: ack.next,
                began: ack.now,
                last: ack.now,
                samples: 0,
                least: f64::INFINITY,
            };
        }
        if ack.now - self.last <= TRAIN_INTERVAL_MAX {
            self.last = ack.now;
            if (ack.now - self.began).as_secs_f64() > ack.rtt.least / 2.0 {
                return true;
            }
        }
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            self.least = self.least.min(ack.rtt.latest);
        }
        let more = (ack.rtt.least / 8.0).clamp(0.004, 0.016);
        self.samples == HYSTART_SAMPLES && self.least > ack.rtt.least + more
    }
}
