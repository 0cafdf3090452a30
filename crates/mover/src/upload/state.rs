//! State of an upload and of its servers while it runs.

use super::queue::{Load, Queue, TaskId, Turn};
use super::run::{At, Attempt, Run};
use crate::bottleneck::Gauge;
use crate::census::ServerId;
use crate::fetch::{FetchError, Fetched};
use hikyaku_remote::{Client, Flow};
use hikyaku_store::StorePath;
use hikyaku_units::Retries;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// State that the threads of an upload share.
pub(super) struct State {
    pub(super) queue: Queue,
    pub(super) links: Vec<Link>,
    pub(super) uploaded: Fetched,
    /// By the number of the file: its tasks that are not over.
    pub(super) tasks: Vec<usize>,
    /// Since when no server is connected.
    pub(super) gone_since: Option<Instant>,
    /// Lanes that send a file.
    pub(super) busy: usize,
    /// Their time, and when it was added up last.
    pub(super) sending: (Duration, Instant),
    pub(super) gauge: Gauge,
    pub(super) is_over: bool,
}

/// A server of an upload.
pub(super) struct Link {
    /// `None` if it is lost.
    pub(super) client: Option<Client>,
    /// Counts connections, so that an answer of an earlier connection is recognized.
    pub(super) epoch: u32,
    pub(super) flow: Flow,
    pub(super) backlog: u64,
    pub(super) full_from: u64,
    /// Failures in this upload, of which a connection is one as well: a server that is lost again and again is tried less often.
    pub(super) retries: Retries,
    pub(super) retry_at: Option<Instant>,
    /// Directories in which names were made.
    pub(super) touched: BTreeSet<StorePath>,
}

impl Link {
    /// A connection was lost, or could not be made: the next attempt is made after the wait of the policy.
    pub(super) fn retry_later(&mut self) {
        self.retry_at = Some(Instant::now() + self.retries.next(fastrand::f64()));
    }
}

impl State {
    pub(super) fn loads(&self, now: Duration) -> Vec<Option<Load>> {
        let load = |link: &Link| {
            let Link { backlog, full_from, .. } = *link;
            let (rate, pace) = (link.flow.rate(now), link.flow.pace());
            link.client.is_some().then_some(Load { backlog, rate, pace, full_from })
        };
        self.links.iter().map(load).collect()
    }

    /// Whether the sending of a file goes on, waits or is over.
    pub(super) fn turn(&self, at: At, attempt: Attempt) -> Turn {
        match self.is_over || self.links[at.server.0].epoch != at.epoch {
            true => Turn::Over,
            false => self.queue.turn(attempt.id, attempt.number),
        }
    }

    pub(super) fn answered(&mut self, at: At, bytes: u64, now: Duration) {
        let link = &mut self.links[at.server.0];
        if link.epoch == at.epoch {
            link.flow.answered(bytes, now);
        }
    }

    /// Whether another server that is there may have room for the file.
    pub(super) fn fits_elsewhere(&self, server: ServerId, id: TaskId) -> bool {
        let task = self.queue.task(id);
        let others = (0..).map(ServerId).zip(&self.links).filter(|(other, _)| *other != server);
        let mut others = others.filter(|(_, link)| link.client.is_some());
        task.only.is_none() && others.any(|(_, link)| task.size < link.full_from)
    }
}

/// Ends all connections: lanes that wait for them end by this.
pub(super) fn close(state: &State, why: &str) {
    for client in state.links.iter().filter_map(|link| link.client.as_ref()) {
        client.connection().close(hikyaku_net::code::APPLICATION, why);
    }
}

impl Run<'_> {
    /// The servers that are connected.
    pub(super) fn clients(&self) -> Vec<(At, Client)> {
        let state = self.state();
        let links = (0..).map(ServerId).zip(&state.links);
        let there = links.filter_map(|(server, link)| {
            Some((At { server, epoch: link.epoch }, link.client.clone()?))
        });
        there.collect()
    }

    /// Notes that names were made in this directory of a server.
    pub(super) fn touch(&self, server: ServerId, dir: StorePath) {
        self.state().links[server.0].touched.insert(dir);
    }

    /// The directories of a server in which names were made.
    pub(super) fn touched(&self, server: ServerId) -> Vec<StorePath> {
        std::mem::take(&mut self.state().links[server.0].touched).into_iter().collect()
    }

    /// Notes what could not be done.
    pub(super) fn failed(&self, path: &StorePath, error: FetchError) {
        let mut state = self.state();
        let path = path.as_bytes();
        if state.uploaded.failed.iter().all(|(failed, _)| failed != path) {
            state.uploaded.failed.push((path.to_vec(), error));
        }
    }
}
