//! Which ports have packets to read, without asking each of them.

use hikyaku_tun::Tun;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Result;

/// Ports that are told in one look; the others are told in the next.
const PORTS_PER_LOOK: usize = 32;

/// The ports of a relay, watched by epoll(7).
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
}

impl Watch {
    /// Watches `ports`.
    pub(super) fn new(ports: &[Tun]) -> Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (index, port) in ports.iter().enumerate() {
            epoll::add(&epoll, port, EventData::new_u64(index as u64), EventFlags::IN)?;
        }
        Ok(Self { epoll })
    }

    /// The ports that can be read now, at most [`PORTS_PER_LOOK`] of them: how many, and which.
    pub(super) fn readable(&self) -> (usize, [usize; PORTS_PER_LOOK]) {
        let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(0) };
        let (mut events, mut ports) = ([nothing; PORTS_PER_LOOK], [0; PORTS_PER_LOOK]);
        // An error is an interruption: the next look tells.
        let count = epoll::wait(&self.epoll, &mut events, Some(&Timespec::default())).unwrap_or(0);
        for (port, event) in ports.iter_mut().zip(&events[..count]) {
            *port = usize::try_from({ event.data }.u64()).unwrap_or(0);
        }
        (count, ports)
    }

    /// Sleeps until a port can be read, `wake` can be read or the time is over. Tells whether `wake` can.
    pub(super) fn sleep(&self, wake: impl AsFd, timeout: Option<&Timespec>) -> bool {
        let mut fds = [PollFd::new(&wake, PollFlags::IN), PollFd::new(&self.epoll, PollFlags::IN)];
        // poll(2) has nanoseconds where epoll_wait(2) has milliseconds. An interrupted sleep is harmless: the relay
        // checks everything anyway.
        let _ = poll(&mut fds, timeout);
        !fds[0].revents().is_empty()
    }
}
