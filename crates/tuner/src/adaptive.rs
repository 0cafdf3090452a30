//! A rule for transfers that can change their number of connections at any time.
//!
//! Below the number that fills a path, goodput grows with the number; above it, it does not. The rule doubles the number
//! until goodput grows less than the number does, computes the bend from the last two numbers, and stays a little above
//! it. Elasticity is the measure: `ln(G1/G2) / ln(N1/N2)`, 1 where more connections bring as much more, 0 where they
//! bring nothing.
//!
//! Against noise, a number at which the growth seems to end is measured once more, and the mean of both counts. Against
//! change, the rule tries half as many again after [`LOOK_EPOCHS_MIN`] epochs, and ever more rarely if that brings
//! nothing. Others who come take a part of the goodput: then the looks are frequent again, so that all end with about as
//! many connections. If goodput falls below half of its mean for two epochs, it begins anew with half of the number.
//!
//! Several tuned transfers on one path do not agree on a number that just fills it: each adds connections while its own
//! goodput grows by that, until all have similar shares (`tests/sharing.rs`).

use crate::sample::{Decision, Next, Phase, Sample};
use crate::screen::{Point, Screen, Verdict};
use core::time::Duration;

#[cfg(test)]
mod tests;

/// Elasticity from which the number is doubled again.
const FREE: f64 = 0.75;
/// Elasticity below which a second measurement ends the growth.
const BEND: f64 = 0.7;
/// Factor above the bend: an estimate that is too low costs goodput, one that is too high costs connections.
const MARGIN: f64 = 1.15;
/// Weight of a new epoch in the mean while the number stays.
const WEIGHT: f64 = 0.25;
/// Goodput below this share of its mean is a change of the path.
const FALLEN: f64 = 0.5;
/// Epochs of low goodput in a row before the rule begins anew.
const FALLEN_EPOCHS: u32 = 2;
/// Goodput below this share of what it was when the number was chosen means that others have come: looks are frequent
/// again.
const CROWDED: f64 = 0.85;
/// Epochs before the rule looks whether more connections would bring more.
const LOOK_EPOCHS_MIN: u32 = 8;
/// Epochs between two looks after several without a gain.
const LOOK_EPOCHS_MAX: u32 = 64;

/// Options of [`Adaptive`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AdaptiveOptions {
    /// Connections of the first epoch. Default 4.
    pub first: u32,
    /// The largest number. Default 64: beyond it hosts and servers suffer, whatever the path gives.
    pub cap: u32,
    /// How long goodput is measured before a decision. Default 1.5 s; it should be six round trips at least.
    pub epoch: Duration,
}

impl Default for AdaptiveOptions {
    fn default() -> Self {
        Self { first: 4, cap: 64, epoch: Duration::from_millis(1500) }
    }
}

/// Doubles up to the bend, stays there, and looks again. See the module's documentation.
#[derive(Clone, Debug)]
pub struct Adaptive {
    cap: u32,
    epoch: Duration,
    screen: Screen,
    state: State,
    asked: Decision,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// `below`: the number before. `once`: goodput of this number, which is measured a second time.
    Growing { below: Option<Point>, once: Option<f64> },
    /// `epochs` of `until` have passed; `low` of them, the last ones, were below [`FALLEN`]. `chosen`: goodput when the
    /// number was chosen.
    Staying { mean: Point, epochs: u32, until: u32, low: u32, chosen: f64 },
    /// One epoch with more.
    Looking { mean: Point, until: u32 },
}

impl Adaptive {
    /// A rule that has measured nothing. Zeros among the numbers are taken for 1.
    pub fn new(options: &AdaptiveOptions) -> Self {
        let cap = options.cap.max(1);
        let (epoch, n) = (options.epoch, options.first.clamp(1, cap));
        Self {
            cap,
            epoch,
            screen: Screen::new(),
            state: State::Growing { below: None, once: None },
            asked: Decision { n, next: Next::For(epoch), phase: Phase::Ramp },
        }
    }

    pub(crate) const fn start(&self) -> Decision {
        self.asked
    }

