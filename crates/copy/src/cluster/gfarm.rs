//! The nodes of a Gfarm file system as the channels of a source: they send files by Gfarm's own protocol, or by daemons on them.

use super::{Order, start};
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_console::{Tone, headline, say};
use hikyaku_mover::{Census, ServerId, Session, gfarm_census};
use hikyaku_reach::dial::{Address, Ending, Servers};
use hikyaku_store::{Fetcher, StorePath};
use hikyaku_store_gfarm::{Gfarm, Node, Survey, Trouble, survey};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The daemons on the nodes, if the user wants them.
fn daemons(order: &Order<'_>, survey: &Survey) -> Result<Option<Session>> {
    let Some(port) = order.plan.transport.gfarm_daemons.filter(|_| !survey.nodes.is_empty()) else {
        return Ok(None);
    };
    let address = |node: &hikyaku_gfarm::Address| Address { host: node.host.clone(), port };
    let servers = survey.nodes.iter().map(address).collect();
    let servers = Servers { servers, path: Vec::new(), ending: Ending::Slash, keys: Vec::new() };
    match start::session(order, &servers) {
        Ok(session) => Ok(Some(session)),
        Err(error) if order.scope.stop_cause().is_some() => Err(error),
        Err(error) => {
            let (why, try_it) = (headline(&error), "start hikyaku serve --gfarm on the nodes");
            say(
                Tone::Warning,
                format_args!(
                    "no daemon of a node can be used, files come by Gfarm's own protocol: {why}\ntry: {try_it}"
                ),
            );
            Ok(None)
        }
    }
}

/// The nodes of the file system that have files of a source.
pub(super) struct Nodes {
    nodes: Vec<Arc<Node>>,
    /// Those that can be reached, by their numbers in the plan.
    reached: Vec<ReachedNode>,
    /// Daemons on some of them.
    session: Option<Session>,
    /// Where those listen, in the order of the session.
    daemons: Vec<Address>,
    /// Why no node could be used any more, if it was gfmd.
    away: Mutex<Option<String>>,
}

/// A node is waited for so long if others have its files.
const PROBE_TIME: Duration = Duration::from_secs(5);

/// A node that can be reached.
struct ReachedNode {
    /// Its number.
    node: usize,
    name: String,
    server: Arc<dyn Fetcher>,
    /// The number of its daemon in the session.
    daemon: Option<ServerId>,
}

impl fmt::Display for ReachedNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let how = match self.daemon {
            Some(_) => "a daemon",
            None => "by Gfarm's own protocol",
        };
        write!(f, "{}: {how}", self.name)
    }
}

impl Nodes {
    /// What the file system has at and below `root`, which has no link in its path, and the nodes that send it.
    pub(super) fn find(
        order: &Order<'_>,
        (gfarm, root, shown): (&Arc<Gfarm>, &StorePath, &str),
    ) -> Result<(Self, Census)> {
        let survey = survey(gfarm, root)
            .map_err(|trouble| failed(trouble.kind().into(), format!("{shown}: {trouble}")))?;
        let node = |address: &_| Arc::new(Node::new(gfarm.clone(), Clone::clone(address)));
        let session = daemons(order, &survey)?;
        let met = session.as_ref().map(Session::met).unwrap_or_default();
        let mut all = Self {
            nodes: survey.nodes.iter().map(node).collect(),
            reached: Vec::new(),
            session,
            daemons: met.into_iter().map(|met| met.address).collect(),
            away: Mutex::default(),
        };
        all.reached = all.reach(&survey);
        all.reached.iter().for_each(|one| say(Tone::Detail, one));
        let number = |node: usize| all.reached.iter().position(|one| one.node == node);
        // A tree without bytes needs no node, and the census a place to stand on.
        let servers = all.reached.len().max(1);
        let found = gfarm_census(&survey, servers, |node| number(node).map(ServerId));
        Ok((all, found))
    }

    /// The channels to the nodes that can be reached.
    pub(super) fn servers(&self) -> Vec<Arc<dyn Fetcher>> {
        self.reached.iter().map(|one| one.server.clone()).collect()
    }

