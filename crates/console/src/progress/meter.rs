//! One meter: what was counted, and when it was told.

use super::text;
use super::{Counts, PathFigures};
use hikyaku_units::Rate;
use std::time::{Duration, Instant};

/// If nothing has arrived for this long, the user is told so.
const STILL_MIN: Duration = Duration::from_secs(3);
/// The rate is the average of this time.
const RATE_PERIOD: Duration = Duration::from_secs(2);

pub(super) struct Meter {
    name: Option<String>,
    began: Instant,
    counts: Counts,
    path: PathFigures,
    /// Bytes sent at earlier times, for the present rate.
    past: Vec<(Instant, u64)>,
    /// When bytes or files last arrived.
    moved: Instant,
    /// When the last line or event was printed.
    told: Option<Instant>,
    stats: Option<Stats>,
}

/// Lines of figures, and what the last one counted from.
struct Stats {
    every: Duration,
    last: Instant,
    bytes: u64,
    path: PathFigures,
}

impl Meter {
    pub(super) fn new(name: Option<String>, stats_every: Option<Duration>, now: Instant) -> Self {
        let stats = |every| Stats { every, last: now, bytes: 0, path: PathFigures::default() };
        Self {
            name,
            began: now,
            counts: Counts::default(),
            path: PathFigures::default(),
            past: Vec::new(),
            moved: now,
            told: None,
            stats: stats_every.map(stats),
        }
    }

    pub(super) fn set(&mut self, counts: Counts, path: PathFigures, now: Instant) {
        self.past.retain(|(at, _)| now.duration_since(*at) <= RATE_PERIOD);
        self.past.push((now, counts.sent()));
        if (counts.bytes, counts.files) != (self.counts.bytes, self.counts.files) {
            self.moved = now;
        }
        (self.counts, self.path) = (counts, path);
    }

    pub(super) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    pub(super) const fn counts(&self) -> &Counts {
        &self.counts
    }

    pub(super) const fn path(&self) -> &PathFigures {
        &self.path
    }

    /// Time since it was added.
    pub(super) fn took(&self, now: Instant) -> Duration {
        now.duration_since(self.began)
    }

    /// The present rate, if it is known.
    pub(super) fn rate(&self) -> Option<Rate> {
        let ((first, before), (last, now)) = (self.past.first()?, self.past.last()?);
        let seconds = last.duration_since(*first).as_secs_f64();
        (seconds > 0.1)
            .then(|| Rate::from_bytes_per_sec(now.saturating_sub(*before) as f64 / seconds))
    }

    /// Whether something is to be printed again; notes that it is.
    pub(super) fn is_due(&mut self, every: Duration, now: Instant, first: First) -> bool {
        let last = self.told.or(match first {
            First::AtOnce => None,
            First::AfterPeriod => Some(self.began),
        });
        let is_due = last.is_none_or(|at| now.duration_since(at) >= every);
        if is_due {
            self.told = Some(now);
        }
        is_due
    }

    /// How far it is.
    pub(super) fn line(&self, now: Instant) -> String {
        let still = now.duration_since(self.moved);
        let line = match still < STILL_MIN {
            true => text::line(&self.counts, self.rate(), &self.path),
            false => text::still_line(&self.counts, still),
        };
        self.named(line)
    }

    /// The sums.
    pub(super) fn summary(&self, now: Instant) -> String {
        self.named(text::summary(&self.counts, self.took(now)))
    }

    /// The rate and the retransmissions since the last such line, if one is due.
    pub(super) fn stats_line(&mut self, now: Instant) -> Option<String> {
        let took = now.duration_since(self.began).as_secs_f64();
        let stats = self.stats.as_mut()?;
        let passed = now.duration_since(stats.last);
        if passed < stats.every {
            return None;
        }
        let bytes = self.counts.sent();
        let sent = bytes.saturating_sub(stats.bytes);
        let line = text::stats_line(&self.path, &stats.path, sent, passed);
        *stats = Stats { every: stats.every, last: now, bytes, path: self.path };
        Some(self.named(format!("{took:8.1} s  {line}")))
    }

    fn named(&self, line: String) -> String {
        match &self.name {
            Some(name) => format!("{name}: {line}"),
            None => line,
        }
    }
}

/// When something is printed first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    AtOnce,
    /// A meter that ends within the first period prints none, because its sums are enough.
    AfterPeriod,
}
