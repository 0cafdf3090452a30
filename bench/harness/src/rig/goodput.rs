//! Arithmetic on what a receiver counted, interval by interval.

use serde::Deserialize;

#[cfg(test)]
mod tests;

/// Payload that came between two times, in seconds by the receiver's clock.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
pub(crate) struct Interval {
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) bytes: f64,
}

/// Payload over time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Goodput {
    intervals: Vec<Interval>,
}

impl Goodput {
    pub(crate) fn new(intervals: Vec<Interval>) -> Self {
        Self { intervals }
    }

    /// From the bytes that had come by a number of times, in the order of time.
    pub(crate) fn of_sums(sums: &[(f64, f64)]) -> Self {
        let interval = |two: &[(f64, f64)]| Interval {
            start: two[0].0,
            end: two[1].0,
            bytes: two[1].1 - two[0].1,
        };
        Self::new(sums.windows(2).map(interval).collect())
    }

    /// Bits a second between two times. An interval that lies partly between them counts in
    /// proportion; time without intervals counts as silence.
    pub(crate) fn mean(&self, from: f64, to: f64) -> f64 {
        let share = |one: &Interval| {
            let inside = one.end.min(to) - one.start.max(from);
            let length = one.end - one.start;
            if length > 0.0 { one.bytes * (inside / length).clamp(0.0, 1.0) } else { 0.0 }
        };
        let bytes: f64 = self.intervals.iter().map(share).sum();
        bytes * 8.0 / (to - from)
    }

    /// Bits a second in the second half of a run of `seconds`.
    pub(crate) fn second_half(&self, seconds: f64) -> f64 {
        self.mean(seconds / 2.0, seconds)
    }

    /// The start of the first interval, not before `from`, from which the mean of the next second is
    /// at least `least` bits a second. None if there is none with a whole second behind it.
    pub(crate) fn reaches(&self, least: f64, from: f64) -> Option<f64> {
        let end = self.intervals.last()?.end;
        let candidates = self.intervals.iter().filter(|one| one.start >= from - 1e-9);
        let starts = candidates.map(|one| one.start).take_while(|start| start + 1.0 <= end + 0.05);
        starts.into_iter().find(|&start| self.mean(start, start + 1.0) >= least)
    }

    /// The largest difference, as a share of `target` bits a second, of any whole second from
    /// `from` to `to`.
    pub(crate) fn worst_second(&self, target: f64, from: u32, to: u32) -> f64 {
        let difference = |second: u32| {
            let second = f64::from(second);
            (self.mean(second, second + 1.0) / target - 1.0).abs()
        };
        (from..to).map(difference).fold(0.0, f64::max)
    }
}
