//! The limit of the rate of a transfer, from the time of its requests and of its writes.

use super::Job;
use super::run::{Run, State};
use crate::bottleneck::{Ends, Gauge, Waits};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// The judge of a transfer that begins.
pub(super) fn gauge(job: &Job<'_>) -> Gauge {
    let latencies = job.servers.iter().map(|server| server.latency());
    let ends = Ends::of(latencies, job.store.abilities().latency);
    Gauge::new(ends, job.parameters.client.rate)
}

impl Run<'_> {
    /// Notes the limit of the rate twice a second. A request that does not write waits for its server.
    pub(super) fn judge(&self, state: &mut State<'_>) {
        let now = Instant::now();
        let requests = u32::try_from(state.requests.len()).unwrap_or(u32::MAX);
        state.busy.0 += now.saturating_duration_since(state.busy.1) * requests;
        state.busy.1 = now;
        let under_way = u32::try_from(self.writes.0.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        // Calls that have not ended are not in the sum.
        let late = state.held_up.map_or(Duration::ZERO, |(_, since)| since.elapsed() * under_way);
        let writing = self.time_of_writes() + late;
        let reading = state.busy.0.saturating_sub(writing);
        let waits = Waits { bytes: self.come.load(Ordering::Relaxed), reading, writing };
        if let Some(limited_by) = state.gauge.look(now, waits) {
            self.job.meter.set_limited_by(limited_by);
        }
    }
}
