//! The advisory lock that marks a file as having a writer. It is held while the file is open
//! (flock(2)).

use crate::error::FsError;
use crate::path::Name;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs;
use std::os::fd::AsFd;

/// Takes the exclusive lock of an open file without waiting. Fails with [`FsError::Busy`] if
/// another process holds it. On a file system without locks the call succeeds without a lock: a
/// copy must work there as well.
pub(crate) fn lock(file: &fs::File, name: &Name) -> Result<(), FsError> {
    match flock(file.as_fd(), FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => {
            Err(FsError::Busy { path: name.shown().to_string(), by: holder(file) })
        }
        _ => Ok(()),
    }
}

/// The process that holds the lock, if `/proc/locks` lists it (proc_locks(5)).
#[cfg(target_os = "linux")]
fn holder(file: &fs::File) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;

    let meta = file.metadata().ok()?;
    let (major, minor) = (rustix::fs::major(meta.dev()), rustix::fs::minor(meta.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", meta.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let line = locks.lines().find(|line| line.split_whitespace().any(|word| word == wanted))?;
    let mut words = line.split_whitespace().skip_while(|word| *word != "WRITE");
    words.nth(1)?.parse().ok().filter(|&process| process != 0)
}

/// Other systems do not tell.
#[cfg(not(target_os = "linux"))]
fn holder(_file: &fs::File) -> Option<u32> {
    None
}
