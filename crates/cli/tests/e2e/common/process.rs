//! Processes that a test stops for a while.

use super::wait_until;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;

/// Stops a process and waits until none of its threads runs: the kernel stops one after the other, and the last ones may answer
/// long after the call on a busy machine. A process that has ended is left alone.
pub(crate) fn stop(process: u32) {
    signal(process, Signal::STOP);
    wait_until("the process stops", || !is_running(process));
}

/// Lets a stopped process go on.
pub(crate) fn go_on(process: u32) {
    signal(process, Signal::CONT);
}

fn signal(process: u32, signal: Signal) {
    let process = i32::try_from(process).ok().and_then(Pid::from_raw).unwrap();
    // It may have ended by itself.
    let _ = kill_process(process, signal);
}

/// Whether a thread of a process is neither stopped nor ended.
fn is_running(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    // One that has ended in the meantime has no state.
    let states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    // proc(5): the name is in parentheses and may contain any character; the state follows it.
    let state = |stat: String| stat.rsplit(") ").next().and_then(|rest| rest.chars().next());
    states.filter_map(state).any(|state| !matches!(state, 'T' | 't' | 'Z' | 'X'))
}
