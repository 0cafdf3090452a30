//! A printed trace of the sender's state over time.

use crate::scenario::Outcome;
use hikyaku_proto::Stats;
use std::fmt;
use std::time::Duration;

/// The samples of a run, one a line.
pub struct Trace<'a>(pub(crate) &'a [(Duration, Stats)]);

/// Whether the environment variable `TRACE` is set.
pub(crate) fn is_asked() -> bool {
    std::env::var_os("TRACE").is_some()
}

impl Outcome {
    /// The sender's state over time, one line every 50 ms.
    pub fn trace(&self) -> Trace<'_> {
        Trace(&self.samples)
    }

    /// Prints the trace if the environment variable `TRACE` is set.
    pub fn trace_if_asked(&self) {
        if is_asked() {
            print!("{}", self.trace());
        }
    }
}

impl fmt::Display for Trace<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, stats) in self.0 {
            let path = &stats.path;
            writeln!(
                f,
                "{:>9.4} {:?} window {} pace {} delivery {} queue {:?} loss {} in flight {} sent {} \
                 lost {} spurious {} resent {} rtt {:?}/{:?} mtu {}",
                at.as_secs_f64(),
                path.phase,
                path.window,
                path.pacing_rate,
                path.delivery_rate,
                path.queue,
                path.ambient_loss,
                stats.in_flight,
                stats.sent.packets,
                stats.lost_packets,
                stats.spurious_losses,
                stats.resent,
                path.base_rtt,
                path.srtt,
                stats.datagram,
            )?;
        }
        Ok(())
    }
}
