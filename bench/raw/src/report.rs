//! What an end did and what it cost, as one line of JSON.

use crate::cipher::{Cipher, Mode};
use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use std::time::{Duration, Instant};

/// The wall clock and the processor time of this process from one moment on.
///
/// The processor's clock is exact where the tick-wise times of `getrusage` are not, and has the
/// same sum: user, system, and the interrupts that came meanwhile.
pub(crate) struct Meter {
    start: Instant,
    cpu: Duration,
}

impl Meter {
    pub(crate) fn start() -> Self {
        Self { start: Instant::now(), cpu: cpu_time() }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.start.elapsed()
    }

    pub(crate) fn cpu(&self) -> Duration {
        cpu_time().saturating_sub(self.cpu)
    }
}

/// The line.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) end: &'static str,
    pub(crate) cipher: Cipher,
    pub(crate) mode: Mode,
    pub(crate) datagram: usize,
    pub(crate) packets: u64,
    /// Packets that did not arrive, as far as this end knows.
    pub(crate) lost: u64,
    pub(crate) system_calls: u64,
    pub(crate) seconds: f64,
    pub(crate) gbit_per_s: f64,
    pub(crate) cpu_s_per_gb: f64,
    pub(crate) busy: f64,
}

/// What was counted, before it is turned into rates.
pub(crate) struct Counted {
    pub(crate) end: &'static str,
    pub(crate) cipher: Cipher,
    pub(crate) mode: Mode,
    pub(crate) datagram: usize,
    pub(crate) payload_bytes: u64,
    pub(crate) packets: u64,
    pub(crate) lost: u64,
    pub(crate) system_calls: u64,
    pub(crate) elapsed: Duration,
    pub(crate) cpu: Duration,
}

impl Counted {
    pub(crate) fn print(self) -> anyhow::Result<()> {
        let seconds = self.elapsed.as_secs_f64();
        let gigabytes = self.payload_bytes as f64 / 1e9;
        let cpu = self.cpu.as_secs_f64();
        let report = Report {
            end: self.end,
            cipher: self.cipher,
            mode: self.mode,
            datagram: self.datagram,
            packets: self.packets,
            lost: self.lost,
            system_calls: self.system_calls,
            seconds: rounded(seconds),
            gbit_per_s: rounded(gigabytes * 8.0 / seconds),
            cpu_s_per_gb: rounded(cpu / gigabytes),
            busy: rounded(cpu / seconds),
        };
        println!("{}", serde_json::to_string(&report)?);
        Ok(())
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

/// Thousandths are more than the noise of any machine.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