    /// Their names.
    pub(super) fn names(&self) -> Vec<String> {
        self.reached.iter().map(|one| one.name.clone()).collect()
    }

    /// The session with daemons on nodes.
    pub(super) const fn session(&self) -> Option<&Session> {
        self.session.as_ref()
    }

    /// The nodes that can be reached, by their daemons or by Gfarm's protocol. The others are told.
    fn reach(&self, survey: &Survey) -> Vec<ReachedNode> {
        let (tell, hear) = channel();
        let mut reached = BTreeMap::new();
        for (node, asked) in self.nodes.iter().enumerate() {
            if let Some(daemon) = self.by_daemon(node) {
                reached.insert(node, Ok(daemon));
                continue;
            }
            let (asked, tell) = (asked.clone(), tell.clone());
            let probe = move || drop(tell.send((node, asked.probe())));
            if let Err(error) = thread::Builder::new().name("gfarm-probe".to_owned()).spawn(probe) {
                reached.insert(node, Err(Trouble::Away(error.to_string())));
            }
        }
        drop(tell);
        let begin = Instant::now();
        // A node that was paused answers after half a minute or never: it is waited for only where nobody else has its files.
        loop {
            let left = PROBE_TIME.saturating_sub(begin.elapsed());
            let heard = match left.is_zero() {
                false => hear.recv_timeout(left),
                true if has_all(survey, &reached) => break,
                true => hear.recv().map_err(|_| RecvTimeoutError::Disconnected),
            };
            match heard {
                Ok((node, probed)) => {
                    drop(reached.insert(node, probed.map(|()| self.by_gfarm(node))))
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let late = || Trouble::Away(format!("no answer within {} s", PROBE_TIME.as_secs()));
        let told = survey.nodes.iter().enumerate().filter_map(|(node, address)| {
            let reached = reached.remove(&node).unwrap_or_else(|| Err(late()));
            reached
                .inspect_err(|trouble| say(Tone::Warning, format_args!("{address}: {trouble}")))
                .ok()
        });
        told.collect()
    }

    fn by_daemon(&self, node: usize) -> Option<ReachedNode> {
        let host = &self.nodes[node].address().host;
        let daemon = ServerId(self.daemons.iter().position(|at| at.host == *host)?);
        let server = Arc::new(self.session.as_ref()?.client(daemon)?);
        let name = self.daemons[daemon.0].to_string();
        Some(ReachedNode { node, name, server, daemon: Some(daemon) })
    }

    fn by_gfarm(&self, node: usize) -> ReachedNode {
        let name = self.nodes[node].address().to_string();
        ReachedNode { node, name, server: self.nodes[node].clone(), daemon: None }
    }

    /// Why no node could be used any more, if it was gfmd.
    pub(super) fn metadata_away(&self) -> Option<String> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner).clone();
        away.map(|text| format!("{text}; no node sends without it"))
    }

    /// Connects to a node again: to its daemon, or without it if the daemon does not come back.
    pub(super) fn again(&self, server: ServerId) -> Option<Arc<dyn Fetcher>> {
        let reached = self.reached.get(server.0)?;
        if let Some((session, daemon)) = self.session.as_ref().zip(reached.daemon)
            && let Some(client) = session.again(daemon)
        {
            return Some(Arc::new(client));
        }
        let probed = self.nodes[reached.node].probe();
        let mut away = self.away.lock().unwrap_or_else(PoisonError::into_inner);
        *away = match &probed {
            Err(Trouble::MetadataAway(text)) => Some(text.clone()),
            _ => None,
        };
        drop(away);
        probed.ok().map(|()| -> Arc<dyn Fetcher> { self.nodes[reached.node].clone() })
    }
}

/// Whether each file of which a node has bytes has one that was reached.
fn has_all(survey: &Survey, reached: &BTreeMap<usize, Result<ReachedNode, Trouble>>) -> bool {
    let is_there = |node: &usize| reached.get(node).is_some_and(Result::is_ok);
    survey.all.iter().all(|one| one.at.is_empty() || one.at.iter().any(is_there))
}
