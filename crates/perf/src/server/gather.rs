//! The connections of a test come one by one, in any order; here they find each other.

use crate::args::Competitors;
use crate::compete::MAX_COMPETITORS;
use crate::message::{FIRST_VERSION, Hello, Join, VERSION};
use crate::plan::MAX_STREAMS;
use crate::session::Talk;
use anyhow::{Result, ensure};
use hikyaku_net::Connection;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Tests whose connections are not all there.
#[derive(Default)]
pub(super) struct Gathering(Mutex<BTreeMap<String, Part>>);

/// A test with all its connections.
pub(super) struct Gathered {
    pub(super) hello: Hello,
    pub(super) connections: Vec<Connection>,
    /// Competitors of our own.
    pub(super) rivals: Vec<Connection>,
    pub(super) talk: Talk,
}

/// What is there of a test.
struct Part {
    since: Instant,
    first: Option<(Hello, Connection, Talk)>,
    others: BTreeMap<u32, Connection>,
}

/// A client that has gone away leaves its part for so long.
const KEEP: Duration = Duration::from_secs(30);
/// More tests than this do not begin at once.
const MAX_PARTS: usize = 64;
const MAX_TOKEN: usize = 64;

/// Why this server does not do this test, if it does not.
pub(super) fn refusal(hello: &Hello, competitors: Competitors) -> Option<String> {
    if !(FIRST_VERSION..=VERSION).contains(&hello.version) {
        return Some(format!(
            "it speaks version {VERSION} of perf and the client ({}) version {}; update the older",
            hello.program, hello.version
        ));
    }
    if hello.plan.compete.is_some() && competitors == Competitors::Refused {
        return Some("it runs no competitors (it was started with --no-compete)".to_owned());
    }
    hello.plan.check().err().map(|error| error.to_string())
}

impl Gathering {
    /// The first connection of a test.
    pub(super) fn hello(
        &self,
        hello: Hello,
        connection: Connection,
        talk: Talk,
    ) -> Result<Option<Gathered>> {
        let token = hello.token.clone();
        self.add(&token, move |part| part.first = Some((hello, connection, talk)))
    }

    /// A further connection of a test.
    pub(super) fn join(&self, join: &Join, connection: Connection) -> Result<Option<Gathered>> {
        let most = MAX_STREAMS + MAX_COMPETITORS;
        ensure!(join.index < most, "joined as connection {}", join.index);
        self.add(&join.token, move |part| drop(part.others.insert(join.index, connection)))
    }

    fn add(&self, token: &str, put: impl FnOnce(&mut Part)) -> Result<Option<Gathered>> {
        ensure!(token.len() <= MAX_TOKEN, "named the test too long");
        let mut parts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        parts.retain(|_, part| part.since.elapsed() < KEEP);
        ensure!(parts.len() < MAX_PARTS, "too many tests begin at once");
        let part = parts.entry(token.to_owned()).or_insert_with(|| Part {
            since: Instant::now(),
            first: None,
            others: BTreeMap::new(),
        });
        put(part);
        if part.is_complete() { Ok(parts.remove(token).and_then(Part::gathered)) } else { Ok(None) }
    }
}

impl Part {
    fn is_complete(&self) -> bool {
        let Some((hello, ..)) = &self.first else { return false };
        (1..hello.plan.connections()).all(|index| self.others.contains_key(&index))
    }

    fn gathered(self) -> Option<Gathered> {
        let (hello, connection, talk) = self.first?;
        let mut connections = vec![connection];
        let wanted = hello.plan.connections();
        let others = self.others.into_iter().filter(|(index, _)| (1..wanted).contains(index));
        connections.extend(others.map(|(_, connection)| connection));
        let rivals = connections.split_off(hello.plan.streams as usize);
        Some(Gathered { hello, connections, rivals, talk })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn other_versions_and_senseless_plans_are_refused() {
        let hello = Hello {
            version: VERSION,
            program: "hikyaku 9".to_owned(),
            token: String::new(),
            plan: Plan::default(),
            policy: String::new(),
            wire_target: None,
        };
        let refusal = |hello: &Hello| super::refusal(hello, Competitors::Allowed);
        assert_eq!(refusal(&hello), None);
        let first = Hello { version: FIRST_VERSION, ..hello.clone() };
        assert_eq!(refusal(&first), None);
        for version in [0, VERSION + 1] {
            let other = Hello { version, ..hello.clone() };
            assert!(refusal(&other).is_some_and(|reason| reason.contains("hikyaku 9")));
        }
        let many = Plan { streams: 1000, ..Plan::default() };
        assert!(refusal(&Hello { plan: many, ..hello }).is_some_and(|text| text.contains("-P")));
    }

    #[test]
    fn who_asks_for_competitors_speaks_a_version_that_old_servers_refuse() {
        let compete = "tcp:2".parse().ok();
        let plan = Plan { compete, ..Plan::default() };
        assert_eq!(Hello::version(&Plan::default()), FIRST_VERSION);
        assert!(Hello::version(&plan) > FIRST_VERSION);
        let hello = Hello {
            version: Hello::version(&plan),
            program: String::new(),
            token: String::new(),
            plan,
            policy: String::new(),
            wire_target: None,
        };
        assert_eq!(refusal(&hello, Competitors::Allowed), None);
        let refused = refusal(&hello, Competitors::Refused);
        assert!(refused.is_some_and(|reason| reason.contains("--no-compete")));
    }
}
