//! Copies from a Gfarm file system, from the nodes that have the files: by Gfarm's own protocol, or by daemons on them.

use super::log::Watch;
use super::{Fleet, Outcome, Place, Reached, check_recursive, kind_of, one, umask};
use crate::args::CopyArgs;
use crate::location::GfarmPath;
use crate::log::Direction;
use crate::outcome::failed;
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{Scope, with_remedy};
use hikyaku_fan::{GfarmNode, Server, ServerId, gfarm_census};
use hikyaku_reach::dial::Address;
use hikyaku_reach::dial::Servers;
use hikyaku_store::StorePath;
use hikyaku_store_gfarm::{ConnectGfarm, Gfarm, Handles, Node, Survey, Trouble, survey};
use hikyaku_transfer::FailureKind;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

/// Copies what the file system has at these paths to `target`.
pub(super) fn all(
    args: &CopyArgs,
    scope: &Scope,
    (sources, target): (&[GfarmPath], &Path),
    outcome: &mut Outcome,
) -> Result<()> {
    let options = args.options()?;
    let first = sources.first().context("no source")?;
    ensure!(
        sources.iter().all(|source| source.server == first.server),
        "sources in several Gfarm file systems go into several commands"
    );
    let gfarm = Arc::new(Gfarm::connect(first.server.clone()).map_err(explained)?);
    for source in sources {
        let root = StorePath::new(&source.path)
            .map_err(|error| failed(FailureKind::BadName, format!("{source}: {error}")))?;
        let mut survey = survey(&gfarm, &root).map_err(|trouble| told(source, &trouble))?;
        let handles = Arc::new(std::mem::take(&mut survey.handles));
        let nodes: Vec<Arc<Node>> = survey
            .nodes
            .iter()
            .map(|address| Arc::new(Node::new(gfarm.clone(), address.clone())))
            .collect();
        let fleet = daemons(args, &survey)?;
        let all = Nodes { nodes: &nodes, handles: &handles, fleet: fleet.as_ref() };
        let reached = all.reach(&survey);
        if args.verbosity() > 0 {
            reached.iter().for_each(|one| eprintln!("hikyaku: {one}"));
        }
        let number = |node: usize| reached.iter().position(|one| one.node == node).map(ServerId);
        // A tree without bytes needs no node, and the census a place to stand on.
        let found = gfarm_census(&survey, reached.len().max(1), number);
        check_recursive(&found, (&root, options.recursive), source)?;
        let servers: Vec<Server> = reached.iter().map(|one| one.server.clone()).collect();
        let names: Vec<String> = reached.iter().map(|one| one.name.clone()).collect();
        let again = |server: ServerId| all.again(reached.get(server.0)?);
        let place = Place::new(&root, target, sources.len() > 1)?;
        let umask = if options.preserve { 0 } else { umask() };
        let recorder = outcome.recorder.as_ref();
        let watch = Watch::new(recorder, &names, fleet.as_ref(), Direction::In);
        let reached = Reached { servers: &servers, names: &names, again: &again, watch };
        one((args, scope), &reached, &found, (place, umask), outcome)?;
    }
    Ok(())
}

/// The daemons on the nodes, if they are wanted.
fn daemons(args: &CopyArgs, survey: &Survey) -> Result<Option<Fleet>> {
    let Some(port) = args.gfarm().daemons().filter(|_| !survey.nodes.is_empty()) else {
        return Ok(None);
    };
    let address = |node: &hikyaku_gfarm::Address| Address { host: node.host.clone(), port };
    let servers = survey.nodes.iter().map(address).collect();
    let fleet = Fleet::connect(args, &Servers { servers, path: Vec::new(), keys: Vec::new() });
    let remedy = "start hikyaku serve --gfarm on the nodes, or leave out --gfarm-daemons";
    fleet.map(Some).map_err(|error| {
        let has_remedy = error.chain().any(|link| link.to_string().starts_with("try: "));
        with_remedy(error, (!has_remedy).then_some(remedy))
    })
}

/// The nodes of the file system that have files of the copy.
struct Nodes<'a> {
    nodes: &'a [Arc<Node>],
    handles: &'a Arc<Handles>,
    /// Daemons on some of them.
    fleet: Option<&'a Fleet>,
}

/// A node that can be reached.
struct ReachedNode {
    /// Its number.
    node: usize,
    name: String,
    server: Server,
    /// The number of its daemon in the fleet.
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

impl Nodes<'_> {
    /// The nodes that can be reached, by their daemons or by Gfarm's protocol. The others are told.
    fn reach(&self, survey: &Survey) -> Vec<ReachedNode> {
        let reached: Vec<Result<ReachedNode, Trouble>> = thread::scope(|scope| {
            let reach = |node| scope.spawn(move || self.reach_one(node));
            let all: Vec<_> = (0..self.nodes.len()).map(reach).collect();
            let panicked = |_| Err(Trouble::Away("a thread panicked".to_owned()));
            all.into_iter().map(|one| one.join().unwrap_or_else(panicked)).collect()
        });
        let told = survey.nodes.iter().zip(reached).filter_map(|(address, reached)| {
            reached.inspect_err(|trouble| eprintln!("hikyaku: {address}: {trouble}")).ok()
        });
        told.collect()
    }

    fn reach_one(&self, node: usize) -> Result<ReachedNode, Trouble> {
        let host = &self.nodes[node].address().host;
        let of_host = |fleet: &Fleet| fleet.addresses.iter().position(|at| at.host == *host);
        let daemon = self.fleet.and_then(|fleet| Some((fleet, of_host(fleet)?)));
        if let Some((fleet, at)) = daemon {
            let (name, server) =
                (fleet.addresses[at].to_string(), fleet.clients[at].clone().into());
            return Ok(ReachedNode { node, name, server, daemon: Some(ServerId(at)) });
        }
        self.nodes[node].probe()?;
        let name = self.nodes[node].address().to_string();
        Ok(ReachedNode { node, name, server: self.direct(node), daemon: None })
    }

    fn direct(&self, node: usize) -> Server {
        let (node, handles) = (self.nodes[node].clone(), self.handles.clone());
        Server::Gfarm(GfarmNode { node, handles })
    }

    /// Connects to a node again: to its daemon, or without it if the daemon does not come back.
    fn again(&self, reached: &ReachedNode) -> Option<Server> {
        if let Some((fleet, daemon)) = self.fleet.zip(reached.daemon)
            && let Some(client) = fleet.again(daemon)
        {
            return Some(client.into());
        }
        self.nodes[reached.node].probe().ok().map(|()| self.direct(reached.node))
    }
}

/// Why the file system cannot be used.
pub(super) fn explained(error: ConnectGfarm) -> Error {
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
    failed(kind_of(trouble.kind()), format!("{source}: {trouble}"))
}
