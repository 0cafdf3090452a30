//! The least time in which all groups can be sent, and who sends how much of which: a maximum flow.
//!
//! Bytes flow from servers to groups. A server of rate r with o bytes to do already can give r T - o to the
//! groups in the time T. The least T is found by cuts: the flow is made as large as it gets for a T that is too
//! small. Then a set of groups is not served completely, and all of its servers are used up; the next T is the one
//! with which those servers can just send those groups. Each T is a lower bound, and T only grows, so that no flow is ever
//! undone: some steps do, where bisection takes twenty, and the result is exact. The flow of the last plan is
//! where the next one begins.
//!
//! The client's link is a lower bound of T as well. It limits the sum and prefers no server, so it is no edge.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

/// The largest number of steps of one computation. Some five are enough in practice; beyond the limit a few bytes
/// have no server until the next plan, and are handed out nevertheless.
const STEPS_MAX: usize = 64;

/// The capacity of a server.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Source {
    /// Bytes a second; 0 if it cannot be asked.
    pub(crate) rate: f64,
    /// Bytes that it is asked for already.
    pub(crate) busy: u64,
}

impl Source {
    /// The bytes that it can give within a time.
    fn capacity(&self, seconds: f64) -> u64 {
        if self.rate <= 0.0 {
            return 0;
        }
        // Rounded up, so that a time found from a sum of rates is enough for each of them.
        ((self.rate * seconds) as u64).saturating_add(1).saturating_sub(self.busy)
    }
}

/// A group that a server has a replica of.
#[derive(Clone, Copy, Debug)]
struct Edge {
    group: u32,
    server: u16,
    /// The bytes of the group that the server is to send.
    flow: u64,
}

/// Groups and servers, and the flow between them.
#[derive(Debug, Default)]
pub(crate) struct Network {
    edges: Vec<Edge>,
    /// For each group, where its edges begin.
    by_group: Vec<usize>,
    /// For each server, its edges.
    by_server: Vec<Vec<u32>>,
}

/// One computation.
struct Search<'a> {
    network: &'a mut Network,
    sources: &'a [Source],
    /// For each group, what no server was found for.
    lacking: Vec<u64>,
    /// For each server, what it can still give.
    spare: Vec<u64>,
    /// For each server, what it gives.
    given: Vec<u64>,
}

/// The groups and servers that a group that lacks can reach; all of these servers are used up.
struct Cut {
    groups: Vec<u32>,
    servers: Vec<u16>,
}

impl Network {
    /// The number of groups.
    pub(crate) fn groups(&self) -> usize {
        self.by_group.len()
    }

    /// Adds a group with its servers.
    pub(crate) fn add_group(&mut self, servers: impl Iterator<Item = usize>) {
        let group = self.by_group.len() as u32;
        self.by_group.push(self.edges.len());
        for server in servers {
            if self.by_server.len() <= server {
                self.by_server.resize(server + 1, Vec::new());
            }
            self.by_server[server].push(self.edges.len() as u32);
            self.edges.push(Edge { group, server: server as u16, flow: 0 });
        }
    }

    /// Groups of which the server is to send something, with the bytes.
    pub(crate) fn of_server(&self, server: usize) -> impl Iterator<Item = (usize, u64)> + '_ {
        let edges = self.by_server.get(server).map_or(&[][..], Vec::as_slice);
        edges.iter().map(|&edge| {
            let edge = self.edges[edge as usize];
            (edge.group as usize, edge.flow)
        })
    }

    /// Bytes of a group were handed to the server. Groups without a plan are ignored.
    pub(crate) fn take(&mut self, group: usize, server: usize, bytes: u64) {
        if group >= self.groups() {
            return;
        }
        let range = self.range(group);
        let edge = self.edges[range].iter_mut().find(|edge| usize::from(edge.server) == server);
        if let Some(edge) = edge {
            edge.flow = edge.flow.saturating_sub(bytes);
        }
    }

    fn range(&self, group: usize) -> core::ops::Range<usize> {
        let end = self.by_group.get(group + 1).copied().unwrap_or(self.edges.len());
        self.by_group[group]..end
    }

    /// Makes the flow for groups of these sizes and these servers. Returns the least time in seconds, which is
    /// at least `time_min`. Groups without a server that can be asked get nothing.
    pub(crate) fn solve(&mut self, sizes: &[u64], sources: &[Source], time_min: f64) -> f64 {
        let mut search = Search {
            lacking: (0..self.groups())
                .map(|group| self.reachable(group, sizes, sources))
                .collect(),
            spare: vec![0; sources.len()],
            given: vec![0; sources.len()],
            network: self,
            sources,
        };
        let all: u64 = search.lacking.iter().sum();
        let mut time = time_for(all, sources.iter().copied()).max(time_min);
        search.keep_last(time);
        for _ in 0..STEPS_MAX {
            search.set_time(time);
            let cuts = search.fill();
            if cuts.is_empty() {
                break;
            }
            let needed = |cut: &Cut| {
                let size: u64 = cut.groups.iter().map(|&group| search.wanted(group as usize)).sum();
                time_for(size, cut.servers.iter().map(|&s| sources[usize::from(s)]))
            };
            time = cuts.iter().map(needed).fold(time, f64::max);
        }
        time
    }

    /// The bytes of a group, 0 if none of its servers can be asked.
    fn reachable(&self, group: usize, sizes: &[u64], sources: &[Source]) -> u64 {
        let edges = &self.edges[self.range(group)];
        let is_live = |edge: &Edge| sources[usize::from(edge.server)].rate > 0.0;
        if edges.iter().any(is_live) { sizes[group] } else { 0 }
    }
}

