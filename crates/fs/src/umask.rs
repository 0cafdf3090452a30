//! The permission bits that new files of this process do not get.

use rustix::fs::{Mode, RawMode};

/// The umask of this process. It is asked for anew each time, since a command may change it.
///
/// umask(2) tells it only by changing it, for all threads. `/proc/self/status` tells it without a change
/// (proc_pid_status(5)). Only where that cannot be read the umask is set to 077 for a moment, so that a file that another
/// thread makes meanwhile is private.
pub fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    let told = line.and_then(|text| u32::from_str_radix(text.trim(), 8).ok());
    told.unwrap_or_else(|| {
        let before = rustix::process::umask(Mode::RWXG | Mode::RWXO);
        rustix::process::umask(before);
        wide(before.bits())
    })
}

/// The type of mode bits differs between systems.
#[allow(clippy::useless_conversion)]
fn wide(bits: RawMode) -> u32 {
    u32::from(bits)
}
