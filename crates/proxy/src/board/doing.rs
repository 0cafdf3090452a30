//! What the program of a flow does while it does not read: whether it waits for its file to be written, or computes.
//!
//! The kernel tells the system call in which a thread sleeps, to whom it lets trace the thread (proc(5), `syscall`); the time
//! that each thread had a processor or waited for one is told to everybody (`schedstat`).

use super::file::Partial;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// What a program does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Doing {
    /// Something else, or it is not known.
    #[default]
    Other,
    /// It waits until its file is written.
    Writing,
    /// One of its threads has a processor all the time, or waits for one.
    Computing,
}

/// Times of the threads of a program.
#[derive(Debug, Default)]
pub(super) struct Threads(BTreeMap<u32, Duration>);

/// Looks at a program that is to be judged, with pauses between them.
const LOOKS: u32 = 5;
const PAUSE: Duration = Duration::from_millis(8);
/// Looks at which it writes, from which on it is held by that.
const WRITING: u32 = 2;
/// A thread that has a processor or waits for one for this part of the time is busy all the time.
const BUSY: f64 = 0.85;
/// The system calls that write a file whose descriptor is their first argument: write, pwrite64, writev, pwritev, pwritev2,
/// fsync, fdatasync, ftruncate, fallocate and sync_file_range.
#[cfg(target_arch = "x86_64")]
const WRITES: [u64; 10] = [1, 18, 20, 296, 328, 74, 75, 77, 285, 277];
#[cfg(not(target_arch = "x86_64"))]
const WRITES: [u64; 10] = [64, 68, 66, 70, 287, 82, 83, 46, 47, 84];

impl Threads {
    /// What these processes do, of which one writes the file. `time` has passed since the last question.
    pub(super) fn look(&mut self, processes: &[u32], file: &Partial, time: Duration) -> Doing {
        let before = std::mem::replace(&mut self.0, busy_times(processes));
        let share = |(thread, now): (&u32, &Duration)| {
            let since = now.saturating_sub(*before.get(thread)?);
            Some(since.as_secs_f64() / time.as_secs_f64().max(f64::MIN_POSITIVE))
        };
        let writes = (0..LOOKS).filter(|look| {
            if *look > 0 {
                sleep(PAUSE);
            }
            threads(processes).any(|thread| waits_for(&thread, file.path()))
        });
        if writes.count() >= WRITING as usize {
            return Doing::Writing;
        }
        match self.0.iter().filter_map(share).any(|share| share >= BUSY) {
            true => Doing::Computing,
            false => Doing::Other,
        }
    }
}

/// The folders of all threads of processes.
fn threads(processes: &[u32]) -> impl Iterator<Item = PathBuf> {
    processes.iter().flat_map(|process| {
        let entries = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
        entries.flatten().map(|entry| entry.path())
    })
}

/// The time that each thread had a processor or waited for one.
fn busy_times(processes: &[u32]) -> BTreeMap<u32, Duration> {
    let time = |thread: PathBuf| {
        let number = thread.file_name()?.to_str()?.parse().ok()?;
        let text = fs::read_to_string(thread.join("schedstat")).ok()?;
        Some((number, busy_time(&text)?))
    };
    threads(processes).filter_map(time).collect()
}

/// The first two numbers of a `schedstat`: nanoseconds on a processor, and waiting for one.
// fuzz: none, the kernel's own
fn busy_time(text: &str) -> Option<Duration> {
    let mut numbers = text.split_whitespace().map_while(|word| word.parse::<u64>().ok());
    Some(Duration::from_nanos(numbers.next()?.saturating_add(numbers.next()?)))
}

/// Whether a thread sleeps in a system call that writes this file.
fn waits_for(thread: &Path, file: &Path) -> bool {
    let syscall = fs::read_to_string(thread.join("syscall")).unwrap_or_default();
    writes(&syscall).is_some_and(|descriptor| {
        fs::read_link(thread.join(format!("fd/{descriptor}"))).is_ok_and(|link| link == file)
    })
}

/// The descriptor of the file that a sleeping thread writes, from its `syscall`. A thread that runs sleeps in none.
// fuzz: none, the kernel's own
fn writes(syscall: &str) -> Option<u64> {
    let mut words = syscall.split_whitespace();
    let number: u64 = words.next()?.parse().ok()?;
    let descriptor = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
    WRITES.contains(&number).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_sleeps_in_a_write_is_known_by_its_file() {
        let write = WRITES[0];
        assert_eq!(
            writes(&format!("{write} 0x1f 0x7f 0x20000 0x0 0x0 0x0 0x7ffd 0x7f1")),
            Some(31)
        );
        for other in ["running", "", "-1 0x7ffd 0x7f1", "999 0x1 0x2", "nonsense 0x1"] {
            assert_eq!(writes(other), None, "{other}");
        }
    }

    #[test]
    fn a_thread_is_busy_while_it_has_a_processor_or_waits_for_one() {
        assert_eq!(busy_time("2000000000 500000000 77\n"), Some(Duration::from_millis(2500)));
        assert_eq!(busy_time("0\n"), None);
    }
}