/// The least time in which these servers can give `bytes` beside what they are busy with.
fn time_for(bytes: u64, sources: impl Iterator<Item = Source>) -> f64 {
    if bytes == 0 {
        return 0.0;
    }
    let mut order: Vec<(f64, Source)> = sources
        .filter(|source| source.rate > 0.0)
        .map(|source| (source.busy as f64 / source.rate, source))
        .collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (mut work, mut rate, mut time) = (bytes as f64, 0.0, 0.0);
    for (idle_at, source) in order {
        if rate > 0.0 && time <= idle_at {
            break;
        }
        work += source.busy as f64;
        rate += source.rate;
        time = work / rate;
    }
    time
}

impl Search<'_> {
    /// The bytes of a group in all.
    fn wanted(&self, group: usize) -> u64 {
        let range = self.network.range(group);
        self.lacking[group] + self.network.edges[range].iter().map(|edge| edge.flow).sum::<u64>()
    }

    /// Keeps of the last flow what sizes and servers of this one allow.
    fn keep_last(&mut self, time: f64) {
        for edge in &mut self.network.edges {
            let (group, server) = (edge.group as usize, usize::from(edge.server));
            let room = self.sources[server].capacity(time) - self.given[server];
            edge.flow = edge.flow.min(self.lacking[group]).min(room);
            self.lacking[group] -= edge.flow;
            self.given[server] += edge.flow;
        }
    }

    fn set_time(&mut self, time: f64) {
        for (server, source) in self.sources.iter().enumerate() {
            self.spare[server] = source.capacity(time).saturating_sub(self.given[server]);
        }
    }

    /// Makes the flow as large as it gets. Returns the cut of each group that lacks something. A cut stays valid
    /// when later groups are served: no path leaves it.
    fn fill(&mut self) -> Vec<Cut> {
        let mut cuts = Vec::new();
        for group in 0..self.lacking.len() {
            while self.lacking[group] > 0 {
                if let Some(cut) = self.augment(group) {
                    cuts.push(cut);
                    break;
                }
            }
        }
        cuts
    }

    /// One path from a server with something to spare to the group, over groups that can be sent by others:
    /// breadth first, so that few groups change servers. Returns the cut if there is none.
    fn augment(&mut self, group: usize) -> Option<Cut> {
        let mut group_seen = vec![false; self.lacking.len()];
        // For each server, the edge over which it was found.
        let mut found_by: Vec<Option<usize>> = vec![None; self.sources.len()];
        // For each group but the first, the edge whose flow another server is to take over.
        let mut freed: Vec<Option<usize>> = vec![None; self.lacking.len()];
        let mut queue = VecDeque::from([group]);
        let mut cut = Cut { groups: Vec::new(), servers: Vec::new() };
        group_seen[group] = true;
        while let Some(here) = queue.pop_front() {
            cut.groups.push(here as u32);
            for edge in self.network.range(here) {
                let server = usize::from(self.network.edges[edge].server);
                if found_by[server].is_some() || self.sources[server].rate <= 0.0 {
                    continue;
                }
                found_by[server] = Some(edge);
                if self.spare[server] > 0 {
                    self.push(group, server, &found_by, &freed);
                    return None;
                }
                cut.servers.push(server as u16);
                for &other in &self.network.by_server[server] {
                    let Edge { group, flow, .. } = self.network.edges[other as usize];
                    if flow > 0 && !group_seen[group as usize] {
                        group_seen[group as usize] = true;
                        freed[group as usize] = Some(other as usize);
                        queue.push_back(group as usize);
                    }
                }
            }
        }
        Some(cut)
    }

    /// Sends as much as the path bears from the server at its end to the group at its beginning.
    fn push(
        &mut self,
        group: usize,
        server: usize,
        found_by: &[Option<usize>],
        freed: &[Option<usize>],
    ) {
        let mut path = Vec::new();
        let mut at = server;
        while let Some(edge) = found_by[at] {
            let here = self.network.edges[edge].group as usize;
            path.push((edge, freed[here]));
            match freed[here] {
                Some(given) if here != group => at = usize::from(self.network.edges[given].server),
                _ => break,
            }
        }
        let takes = path.iter().filter_map(|&(_, freed)| freed);
        let least = takes.map(|edge| self.network.edges[edge].flow).min().unwrap_or(u64::MAX);
        let bytes = least.min(self.spare[server]).min(self.lacking[group]);
        for (edge, freed) in path {
            self.network.edges[edge].flow += bytes;
            if let Some(freed) = freed {
                self.network.edges[freed].flow -= bytes;
            }
        }
        self.spare[server] -= bytes;
        self.given[server] += bytes;
        self.lacking[group] -= bytes;
    }
}

#[cfg(test)]
mod tests;
