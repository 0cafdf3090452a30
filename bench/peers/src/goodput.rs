//! The count at the receiver, and the line that tells it.

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// The length of an interval.
const STEP: Duration = Duration::from_millis(200);

/// Payload handed to the application, in intervals.
pub struct Goodput {
    start: Instant,
    steps: Vec<u64>,
    cpu: f64,
}

/// The line that a server prints.
#[derive(Serialize)]
pub struct Report {
    intervals: Vec<Interval>,
    bytes: u64,
    seconds: f64,
    cpu_seconds: f64,
    /// How the connection ended before its time.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Interval {
    start: f64,
    end: f64,
    bytes: u64,
}

impl Goodput {
    /// Counts from `now` on.
    pub fn new(now: Instant) -> Self {
        Self { start: now, steps: Vec::new(), cpu: cpu_seconds() }
    }

    /// `bytes` have come at `now`.
    pub fn add(&mut self, now: Instant, bytes: usize) {
        let step = (now.duration_since(self.start).as_nanos() / STEP.as_nanos()) as usize;
        if step >= self.steps.len() {
            self.steps.resize(step + 1, 0);
        }
        self.steps[step] += bytes as u64;
    }

    /// The report, if all ended at `now`.
    pub fn report(&self, now: Instant, error: Option<String>) -> Report {
        let seconds = now.duration_since(self.start).as_secs_f64();
        let step = STEP.as_secs_f64();
        let interval = |(index, &bytes): (usize, &u64)| {
            let start = index as f64 * step;
            Interval { start, end: (start + step).min(seconds), bytes }
        };
        Report {
            intervals: self.steps.iter().enumerate().map(interval).collect(),
            bytes: self.steps.iter().sum(),
            seconds,
            cpu_seconds: cpu_seconds() - self.cpu,
            error,
        }
    }
}

impl Report {
    /// Prints the line.
    ///
    /// # Errors
    /// None that this type can cause.
    pub fn print(&self) -> anyhow::Result<()> {
        println!("{}", serde_json::to_string(self)?);
        Ok(())
    }
}

/// The processor time of this process.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
