//! Waiting for the socket, for another thread or for a timeout.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(any(test, not(target_os = "linux")))]
mod others;

#[cfg(target_os = "linux")]
pub use linux::sharpen_timers;
#[cfg(not(target_os = "linux"))]
pub use others::sharpen_timers;

#[cfg(target_os = "linux")]
use linux::Signal;
#[cfg(not(target_os = "linux"))]
use others::Signal;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The socket events to wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// The socket has a message or an error to receive.
    Readable,
    /// The socket has room to send.
    Writable,
    /// Either of them.
    Both,
}

/// Why a wait ended. If none of the methods returns true, the timeout has passed or a signal came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readiness {
    socket: PollFlags,
    woken: bool,
}

impl Readiness {
    /// Whether there is a message or an error to receive.
    pub fn is_readable(self) -> bool {
        self.socket.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP)
    }

    /// Whether there is room to send, or an error to report.
    pub fn is_writable(self) -> bool {
        self.socket.intersects(PollFlags::OUT | PollFlags::ERR)
    }

    /// Whether a [`Waker`] ended the wait.
    pub fn is_woken(self) -> bool {
        self.woken
    }
}

/// The wait queue of one driver thread.
#[derive(Debug)]
pub struct Poller {
    event: Arc<WakeEvent>,
}

/// Wakes a [`Poller`] from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    event: Arc<WakeEvent>,
}

/// A descriptor that is readable while a wake is due, and whether that is so already. A second wake
/// before the thread has woken costs no system call.
#[derive(Debug)]
struct WakeEvent {
    signal: Signal,
    is_signalled: AtomicBool,
}

impl Poller {
    /// A poller of its own. Fails if the system has no descriptor for it.
    pub fn new() -> io::Result<Self> {
        let (signal, is_signalled) = (Signal::new()?, AtomicBool::new(false));
        Ok(Self { event: Arc::new(WakeEvent { signal, is_signalled }) })
    }

    /// A handle that ends the wait from another thread.
    pub fn waker(&self) -> Waker {
        Waker { event: Arc::clone(&self.event) }
    }

    /// Waits until `socket` is ready, a waker was called, or `timeout` has passed; `None` waits
    /// without limit. It may return early without a cause. The precision of the timeout is the
    /// timer slack of the thread, see [`sharpen_timers`].
    pub fn wait(
        &self,
        socket: &impl AsFd,
        interest: Interest,
        timeout: Option<Duration>,
    ) -> io::Result<Readiness> {
        let flags = match interest {
            Interest::Readable => PollFlags::IN,
            Interest::Writable => PollFlags::OUT,
            Interest::Both => PollFlags::IN | PollFlags::OUT,
        };
        let mut polled =
            [PollFd::new(socket, flags), PollFd::new(&self.event.signal, PollFlags::IN)];
        let timeout = timeout.map(timespec);
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Readiness { socket: PollFlags::empty(), woken: false }),
            Err(error) => return Err(error.into()),
        }
        let [socket, event] = polled.map(|fd| fd.revents());
        let woken = event.contains(PollFlags::IN);
        if woken {
            self.event.reset();
        }
        Ok(Readiness { socket, woken })
    }
}

impl Waker {
    /// Ends the wait in progress, or the next one if there is none. Memory writes of the caller
    /// before this call are visible to the waiting thread.
    pub fn wake(&self) {
        if !self.event.is_signalled.swap(true, Ordering::AcqRel) {
            self.event.signal.raise();
        }
    }
}

impl WakeEvent {
    fn reset(&self) {
        // The signal is taken back before the flag is cleared. In the other order, a wake between the
        // two steps would be taken back with its flag still set, and all later wakes would be skipped.
        self.signal.lower();
        self.is_signalled.swap(false, Ordering::AcqRel);
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
