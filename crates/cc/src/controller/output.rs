//! The outputs of the controller: window and pacing rate.

use super::{Controller, Mode};
use crate::law::DAMPING;
use crate::pacer::batch_time;
use crate::settings::Policy;
use core::time::Duration;
use hikyaku_units::Rate;
use libm::{fmax, fmin};

/// The pacer fills the window, the window only catches what the pacer misjudges. Were the window
/// the limit, every gap in the stream of packets would come back with the acknowledgements, round
/// after round.
const WINDOW_SLACK: f64 = 0.02;
/// Missing acknowledgements, and delay of acknowledgements by a busy host, that must not stop the pacer. The window allows
/// for both, up to a part of the round trip.
const MISSING_REPORTS: u32 = 2;
const HOST_DELAY: Duration = Duration::from_millis(1);
const MAX_SLACK: f64 = 0.25;

impl Controller {
    /// Bytes that may be sent now with `in_flight` on their way.
    pub fn allowance(&self, in_flight: u64) -> u64 {
        match (&self.mode, self.config.policy) {
            (Mode::Startup(startup), Policy::Fair | Policy::Scavenger) => {
                startup.allowance_beside(in_flight)
            }
            _ => self.window().saturating_sub(in_flight),
        }
    }

    /// Whether a burst of `bytes` ends a train, which is to be acknowledged at once: it is judged
    /// only then, and nothing follows it that would be.
    pub fn ends_train(&self, bytes: u64) -> bool {
        matches!(&self.mode, Mode::Startup(startup) if startup.allowance() <= bytes)
    }

    /// Bytes that may be in flight.
    pub fn window(&self) -> u64 {
        match (&self.mode, self.config.policy) {
            (_, Policy::Fixed(rate)) => {
                let round_trip = self.srtt().as_secs_f64();
                let sent = rate.bytes_per_sec() / self.delivery_share();
                fmax(2.0 * sent * (round_trip + 0.02), self.min_window()) as u64
            }
            (Mode::Startup(startup), _) => startup.allowance(),
            (Mode::Cruise, _) => {
                let window =
                    if self.probe.is_gentle() { self.law.window() } else { self.cruise_window() };
                (window * (1.0 + self.window_slack())) as u64
            }
        }
    }

    /// Data that may be in flight beyond the law's window, as a part of it.
    fn window_slack(&self) -> f64 {
        let missing = (self.ack_interval() * MISSING_REPORTS + HOST_DELAY).as_secs_f64();
        let missing = fmin(missing / fmax(self.known_rtt, 1e-6), MAX_SLACK);
        WINDOW_SLACK + fmax(missing, self.unreported())
    }

    /// Data in flight that await a report, as a part of the law's window: a batch leaves at once, and the receiver reports an
    /// interval after its first packet. On a path of less than a millisecond this is more than [`MAX_SLACK`]. Were the window the
    /// limit there, the delivery rate would be a part of the pacing rate, and the law, which compares them, would not let the
    /// window grow.
    fn unreported(&self) -> f64 {
        let rate = self.path.rate().unwrap_or(0.0);
        let rtt = Duration::from_secs_f64(self.known_rtt);
        let batch = batch_time(rtt, Rate::from_bytes_per_sec(rate), self.sharers);
        let held = (self.ack_interval() + batch).as_secs_f64();
        held / (self.round_trip() + self.target(rate))
    }

    /// The law's window, less what a drain takes off.
    fn cruise_window(&self) -> f64 {
        let queued = (2.0 * self.queue + 0.001) * self.path.rate().unwrap_or(0.0);
        self.probe.window(self.law.window(), queued)
    }

    /// The rate at which packets leave, in bytes of UDP payload.
    pub fn pacing_rate(&self) -> Rate {
        let bytes = match (&self.mode, self.config.policy) {
            (_, Policy::Fixed(rate)) => {
                self.brake.part() * rate.bytes_per_sec() / self.delivery_share()
            }
            (Mode::Startup(startup), _) => startup.rate(),
            // The window gives the rate, the freshest queue corrects it; the correction is the
            // damping without which the window's integral would ring.
            (Mode::Cruise, _) => {
                if let Some(compete) = &self.compete {
                    if let Some(pace) = compete.pace() {
                        return Rate::from_bytes_per_sec(pace * self.commons.share());
                    }
                    // While a queue is drained its shrinking must not make the rate what it was before.
                    let queue = self.commons.before().unwrap_or_else(|| self.path.smooth_queue());
                    let round_trip = self.round_trip() + queue;
                    let rate = (1.0 + WINDOW_SLACK) * self.cruise_window() / round_trip;
                    return Rate::from_bytes_per_sec(rate * self.commons.share());
                }
                let target = self.target(self.path.rate().unwrap_or(0.0));
                let off = fmax(self.path.smooth_queue() - self.floor - target, -target);
                let rate = self.cruise_window() / (self.round_trip() + target + DAMPING * off);
                rate * self.commons.share()
            }
        };
        Rate::from_bytes_per_sec(fmax(bytes, 1000.0))
    }
}

#[cfg(test)]
mod tests;
