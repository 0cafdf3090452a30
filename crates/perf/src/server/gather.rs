//! Collects the connections of each test, which arrive one by one and in any order.

use super::budget::Place;
use crate::args::{Competitors, Rules, Stalls};
use crate::compete::MAX_COMPETITORS;
use crate::control::{ControlReader, ControlSender};
use crate::message::{FIRST_VERSION, Hello, Join, VERSION};
use crate::plan::{Direction, Limit, MAX_STREAMS};
use anyhow::{Result, ensure};
use hikyaku_net::{AppCode, Connection};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[cfg(test)]
mod tests;

/// Tests that still lack connections.
#[derive(Default)]
pub(super) struct Gathering {
    /// Announced tests, by their token.
    announced: BTreeMap<String, Part>,
    /// Connections whose test has not been announced yet, oldest first.
    early: Vec<Early>,
}

/// A test with all its connections.
pub(super) struct Gathered {
    pub(super) hello: Hello,
    pub(super) connections: Vec<Connection>,
    /// Connections of competing hikyaku flows.
    pub(super) rivals: Vec<Connection>,
    pub(super) control_channel: (ControlSender, ControlReader),
    pub(super) place: Place,
}

/// The connections of an announced test that have arrived so far.
struct Part {
    since: Instant,
    announced: Announced,
    others: BTreeMap<u32, Connection>,
}

/// The first connection of a test and what it announced.
pub(super) struct Announced {
    pub(super) hello: Hello,
    pub(super) connection: Connection,
    pub(super) control_channel: (ControlSender, ControlReader),
    pub(super) place: Place,
}

/// A connection that arrived before the one that announces its test (with `Hello`). It waits for the announcement.
struct Early {
    since: Instant,
    join: Join,
    connection: Connection,
}

/// How long the remaining connections of an announced test may take.
const ANNOUNCED_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a connection waits for the announcement of its test. The client sends both at the same
/// time.
const EARLY_TIMEOUT: Duration = Duration::from_secs(5);
/// How many such connections may wait: those of one test of the largest size. Beyond that the
/// oldest is closed.
const EARLY_MAX: usize = (MAX_STREAMS + MAX_COMPETITORS) as usize;
/// Longest token, in bytes.
const TOKEN_BYTES_MAX: usize = 64;

/// Why this server refuses the test, or `None`.
pub(super) fn refusal(hello: &Hello, rules: &Rules) -> Option<String> {
    if !(FIRST_VERSION..=VERSION).contains(&hello.version) {
        return Some(format!(
            "it supports version {VERSION} of the perf protocol, the client ({}) version {}; update the older one",
            hello.program, hello.version
        ));
    }
    let plan = &hello.plan;
    if let Err(error) = plan.check() {
        return Some(error.to_string());
    }
    if plan.compete.is_some() && rules.competitors == Competitors::Refused {
        return Some("it runs no competing flows (it was started with --no-compete)".to_owned());
    }
    if plan.compete.is_some() && rules.rate.is_some() {
        return Some(
            "it runs no competing flows, because it was started with --max-rate".to_owned(),
        );
    }
    let is_stalled = plan.stall.is_some() && plan.direction == Direction::Upload;
    if is_stalled && rules.stalls == Stalls::Refused {
        return Some("it does not allow --stall (it was started without --allow-stall)".to_owned());
    }
    let seconds = match (plan.limit, plan.total_seconds()) {
        (Limit::Seconds(part), _) if plan.compete.is_some() => Some(3.0 * part),
        (_, total) => total,
    };
    let most = rules.time.filter(|most| seconds.is_some_and(|seconds| seconds > *most))?;
    Some(format!("its tests last at most {most} s, omitted time included (--max-time)"))
}

impl Gathering {
    /// Registers an announced test. Returns it if all its connections have arrived.
    pub(super) fn announce(&mut self, announced: Announced, now: Instant) -> Option<Gathered> {
        let token = announced.hello.token.clone();
        let mut part = Part { since: now, announced, others: BTreeMap::new() };
        let (its_own, early) = std::mem::take(&mut self.early)
            .into_iter()
            .partition(|early| early.join.token == token);
        self.early = early;
        let its_own: Vec<Early> = its_own;
        its_own.into_iter().for_each(|early| part.add(&early.join, early.connection));
        if part.is_complete() {
            return Some(part.gathered());
        }
        // If a client uses a token twice, the later test replaces the earlier one.
        self.announced.insert(token, part);
        None
    }

    /// Adds a further connection. Returns its test if that is complete now.
    pub(super) fn join(
        &mut self,
        join: Join,
        connection: Connection,
        now: Instant,
    ) -> Result<Option<Gathered>> {
        let most = MAX_STREAMS + MAX_COMPETITORS;
        ensure!(join.index < most, "sent a connection number out of range: {}", join.index);
        ensure!(join.token.len() <= TOKEN_BYTES_MAX, "sent a token of more than 64 bytes");
        let Some(part) = self.announced.get_mut(&join.token) else {
            if self.early.len() >= EARLY_MAX {
                dismiss(&self.early.remove(0).connection);
            }
            self.early.push(Early { since: now, join, connection });
            return Ok(None);
        };
        part.add(&join, connection);
        if !part.is_complete() {
            return Ok(None);
        }
        Ok(self.announced.remove(&join.token).map(Part::gathered))
    }

    /// Closes connections that have waited too long.
    pub(super) fn expire(&mut self, now: Instant) {
        let is_over = |since: Instant, keep| now.saturating_duration_since(since) > keep;
        self.early.retain(|early| {
            let is_over = is_over(early.since, EARLY_TIMEOUT);
            if is_over {
                dismiss(&early.connection);
            }
            !is_over
        });
        self.announced.retain(|_, part| {
            let is_over = is_over(part.since, ANNOUNCED_TIMEOUT);
            if is_over {
                part.connections().for_each(dismiss);
            }
            !is_over
        });
    }

    /// The connections without an announced test.
    pub(super) fn early(&self) -> impl Iterator<Item = &Connection> {
        self.early.iter().map(|early| &early.connection)
    }

    /// Closes one of the connections without an announced test; `at` is its index in
    /// [`Gathering::early`].
    pub(super) fn dismiss_early(&mut self, at: usize) {
        if at < self.early.len() {
            dismiss(&self.early.remove(at).connection);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.announced.is_empty() && self.early.is_empty()
    }
}

fn dismiss(connection: &Connection) {
    connection.close(AppCode::FIRST, "the other connections of this test did not arrive");
}

impl Part {
    fn add(&mut self, join: &Join, connection: Connection) {
        if (1..self.announced.hello.plan.connections()).contains(&join.index) {
            self.announced.place.add(&connection);
            self.others.insert(join.index, connection);
        }
    }

    fn is_complete(&self) -> bool {
        (1..self.announced.hello.plan.connections()).all(|index| self.others.contains_key(&index))
    }

    fn connections(&self) -> impl Iterator<Item = &Connection> {
        [&self.announced.connection].into_iter().chain(self.others.values())
    }

    fn gathered(self) -> Gathered {
        let Announced { hello, connection, control_channel, place } = self.announced;
        let mut connections = vec![connection];
        connections.extend(self.others.into_values());
        let rivals = connections.split_off(hello.plan.streams as usize);
        Gathered { hello, connections, rivals, control_channel, place }
    }
}
