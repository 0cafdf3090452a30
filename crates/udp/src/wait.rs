//! Sleeping until the socket, another thread or the clock calls.

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::{Errno, read, write};
use std::io;
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What to wait for on a socket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interest {
    /// Something to receive.
    Readable,
    /// Room to send.
    Writable,
    /// Either.
    Both,
}

/// Why a wait ended. Nothing of it set means that the time is up, or a signal came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readiness {
    socket: PollFlags,
    woken: bool,
}

impl Readiness {
    /// There is something to receive, or an error to collect.
    pub fn is_readable(self) -> bool {
        self.socket.intersects(PollFlags::IN | PollFlags::ERR | PollFlags::HUP)
    }

    /// There is room to send, or an error to collect.
    pub fn is_writable(self) -> bool {
        self.socket.intersects(PollFlags::OUT | PollFlags::ERR)
    }

    /// A [`Waker`] called.
    pub fn is_woken(self) -> bool {
        self.woken
    }
}

/// The sleeping place of one driver thread.
#[derive(Debug)]
pub struct Poller {
    bell: Arc<Bell>,
}

/// Wakes a [`Poller`] from any thread.
#[derive(Clone, Debug)]
pub struct Waker {
    bell: Arc<Bell>,
}

/// An eventfd, and whether it rings already: the second wake of a busy thread costs no system call.
#[derive(Debug)]
struct Bell {
    fd: OwnedFd,
    ringing: AtomicBool,
}

impl Poller {
    /// A place to sleep.
    pub fn new() -> io::Result<Self> {
        let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        Ok(Self { bell: Arc::new(Bell { fd, ringing: AtomicBool::new(false) }) })
    }

    /// A handle that ends the wait from another thread.
    pub fn waker(&self) -> Waker {
        Waker { bell: Arc::clone(&self.bell) }
    }

    /// Sleeps until `socket` is ready, a waker has called, or `timeout` is over; `None` is for
    /// ever. May return early for no reason. The grain is the thread's timer slack: see
    /// [`sharpen_timers`].
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
        let mut places = [PollFd::new(socket, flags), PollFd::new(&self.bell.fd, PollFlags::IN)];
        let timeout = timeout.map(timespec);
        match poll(&mut places, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Readiness { socket: PollFlags::empty(), woken: false }),
            Err(error) => return Err(error.into()),
        }
        let [socket, bell] = places.map(|place| place.revents());
        let woken = bell.contains(PollFlags::IN);
        if woken {
            self.bell.silence();
        }
        Ok(Readiness { socket, woken })
    }
}

impl Waker {
    /// Ends the present wait, or the next one if there is none now. What the caller did before is
    /// visible to the thread that waited.
    pub fn wake(&self) {
        if !self.bell.ringing.swap(true, Ordering::AcqRel) {
            // It fails only if the counter is full, and then the bell rings.
            let _ = write(&self.bell.fd, &1_u64.to_ne_bytes());
        }
    }
}

impl Bell {
    fn silence(&self) {
        let mut count = [0; 8];
        // Emptied before the flag falls: the other order would let a wake in between be emptied
        // with its flag still up, and every later wake would think that the bell rings.
        let _ = read(&self.fd, &mut count);
        self.ringing.swap(false, Ordering::AcqRel);
    }
}

/// Makes the timeouts of the calling thread exact to a microsecond; the kernel's default of 50 us
/// is half the interval between the batches of a paced ten-gigabit stream.
pub fn sharpen_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1_000)).map_err(Into::into)
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}
