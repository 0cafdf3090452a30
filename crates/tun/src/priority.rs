//! Real-time priority for threads that must not be delayed by other processes.

use std::io;

/// Gives the calling thread real-time priority: `SCHED_RR` with priority 1, the lowest (sched(7)).
/// Needs root or `CAP_SYS_NICE`.
///
/// The kernel still reserves a share of the processor for other threads (`sched_rt_runtime_us`, 5 %
/// by default), and may take it as 50 ms at once. `SCHED_DEADLINE` is not subject to that, but the
/// relay forwards fewer packets under it.
pub fn prefer_this_thread() -> io::Result<()> {
    // SAFETY: all fields of `sched_param` are integers, so zeros are a valid value. musl's has more fields than glibc's.
    let mut parameters: libc::sched_param = unsafe { std::mem::zeroed() };
    parameters.sched_priority = 1;
    // SAFETY: thread 0 is the calling one, and `parameters` is read during the call only.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_RR, &raw const parameters) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