    /// The number at which the rule stays.
    pub(crate) const fn found(&self) -> Option<u32> {
        match self.state {
            State::Staying { .. } => Some(self.asked.n),
            State::Growing { .. } | State::Looking { .. } => None,
        }
    }

    pub(crate) fn handle_sample(&mut self, sample: &Sample) -> Decision {
        let (n, phase) = match self.screen.judge(&self.asked, sample) {
            Verdict::Again => return self.asked,
            Verdict::Counts(point) => self.follow(point),
            Verdict::Granted(point) => {
                self.cap = (point.n as u32).max(1);
                self.follow(point)
            }
        };
        let n = (libm::round(n) as u32).clamp(1, self.cap);
        self.asked = Decision { n, next: Next::For(self.epoch), phase };
        self.asked
    }

    fn follow(&mut self, point: Point) -> (f64, Phase) {
        match self.state {
            State::Growing { below, once } => self.grow(point, below, once),
            State::Looking { mean, until } => {
                if elasticity(point, mean) >= FREE {
                    return self.grow(point, Some(mean), None);
                }
                self.stay(mean, (until * 2).min(LOOK_EPOCHS_MAX))
            }
            State::Staying { mean, epochs, until, low, chosen } => {
                let low = if point.goodput < FALLEN * mean.goodput { low + 1 } else { 0 };
                if low >= FALLEN_EPOCHS {
                    self.state = State::Growing { below: None, once: None };
                    return (point.n / 2.0, Phase::Ramp);
                }
                let goodput = match low {
                    0 => mean.goodput + WEIGHT * (point.goodput - mean.goodput),
                    _ => mean.goodput,
                };
                let mean = Point { n: point.n, goodput };
                if low == 0 && goodput < CROWDED * chosen {
                    return self.stay(mean, LOOK_EPOCHS_MIN);
                }
                if epochs + 1 >= until && low == 0 && mean.n < f64::from(self.cap) {
                    self.state = State::Looking { mean, until };
                    return (libm::fmax(mean.n + 1.0, 1.5 * mean.n), Phase::Look);
                }
                self.state = State::Staying { mean, epochs: epochs + 1, until, low, chosen };
                (mean.n, Phase::Hold)
            }
        }
    }

    fn grow(&mut self, point: Point, below: Option<Point>, once: Option<f64>) -> (f64, Phase) {
        let goodput = once.map_or(point.goodput, |once| (once + point.goodput) / 2.0);
        let here = Point { goodput, ..point };
        let Some(below) = below else { return self.double(here) };
        let gained = elasticity(here, below);
        if gained >= FREE || once.is_some() && gained >= BEND {
            return self.double(here);
        }
        if once.is_none() {
            self.state = State::Growing { below: Some(below), once: Some(point.goodput) };
            return (point.n, Phase::Ramp);
        }
        let bend = MARGIN * below.n * here.goodput / below.goodput.max(1.0);
        let n = libm::round(bend.clamp(below.n, here.n));
        let expected = libm::fmax(below.goodput, here.goodput);
        self.stay(Point { n, goodput: expected }, LOOK_EPOCHS_MIN)
    }

    fn double(&mut self, here: Point) -> (f64, Phase) {
        if here.n >= f64::from(self.cap) {
            return self.stay(here, LOOK_EPOCHS_MIN);
        }
        self.state = State::Growing { below: Some(here), once: None };
        (2.0 * here.n, Phase::Ramp)
    }

    const fn stay(&mut self, mean: Point, until: u32) -> (f64, Phase) {
        self.state = State::Staying { mean, epochs: 0, until, low: 0, chosen: mean.goodput };
        (mean.n, Phase::Hold)
    }
}

/// How much goodput grew for how much the number grew: 1 for as much, 0 for nothing.
fn elasticity(more: Point, less: Point) -> f64 {
    let grown = libm::log(libm::fmax(more.n / libm::fmax(less.n, 1.0), 1.0));
    if grown <= 0.0 {
        return 0.0;
    }
    libm::log(libm::fmax(more.goodput, 1.0) / libm::fmax(less.goodput, 1.0)) / grown
}
