//! Messages between the relay thread and other threads.

use super::health::OwnDrops;
use super::lateness::Lateness;
use super::run::Relay;
use anyhow::{Context, Result};
use hikyaku_link::{Counters, PathSpec, Setting};
use hikyaku_units::Instant;
use rustix::event::{EventfdFlags, eventfd};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Requests to the relay.
#[derive(Debug)]
pub(crate) enum Request {
    Set(Vec<(Target, Setting)>),
    /// Discard all packets in flight and counters, and restart the clock.
    Restart,
    Snapshot(Sender<Snapshot>),
    Stop,
}

/// The paths to which a change applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    All,
    /// The path with this index.
    Path(usize),
}

/// A path's settings and counters.
#[derive(Clone, Debug)]
pub(crate) struct PathState {
    pub(crate) path: PathSpec,
    pub(crate) up: Counters,
    pub(crate) down: Counters,
}

/// The state of the relay at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Time since the clock was started.
    pub(crate) at: Instant,
    pub(crate) paths: Vec<PathState>,
    /// The access links of the servers.
    pub(crate) access: Vec<Option<(Counters, Counters)>>,
    pub(crate) lateness: Lateness,
    /// Processor time used by the relay thread.
    pub(crate) cpu: Duration,
    pub(crate) own_drops: OwnDrops,
    /// Packets that are not addressed to any host of the lab, such as multicast.
    pub(crate) stray: u64,
}

/// The relay's end of the message channels.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) requests: Receiver<Request>,
    pub(crate) wake: Arc<OwnedFd>,
}

/// The other end of the channels. Dropping it stops the relay.
#[derive(Debug)]
pub(crate) struct Handle {
    requests: Sender<Request>,
    wake: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// Starts a relay on a thread of its own.
    pub(crate) fn start(relay: impl FnOnce(Mailbox) -> io::Result<Relay>) -> Result<Self> {
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let (requests, receiver) = channel();
        let relay = relay(Mailbox { requests: receiver, wake: Arc::clone(&wake) })?;
        let thread = thread::Builder::new().name("lab-relay".into()).spawn(|| relay.run())?;
        Ok(Self { requests, wake, thread: Some(thread) })
    }

    pub(crate) fn send(&self, request: Request) -> Result<()> {
        self.requests.send(request).ok().context("the relay has stopped")?;
        rustix::io::write(&*self.wake, &1u64.to_ne_bytes())?;
        Ok(())
    }

    pub(crate) fn set(&self, changes: Vec<(Target, Setting)>) -> Result<()> {
        self.send(Request::Set(changes))
    }

    pub(crate) fn restart(&self) -> Result<()> {
        self.send(Request::Restart)
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        let (sender, receiver) = channel();
        self.send(Request::Snapshot(sender))?;
        receiver.recv().context("the relay has stopped")
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // An error means that the relay has already stopped.
        let _ = self.send(Request::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
