//! Resources used by this process: processor time, memory, and its busiest thread.

use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

/// The state at the start of a measurement.
pub(crate) struct Usage {
    began: Instant,
    processor: Duration,
    threads: BTreeMap<u32, Thread>,
}

struct Thread {
    name: String,
    /// Time that the thread was running or runnable, from schedstat.
    wanted: Duration,
}

impl Usage {
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), processor: processor_time(), threads: threads() }
    }

    /// Processor seconds of all threads since the start, user and kernel time.
    pub(crate) fn cpu_seconds(&self) -> f64 {
        processor_time().saturating_sub(self.processor).as_secs_f64()
    }

    /// The thread that was running or runnable longest since the start, and the fraction of the
    /// time that it was.
    pub(crate) fn busiest(&self) -> Option<(String, f64)> {
        let seconds = self.began.elapsed().as_secs_f64();
        let share = |(id, thread): (u32, Thread)| {
            let before = self.threads.get(&id).map_or(Duration::ZERO, |before| before.wanted);
            let wanted = thread.wanted.saturating_sub(before).as_secs_f64();
            (thread.name, if seconds > 0.0 { wanted / seconds } else { 0.0 })
        };
        threads().into_iter().map(share).max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Peak resident memory of this process in bytes; zero if the kernel does not report it.
pub(crate) fn max_rss_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().strip_suffix("kB")?.trim().parse().ok());
    kilobytes.unwrap_or(0u64) * 1024
}

/// Thread ids of the threads that drive sockets.
pub(crate) fn driver_threads() -> Vec<u32> {
    let drivers = threads().into_iter().filter(|(_, thread)| thread.name.contains("driver"));
    drivers.map(|(id, _)| id).collect()
}

/// The system's description on one line, as `uname -a` begins.
pub(crate) fn system() -> String {
    let name = rustix::system::uname();
    [name.sysname(), name.nodename(), name.release(), name.machine()]
        .map(|part| part.to_string_lossy().into_owned())
        .join(" ")
}

fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}

fn threads() -> BTreeMap<u32, Thread> {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return BTreeMap::new() };
    let read = |task: fs::DirEntry| {
        let id = task.file_name().to_str()?.parse().ok()?;
        let name = fs::read_to_string(task.path().join("comm")).ok()?.trim().to_owned();
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let mut times = times.split_whitespace().map(str::parse::<u64>);
        let wanted = times.next()?.ok()? + times.next()?.ok()?;
        Some((id, Thread { name, wanted: Duration::from_nanos(wanted) }))
    };
    tasks.flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_measured() {
        let usage = Usage::start();
        while usage.cpu_seconds() < 0.05 {
            std::hint::spin_loop();
        }
        let (_, share) = usage.busiest().expect("Linux counts the time of threads");
        assert!(share > 0.0);
        assert!(max_rss_bytes() > 1 << 20);
        assert!(system().starts_with("Linux "));
    }
}
