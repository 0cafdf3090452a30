//! Numbers over time.

/// A line of a chart: a name, and points in the order of their time.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// The number of its colour and dashes: that of its machine, so that a machine looks the same in all charts.
    pub(crate) look: usize,
    pub(crate) points: Vec<(f64, f64)>,
}

/// Samples that are closer than this, in seconds, are one: a rate between them would be meaningless.
const SAME_MOMENT: f64 = 0.05;

/// Where the rate before the first sample of a counter is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Origin {
    /// The counter was 0 at the begin of the log.
    Zero,
    /// Nothing is known before the first sample.
    Unknown,
}

/// A counter that never falls. A new connection begins at 0, which adds to what was before.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Counter {
    points: Vec<(f64, f64)>,
}

impl Counter {
    /// The counter of these samples, in any order.
    pub(crate) fn new(samples: impl Iterator<Item = (f64, u64)>, origin: Origin) -> Self {
        let mut samples: Vec<(f64, u64)> = samples.filter(|(t, _)| t.is_finite()).collect();
        samples.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut points: Vec<(f64, f64)> = match (origin, samples.first()) {
            (Origin::Zero, Some((t, _))) if *t > 0.0 => vec![(0.0, 0.0)],
            _ => Vec::new(),
        };
        let (mut sum, mut last) = (0.0, 0);
        for (t, value) in samples {
            let is_first = points.is_empty();
            let added = if value >= last { value - last } else { value };
            last = value;
            if !is_first {
                sum += added as f64;
            }
            match points.last_mut() {
                Some(point) if t - point.0 < SAME_MOMENT => point.1 = sum,
                _ => points.push((t, sum)),
            }
        }
        Self { points }
    }

    /// The number at a time: between two samples on the line between them.
    pub(crate) fn at(&self, t: f64) -> f64 {
        let behind = self.points.partition_point(|(time, _)| *time <= t);
        match (behind.checked_sub(1).map(|at| self.points[at]), self.points.get(behind)) {
            (None, _) => 0.0,
            (Some((_, value)), None) => value,
            (Some((t0, v0)), Some((t1, v1))) => v0 + (v1 - v0) * (t - t0) / (t1 - t0),
        }
    }

    /// The sum at the end.
    pub(crate) fn total(&self) -> f64 {
        self.points.last().map_or(0.0, |(_, value)| *value)
    }

    /// Whether it has counted anything.
    pub(crate) fn is_still(&self) -> bool {
        self.total() == 0.0
    }

    /// The times of its samples.
    pub(crate) fn times(&self) -> impl Iterator<Item = f64> + '_ {
        self.points.iter().map(|(t, _)| *t)
    }

    /// The increase of the counter in a second, times `factor`, between each two samples.
    pub(crate) fn rates(&self, factor: f64) -> Vec<(f64, f64)> {
        let rate = |pair: &[(f64, f64)]| {
            let ((t0, v0), (t1, v1)) = (pair[0], pair[1]);
            (t1, (v1 - v0) * factor / (t1 - t0))
        };
        let mut rates: Vec<(f64, f64)> = self.points.windows(2).map(rate).collect();
        if let (Some((begin, _)), Some((_, first))) = (self.points.first(), rates.first().copied())
        {
            rates.insert(0, (*begin, first));
        }
        rates
    }
}

/// Times of several counters in order, none twice.
pub(crate) fn times_of<'a>(counters: impl Iterator<Item = &'a Counter>) -> Vec<f64> {
    let mut times: Vec<f64> = counters.flat_map(Counter::times).collect();
    times.sort_by(f64::total_cmp);
    // Samples of one moment are one sample.
    times.dedup_by(|b, a| *b - *a < SAME_MOMENT);
    times
}

/// The rate of several counters together, times `factor`.
pub(crate) fn rate_of_all(counters: &[Counter], factor: f64) -> Vec<(f64, f64)> {
    let times = times_of(counters.iter());
    let sum = |t: f64| counters.iter().map(|counter| counter.at(t)).sum::<f64>();
    let sums = times.iter().map(|t| (*t, sum(*t))).collect();
    Counter { points: sums }.rates(factor)
}

/// At most about `most` points with an equal drawing: the least and the largest of each part of the time.
pub(crate) fn decimated(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let per_part = points.len().div_ceil((most / 2).max(1));
    let mut few = Vec::new();
    for part in points.chunks(per_part) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        let (least, largest) = (part.iter().min_by(by_value), part.iter().max_by(by_value));
        let mut ends: Vec<(f64, f64)> = least.into_iter().chain(largest).copied().collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        ends.dedup();
        few.extend(ends);
    }
    few
}

/// The mean of points over time.
pub(crate) fn mean(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len();
    (count > 0).then(|| points.iter().map(|(_, value)| value).sum::<f64>() / count as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counter(samples: &[(f64, u64)], origin: Origin) -> Counter {
        Counter::new(samples.iter().copied(), origin)
    }

    #[test]
    fn a_counter_that_begins_again_adds_up() {
        let one = counter(&[(1.0, 100), (2.0, 300), (3.0, 50)], Origin::Zero);
        assert_eq!(one.total(), 350.0);
        assert_eq!(one.rates(1.0), [(0.0, 100.0), (1.0, 100.0), (2.0, 200.0), (3.0, 50.0)]);
        assert_eq!((one.at(-1.0), one.at(1.5), one.at(9.0)), (0.0, 200.0, 350.0));
        // A daemon's session may have moved bytes before its first sample.
        let other = counter(&[(1.0, 100), (2.0, 300)], Origin::Unknown);
        assert_eq!(other.rates(1.0), [(1.0, 200.0), (2.0, 200.0)]);
        assert!(counter(&[], Origin::Zero).rates(1.0).is_empty());
        // Two samples of one time are no rate.
        let twice = counter(&[(1.0, 1), (1.0, 5), (2.0, 6)], Origin::Unknown);
        assert!(twice.rates(1.0).iter().all(|(_, rate)| rate.is_finite()));
    }

    #[test]
    fn the_rate_of_all_is_the_sum() {
        let all = [
            counter(&[(1.0, 100), (2.0, 200)], Origin::Zero),
            counter(&[(1.0, 10), (2.0, 20)], Origin::Zero),
        ];
        assert_eq!(rate_of_all(&all, 8.0), [(0.0, 880.0), (1.0, 880.0), (2.0, 880.0)]);
    }

    #[test]
    fn peaks_survive_the_decimation() {
        let value = |n: usize| if n == 5_000 { 99.0 } else { (n % 2) as f64 };
        let points: Vec<(f64, f64)> = (0..10_000).map(|n| (n as f64, value(n))).collect();
        let few = decimated(&points, 100);
        assert!(few.len() <= 100, "{}", few.len());
        assert!(few.iter().any(|(_, value)| *value == 99.0));
        assert!(few.windows(2).all(|pair| pair[0].0 <= pair[1].0));
    }
}
