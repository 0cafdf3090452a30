//! Running code inside another network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

/// Runs `work` inside the network namespace at `path` (such as `/run/netns/NAME`).
///
/// `work` runs on a thread of its own, because setns(2) changes the namespace of the calling
/// thread. The caller's thread stays in its namespace and waits.
pub fn in_namespace<T: Send>(
    path: &Path,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> io::Result<T> {
    let namespace = File::open(path)?;
    let inside = || {
        move_into_link_name_space(namespace.as_fd(), Some(LinkNameSpaceType::Network))?;
        work()
    };
    thread::scope(|scope| match scope.spawn(inside).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}
