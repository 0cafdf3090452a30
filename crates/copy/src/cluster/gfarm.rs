//! Copies from a Gfarm file system, from the nodes that have the files: by Gfarm's own protocol, or by daemons on them.

use super::beside::beside;
use super::direct::{Fetching, bring};
use super::target::TargetEnd;
use super::{Order, Outcome, start};
use crate::outcome::failed;
use anyhow::{Context, Error, Result};
use hikyaku_console::{Tone, headline, say, with_remedy};
use hikyaku_job::in_store;
use hikyaku_mover::{
    Arriving, Choice, Direction, Done, Plan, ServerId, Session, Together, failure_kind,
    gfarm_census, remote_path, unfit,
};
use hikyaku_reach::dial::{Address, Ending, Servers};
use hikyaku_store::Fetcher;
use hikyaku_store_gfarm::{ConnectGfarm, Gfarm, Node, Survey, Trouble, survey};
use hikyaku_stores::GfarmPath;
use hikyaku_transfer::FailureKind;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Copies what the file system has at these paths, which were written so.
pub(super) fn copy(
    order: &Order<'_>,
    (sources, choice, together): (&[GfarmPath], &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let first = sources.first().context("no source")?;
    let gfarm = Arc::new(Gfarm::connect(first.server.clone()).map_err(explained)?);
    let stopped = gfarm.clone();
    let _stopped = order.scope.on_stop(move || stopped.stop());
    let sources = &expanded(&gfarm, sources)?;
    for source in sources {
        let of = (source, sources.len(), choice, together);
        let copied = one(order, &gfarm, of, target, outcome);
        let number = sources.len() + together.others;
        beside(order, (number, &source.to_string()), copied, outcome)?;
    }
    Ok(())
}

/// Copies the files of one source. The number beside the source counts all sources.
fn one(
    order: &Order<'_>,
    gfarm: &Arc<Gfarm>,
    (source, sources, choice, together): (&GfarmPath, usize, &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let root = remote_path(&source.path).map_err(start::of_session)?;
    let survey = survey(gfarm, &root).map_err(|trouble| told(source, &trouble))?;
    let nodes: Vec<Arc<Node>> = survey
        .nodes
        .iter()
        .map(|address| Node::new(gfarm.clone(), address.clone()).led_by(survey.led.clone()))
        .map(Arc::new)
        .collect();
    let session = daemons(order, &survey)?;
    let all = Nodes::new(&nodes, session.as_ref());
    let reached = all.reach(&survey);
    if order.plan.verbosity() > 0 {
        reached.iter().for_each(|one| say(Tone::Note, one));
    }
    let number = |node: usize| reached.iter().position(|one| one.node == node).map(ServerId);
    // A tree without bytes needs no node, and the census a place to stand on.
    let mut found = gfarm_census(&survey, reached.len().max(1), number);
    let kind = found
        .choose((&root, &root), choice)
        .map_err(|kind| failed(failure_kind(kind), format!("{source}: {}", unfit(kind))))?;
    let renamed = together.renamed(sources, choice.meant(&root));
    let streams = &order.streams();
    let (pass, name) = (choice.pass, source.to_string());
    let origin = choice.origin(&name);
    let arriving = Arriving { renamed, kind, pass, streams, origin };
    let landing =
        target.destination()?.landing((&root, &root), arriving).map_err(start::of_session)?;
    let mut plan = Plan::of(found, &landing);
    let origin = source.server.as_ref().map_or_else(String::new, ToString::to_string);
    together.claim(sources, &format!("gfarm://{origin}"), &mut plan);
    let servers: Vec<Arc<dyn Fetcher>> = reached.iter().map(|one| one.server.clone()).collect();
    let names: Vec<String> = reached.iter().map(|one| one.name.clone()).collect();
    let what = Fetching {
        servers: &servers,
        pools: &[],
        names: &names,
        session: all.session,
        plan: &plan,
        store: landing.store.clone(),
        taking: landing.taking,
        journal: landing.journal.as_ref(),
        direction: Direction::In,
        done: Done::default(),
        modes: order.modes(),
        redial: &|server: ServerId| all.again(reached.get(server.0)?),
        after_loss: "the others have taken over",
        remark: &|| all.metadata_away(),
    };
    bring(order, what, outcome)
}

/// What the sources mean: those that are patterns stand for all that matches them.
fn expanded(gfarm: &Gfarm, sources: &[GfarmPath]) -> Result<Vec<GfarmPath>> {
    let mut all = Vec::new();
    for source in sources {
        let root = remote_path(&source.path).map_err(start::of_session)?;
        let matching =
            in_store(gfarm, &root).map_err(|error| told(source, &Trouble::Refused(error.kind)))?;
        let server = || source.server.clone();
        all.extend(matching.into_iter().map(|path| GfarmPath {
            server: server(),
            path: path.as_bytes().to_vec(),
            ending: source.ending,
        }));
    }
    Ok(all)
}

/// The daemons on the nodes, if they are wanted.
fn daemons(order: &Order<'_>, survey: &Survey) -> Result<Option<Session>> {
    let Some(port) = order.plan.transport.gfarm_daemons.filter(|_| !survey.nodes.is_empty()) else {
        return Ok(None);
    };
    if survey.led.is_some() {
        // A daemon knows the files by their own paths only.
        say(Tone::Note, "the source is behind a symbolic link: it comes by Gfarm's own protocol");
        return Ok(None);
    }
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

/// The nodes of the file system that have files of the copy.
struct Nodes<'a> {
    nodes: &'a [Arc<Node>],
    /// Daemons on some of them.
    session: Option<&'a Session>,
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

impl<'a> Nodes<'a> {
    fn new(nodes: &'a [Arc<Node>], session: Option<&'a Session>) -> Self {
        let met = session.map(Session::met).unwrap_or_default();
        let daemons = met.into_iter().map(|met| met.address).collect();
        Self { nodes, session, daemons, away: Mutex::default() }
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
        let server = Arc::new(self.session?.client(daemon)?);
        let name = self.daemons[daemon.0].to_string();
        Some(ReachedNode { node, name, server, daemon: Some(daemon) })
    }

    fn by_gfarm(&self, node: usize) -> ReachedNode {
        let name = self.nodes[node].address().to_string();
        ReachedNode { node, name, server: self.nodes[node].clone(), daemon: None }
    }

    fn metadata_away(&self) -> Option<String> {
        let away = self.away.lock().unwrap_or_else(PoisonError::into_inner).clone();
        away.map(|text| format!("{text}; no node sends without it"))
    }

    /// Connects to a node again: to its daemon, or without it if the daemon does not come back.
    fn again(&self, reached: &ReachedNode) -> Option<Arc<dyn Fetcher>> {
        if let Some((session, daemon)) = self.session.zip(reached.daemon)
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

/// Why the file system cannot be used.
fn explained(error: ConnectGfarm) -> Error {
    let remedy = error.remedy();
    let kind = if error.is_worth_retrying() { FailureKind::Busy } else { FailureKind::Denied };
    let error =
        std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source())
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(": ");
    with_remedy(failed(kind, error), remedy)
}

/// Why nothing is known of a source.
fn told(source: &GfarmPath, trouble: &Trouble) -> Error {
    failed(failure_kind(trouble.kind()), format!("{source}: {trouble}"))
}
