//! The simple rules, over the same servers. Both ask for whole files, two at a time from a server.

use crate::cases::Case;
use crate::drive::IDLE_MAX;
use crate::fluid::{Event, Message, World};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Files that a server is asked for at once.
const AT_ONCE: usize = 2;

/// A server sends one file after the other: two at once would end at once, and leave it idle for a round trip.
const LANES: usize = 1;

/// Silence with work asked after which a file is asked for elsewhere.
const QUIET: Duration = Duration::from_secs(2);

/// Which rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rule {
    /// Files are dealt among their replicas beforehand.
    RoundRobin,
    /// A server that has room takes the next file that it has a replica of.
    FileAtATime,
}

struct Server {
    /// With the rule that deals beforehand: its files.
    dealt: VecDeque<usize>,
    under_way: BTreeSet<usize>,
    heard: Duration,
}

/// Seconds until every file is complete, or `None` if that never happens.
pub(crate) fn run(case: &Case, rule: Rule) -> Option<f64> {
    let mut world = World::new(&case.servers, case.link, LANES);
    let new =
        || Server { dealt: VecDeque::new(), under_way: BTreeSet::new(), heard: Duration::ZERO };
    let mut servers: Vec<Server> = case.servers.iter().map(|_| new()).collect();
    let mut queue: VecDeque<usize> = (0..case.files.len()).collect();
    if rule == Rule::RoundRobin {
        for file in queue.drain(..) {
            let replicas = &case.files[file].1;
            servers[replicas[file % replicas.len()]].dealt.push_back(file);
        }
    }
    let mut done = BTreeSet::new();
    let mut asks: BTreeMap<u64, (usize, u64)> = BTreeMap::new();
    let mut heard = Duration::ZERO;
    while done.len() < case.files.len() {
        for (index, server) in servers.iter_mut().enumerate() {
            if rule == Rule::FileAtATime && world.now.saturating_sub(server.heard) > QUIET {
                queue.extend(
                    core::mem::take(&mut server.under_way)
                        .iter()
                        .filter(|file| !done.contains(*file)),
                );
            }
            let is_quiet = world.now > server.heard + QUIET
                && world.now > QUIET
                && server.heard > Duration::ZERO;
            while server.under_way.len() < AT_ONCE {
                let file = match rule {
                    Rule::RoundRobin => server.dealt.pop_front(),
                    Rule::FileAtATime if is_quiet => None,
                    Rule::FileAtATime => {
                        let next =
                            queue.iter().position(|&file| case.files[file].1.contains(&index));
                        next.and_then(|at| queue.remove(at))
                    }
                };
                let Some(file) = file else { break };
                if server.under_way.is_empty() {
                    server.heard = world.now;
                }
                server.under_way.insert(file);
                let (id, bytes) = (asks.len() as u64, case.files[file].0);
                asks.insert(id, (file, bytes));
                world.send(index, Message::Ask { id, bytes });
            }
            if server.under_way.is_empty() && !is_quiet {
                server.heard = world.now;
            }
        }
        let events = world.step();
        if !events.is_empty() {
            heard = world.now;
        } else if world.now - heard > IDLE_MAX {
            return None;
        }
        for event in events {
            let (server, id, bytes) = match event {
                Event::Bytes { server, id, bytes } => (server, id, bytes),
                Event::End { server, id } => (server, id, 0),
            };
            servers[server].heard = world.now;
            if let Some((file, left)) = asks.get_mut(&id) {
                *left -= bytes;
                if *left == 0 {
                    done.insert(*file);
                    servers[server].under_way.remove(file);
                }
            }
        }
    }
    Some(world.now.as_secs_f64())
}
