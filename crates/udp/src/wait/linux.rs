//! What Linux has for waking and for timers: eventfd(2) and prctl(2).

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// An eventfd(2), readable while it is raised.
#[derive(Debug)]
pub(super) struct Signal(OwnedFd);

impl Signal {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?))
    }

    pub(super) fn raise(&self) {
        // The write fails only if the counter is full, in which case it is readable already.
        let _ = write(&self.0, &1_u64.to_ne_bytes());
    }

    pub(super) fn lower(&self) {
        let _ = read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Signal {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets the timer slack of the calling thread to 1 us (`PR_SET_TIMERSLACK`, prctl(2)). The default
/// of 50 us is as long as the transmission of one 64 KB batch at 10 Gbit/s, so pacing would be too
/// coarse.
pub fn sharpen_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000)).map_err(Into::into)
}
