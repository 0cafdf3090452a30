//! Talking to the relay thread from others.

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

/// What others ask of the relay.
#[derive(Debug)]
pub(crate) enum Request {
    Set(Vec<Setting>),
    /// Forget all packets and counters, and start the clock anew.
    Restart,
    Snapshot(Sender<Snapshot>),
    Stop,
}

/// The relay's state at one instant.
#[derive(Clone, Debug)]
pub(crate) struct Snapshot {
    /// Since the clock was started.
    pub(crate) at: Instant,
    pub(crate) path: PathSpec,
    pub(crate) up: Counters,
    pub(crate) down: Counters,
    /// The servers' own links.
    pub(crate) access: Vec<Option<(Counters, Counters)>>,
    pub(crate) lateness: Lateness,
    /// The processor time that the relay has used.
    pub(crate) cpu: Duration,
    pub(crate) own_drops: OwnDrops,
    /// Packets for nobody in the lab, such as multicast.
    pub(crate) stray: u64,
}

/// The relay's end of the line to the others.
#[derive(Debug)]
pub(crate) struct Mailbox {
    pub(crate) requests: Receiver<Request>,
    pub(crate) wake: Arc<OwnedFd>,
}

/// The others' end. Stops the relay when dropped.
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

    pub(crate) fn set(&self, settings: Vec<Setting>) -> Result<()> {
        self.send(Request::Set(settings))
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
        // An error means that it has stopped already.
        let _ = self.send(Request::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
