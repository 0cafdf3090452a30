//! The nodes of a Gfarm file system as the channels of a source: they send files by Gfarm's own protocol, or by daemons on them.

use super::{Order, start};
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_console::{Tone, headline, say};
use hikyaku_mover::{Behind, Census, Choice, ServerId, Session, gfarm_census};
use hikyaku_reach::dial::{Address, Ending, Servers};
use hikyaku_store::{ErrorKind, Fetcher, StorePath};
use hikyaku_store_gfarm::{Gfarm, Node, Trouble, survey};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The daemons on the nodes, if the user wants them.
fn daemons(order: &Order<'_>, nodes: &[hikyaku_gfarm::Address]) -> Result<Option<Session>> {
    let Some(port) = order.plan.transport.gfarm_daemons.filter(|_| !nodes.is_empty()) else {
        return Ok(None);
    };
    let address = |node: &hikyaku_gfarm::Address| Address { host: node.host.clone(), port };
    let servers = nodes.iter().map(address).collect();
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

/// Follows the links of a path.
type Lead<'a> = &'a mut dyn FnMut(&StorePath) -> Result<StorePath, ErrorKind>;

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
    /// The entries at and below `root`, which has no link in its path, those behind the links below it that are followed, and
    /// the nodes that send them. `lead` follows a path.
    pub(super) fn find(
        order: &Order<'_>,
        (gfarm, root, shown): (&Arc<Gfarm>, &StorePath, &str),
        (choice, lead): (&Choice<'_>, Lead<'_>),
    ) -> Result<(Self, Census)> {
        let mut nodes = Vec::new();
        let mut census = |place: &StorePath| -> Result<Census, Trouble> {
            let survey = survey(gfarm, place)?;
            let mut number = |address: &hikyaku_gfarm::Address| {
                let known = nodes.iter().position(|known| known == address);
                ServerId(known.unwrap_or_else(|| {
                    nodes.push(address.clone());
                    nodes.len() - 1
                }))
            };
            let numbers: Vec<ServerId> = survey.nodes.iter().map(&mut number).collect();
            Ok(gfarm_census(&survey, &numbers))
        };
        let mut found = census(root)
            .map_err(|trouble| failed(trouble.kind().into(), format!("{shown}: {trouble}")))?;
        let mut behind = |place: &StorePath| census(place).map_err(|trouble| trouble.kind());
        found.follow(root, choice, Behind { lead, census: &mut behind });
        let node = |address: &_| Arc::new(Node::new(gfarm.clone(), Clone::clone(address)));
        let session = daemons(order, &nodes)?;
        let met = session.as_ref().map(Session::met).unwrap_or_default();
        let mut all = Self {
            nodes: nodes.iter().map(node).collect(),
            reached: Vec::new(),
            session,
            daemons: met.into_iter().map(|met| met.address).collect(),
            away: Mutex::default(),
        };
        all.reached = all.reach(&found);
        all.reached.iter().for_each(|one| say(Tone::Detail, one));
        let number = |node: ServerId| all.reached.iter().position(|one| one.node == node.0);
        found.renumber(|node| number(node).map(ServerId));
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
    fn reach(&self, found: &Census) -> Vec<ReachedNode> {
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
                true if has_all(found, &reached) => break,
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
        let told = self.nodes.iter().enumerate().filter_map(|(node, at)| {
            let (reached, address) = (reached.remove(&node), at.address());
            let reached = reached.unwrap_or_else(|| Err(late()));
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
fn has_all(found: &Census, reached: &BTreeMap<usize, Result<ReachedNode, Trouble>>) -> bool {
    let is_there = |node: &ServerId| reached.get(&node.0).is_some_and(Result::is_ok);
    found.files.iter().all(|file| file.seen.size == 0 || file.at.iter().any(is_there))
}
