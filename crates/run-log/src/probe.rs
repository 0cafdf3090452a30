//! The state of this machine.

use crate::line::Load;
use crate::proc::{self, Ticks};
use rustix::time::{ClockId, clock_gettime};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Reads the state of this machine. A rate is that since the last reading.
#[derive(Debug)]
pub struct Probe {
    disk: Option<PathBuf>,
    last: Reading,
}

/// A probe for several callers: the state is read again when it is older than 250 ms, so that many calls cost no more
/// than few.
#[derive(Debug)]
pub struct SharedProbe {
    state: Mutex<(Probe, Option<(Instant, Load)>)>,
}

/// Counters at one time.
#[derive(Clone, Copy, Debug)]
struct Reading {
    at: Instant,
    ticks: Option<Ticks>,
    process: Duration,
    busy_millis: Option<u64>,
}

/// The age from which a [`SharedProbe`] reads again.
const FRESH: Duration = Duration::from_millis(250);

impl Probe {
    /// A probe of this machine, and of the file system that has the path `disk`.
    pub fn new(disk: Option<PathBuf>) -> Self {
        let mut probe = Self { disk, last: Reading::nothing() };
        probe.take();
        probe
    }

    /// The state of the machine. Its `t` and `m` are 0.
    pub fn take(&mut self) -> Load {
        let text = |name: &str| fs::read_to_string(name).unwrap_or_default();
        let (stat, device) = (text("/proc/stat"), self.device());
        let (ticks, processors) = proc::ticks(&stat).unzip();
        let busy_millis =
            device.and_then(|device| proc::busy_millis(&text("/proc/diskstats"), device));
        let at = Instant::now();
        let now = Reading { at, ticks, process: process_time(), busy_millis };
        let before = std::mem::replace(&mut self.last, now);
        let (memory_used, memory_total) = proc::memory(&text("/proc/meminfo")).unzip();
        let (free, total) = self.space().unzip();
        let io = text("/proc/self/io");
        Load {
            load: proc::load(&text("/proc/loadavg")),
            processors,
            cpu_percent: now.cpu_percent(&before),
            process_cpu_percent: now.process_percent(&before),
            memory_used_bytes: memory_used,
            memory_total_bytes: memory_total,
            process_memory_bytes: proc::kilobytes(&text("/proc/self/status"), "VmRSS:"),
            disk_free_bytes: free,
            disk_total_bytes: total,
            disk_busy_percent: now.busy_percent(&before),
            disk_read_bytes: proc::number(&io, "read_bytes:"),
            disk_written_bytes: proc::number(&io, "write_bytes:"),
            ..Load::default()
        }
    }

    /// The device of the file system, if it is one of the block devices. A new file's name need not exist yet.
    fn device(&self) -> Option<(u32, u32)> {
        let disk = self.disk.as_ref()?;
        let device = disk.ancestors().find_map(|path| fs::metadata(path).ok())?.dev();
        Some((rustix::fs::major(device), rustix::fs::minor(device)))
    }

    /// Bytes that are free for this user, and all, of the file system.
    fn space(&self) -> Option<(u64, u64)> {
        let disk = self.disk.as_ref()?;
        let found = disk.ancestors().find_map(|path| rustix::fs::statvfs(path).ok())?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some((bytes(found.f_bavail), bytes(found.f_blocks)))
    }
}

impl SharedProbe {
    /// A probe of this machine, and of the file system that has the path `disk`.
    pub fn new(disk: Option<PathBuf>) -> Self {
        Self { state: Mutex::new((Probe::new(disk), None)) }
    }

    /// The state of the machine, at most 250 ms old.
    pub fn load(&self) -> Load {
        self.load_at(Instant::now())
    }

    fn load_at(&self, now: Instant) -> Load {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (probe, last) = &mut *state;
        match last {
            Some((at, load)) if now.saturating_duration_since(*at) < FRESH => load.clone(),
            _ => {
                let load = probe.take();
                *last = Some((now, load.clone()));
                load
            }
        }
    }
}

impl Reading {
    fn nothing() -> Self {
        Self { at: Instant::now(), ticks: None, process: Duration::ZERO, busy_millis: None }
    }

    fn cpu_percent(&self, before: &Self) -> Option<f64> {
        let (now, before) = (self.ticks?, before.ticks?);
        let all = now.all.checked_sub(before.all).filter(|all| *all > 0)?;
        Some(percent(now.busy.saturating_sub(before.busy) as f64, all as f64).min(100.0))
    }

    fn process_percent(&self, before: &Self) -> Option<f64> {
        // The first reading has none before it.
        before.ticks?;
        let used = self.process.saturating_sub(before.process).as_secs_f64();
        Some(percent(used, self.seconds_since(before)?))
    }

    fn busy_percent(&self, before: &Self) -> Option<f64> {
        let busy = self.busy_millis?.checked_sub(before.busy_millis?)? as f64 / 1e3;
        Some(percent(busy, self.seconds_since(before)?).min(100.0))
    }

    fn seconds_since(&self, before: &Self) -> Option<f64> {
        let seconds = self.at.saturating_duration_since(before.at).as_secs_f64();
        (seconds > 0.0).then_some(seconds)
    }
}

/// A share in percent, with one digit behind the point.
fn percent(part: f64, whole: f64) -> f64 {
    (part * 1000.0 / whole).round() / 10.0
}

fn process_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_sees_the_work_of_this_process() {
        let mut probe = Probe::new(Some(std::env::temp_dir().join("a name/that is not there")));
        let begin = process_time();
        while process_time() - begin < Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let load = probe.take();
        assert!(load.process_cpu_percent.is_some_and(|percent| percent > 0.0), "{load:?}");
        assert!(load.cpu_percent.is_some_and(|percent| (0.0..=100.0).contains(&percent)));
        assert!(load.memory_used_bytes <= load.memory_total_bytes);
        assert!(load.process_memory_bytes.is_some_and(|bytes| bytes > 1 << 20));
        assert!(load.disk_free_bytes <= load.disk_total_bytes && load.disk_total_bytes.is_some());
    }

    #[test]
    fn rates_are_those_since_the_last_reading() {
        let at = Instant::now();
        let before = Reading {
            at,
            ticks: Some(Ticks { busy: 100, all: 1000 }),
            process: Duration::from_secs(1),
            busy_millis: Some(500),
        };
        let now = Reading {
            at: at + Duration::from_secs(2),
            ticks: Some(Ticks { busy: 150, all: 1200 }),
            process: Duration::from_secs(4),
            busy_millis: Some(1000),
        };
        assert_eq!(now.cpu_percent(&before), Some(25.0));
        assert_eq!(now.process_percent(&before), Some(150.0));
        assert_eq!(now.busy_percent(&before), Some(25.0));
        assert_eq!(now.busy_percent(&Reading::nothing()), None);
    }

    #[test]
    fn many_questions_are_answered_by_one_reading() {
        let probe = SharedProbe::new(None);
        let now = Instant::now();
        let read = Load { load: Some(-1.0), ..Load::default() };
        probe.state.lock().unwrap().1 = Some((now, read.clone()));
        assert_eq!(probe.load_at(now + FRESH / 2), read);
        assert_ne!(probe.load_at(now + FRESH), read);
    }
}
