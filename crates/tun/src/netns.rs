//! Doing something inside another network namespace.

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;

/// Runs `work` inside the network namespace at `path` (such as `/run/netns/NAME`).
///
/// A thread that has entered a namespace stays there, so `work` gets a thread of its own, and the
/// caller's stays where it is.
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
