//! CUBIC (RFC 9438) with HyStart as Linux has it.

use super::News;
use hikyaku_units::Instant;
use std::time::Duration;

pub(super) struct Cubic {
    window: f64,
    threshold: f64,
    /// The window before the last cut.
    most: f64,
    epoch: Option<Epoch>,
    /// The window that Reno would have.
    reno: f64,
    start: HyStart,
}

/// The time since the last cut, in which the window follows one cubic curve.
struct Epoch {
    began: Instant,
    /// When the curve reaches its flat, in seconds.
    flat: f64,
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

const FIRST: f64 = 10.0;
const C: f64 = 0.4;
const BETA: f64 = 0.7;
const LEAST: f64 = 2.0;
/// HyStart looks at windows from here on, at so many samples of a round.
const LOW: f64 = 16.0;
const SAMPLES: u32 = 8;
/// Acknowledgements this close belong to one train.
const TRAIN: Duration = Duration::from_millis(2);

impl Cubic {
    pub(super) const fn new() -> Self {
        Self {
            window: FIRST,
            threshold: f64::INFINITY,
            most: 0.0,
            epoch: None,
            reno: FIRST,
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

    pub(super) fn on_ack(&mut self, news: &News) {
        if self.window < self.threshold {
            self.window += 1.0;
            if self.window >= LOW && self.start.is_over(news) {
                self.threshold = self.window;
            }
            return;
        }
        let (window, most) = (self.window, self.most);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: news.now,
            flat: ((most - window).max(0.0) / C).cbrt(),
            origin: window.max(most),
        });
        let at = (news.now - epoch.began).as_secs_f64() + news.rtt.least;
        let target = C.mul_add((at - epoch.flat).powi(3), epoch.origin);
        let target = target.clamp(window, 1.5 * window);
        self.window += (target - window) / window;
        // As fast as Reno at least (section 4.3).
        let alpha = if self.reno < most { 3.0 * (1.0 - BETA) / (1.0 + BETA) } else { 1.0 };
        self.reno += alpha / window;
        self.window = self.window.max(self.reno);
    }

    pub(super) fn on_loss(&mut self) {
        // Fast convergence (section 4.7).
        self.most =
            if self.window < self.most { self.window * (1.0 + BETA) / 2.0 } else { self.window };
        self.window = (self.window * BETA).max(LEAST);
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
    /// Whether the path seems to be full: the round trip grew, or a train of acknowledgements lasts half
    /// of it.
    fn is_over(&mut self, news: &News) -> bool {
        if news.number >= self.end {
            *self = Self {
                end: news.next,
                began: news.now,
                last: news.now,
                samples: 0,
                least: f64::INFINITY,
            };
        }
        if news.now - self.last <= TRAIN {
            self.last = news.now;
            if (news.now - self.began).as_secs_f64() > news.rtt.least / 2.0 {
                return true;
            }
        }
        if self.samples < SAMPLES {
            self.samples += 1;
            self.least = self.least.min(news.rtt.latest);
        }
        let more = (news.rtt.least / 8.0).clamp(0.004, 0.016);
        self.samples == SAMPLES && self.least > news.rtt.least + more
    }
}
