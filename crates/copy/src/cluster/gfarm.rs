//! Copies from a Gfarm file system, from the nodes that have the files: by Gfarm's own protocol, or by daemons on them; and
//! copies into one.

use super::log::Watch;
use super::upload::{check_options, older};
use super::{Outcome, follow, modes, start, trees};
use crate::args::CopyArgs;
use crate::location::GfarmPath;
use crate::log::Direction;
use crate::outcome::failed;
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{Scope, with_remedy};
use hikyaku_fan::{
    Census, DepositJob, Done, GfarmNode, Job, Landing, Meter, Modes, Renamed, Server, ServerId,
    Session, SessionError, Target, deposit, failure_kind, fetch, gfarm_census, remote_path, umask,
};
use hikyaku_reach::dial::{Address, Servers};
use hikyaku_store::{ErrorKind, Store, StorePath};
use hikyaku_store_gfarm::{ConnectGfarm, Gfarm, Handles, Node, Survey, Trouble, survey};
use hikyaku_transfer::FailureKind;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Files whose nodes are all gone are waited for so long: a node is tried again after 5 and 15 s.
const GONE_MAX: Duration = Duration::from_secs(20);

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
        let root = remote_path(&source.path).map_err(start::of_session)?;
        let mut survey = survey(&gfarm, &root).map_err(|trouble| told(source, &trouble))?;
        let handles = Arc::new(std::mem::take(&mut survey.handles));
        let nodes: Vec<Arc<Node>> = survey
            .nodes
            .iter()
            .map(|address| Arc::new(Node::new(gfarm.clone(), address.clone())))
            .collect();
        let session = daemons(args, &survey)?;
        let all = Nodes::new(&nodes, &handles, session.as_ref());
        let reached = all.reach(&survey);
        if args.verbosity() > 0 {
            reached.iter().for_each(|one| eprintln!("hikyaku: {one}"));
        }
        let number = |node: usize| reached.iter().position(|one| one.node == node).map(ServerId);
        // A tree without bytes needs no node, and the census a place to stand on.
        let found = gfarm_census(&survey, reached.len().max(1), number);
        found.check_trees(&root, trees(&options)).map_err(|kind| {
            let text = format!("{source}: is a directory, and -r was not given");
            failed(failure_kind(kind), text)
        })?;
        let renamed = if sources.len() > 1 { Renamed::Never } else { Renamed::Allowed };
        let landing = Landing::new(&root, target, renamed).map_err(start::of_session)?;
        let modes = modes(&options);
        one((args, scope), (&all, &reached), &found, (&landing, modes), outcome)?;
    }
    Ok(())
}

/// Fetches what one source means.
fn one(
    (args, scope): (&CopyArgs, &Scope),
    (all, reached): (&Nodes<'_>, &[ReachedNode]),
    found: &Census,
    (landing, modes): (&Landing, Modes),
    outcome: &mut Outcome,
) -> Result<()> {
    let servers: Vec<Server> = reached.iter().map(|one| one.server.clone()).collect();
    let names: Vec<String> = reached.iter().map(|one| one.name.clone()).collect();
    let watch = outcome.watch(&names, all.session, Direction::In);
    let meter = Meter::new(servers.len()).heard_by(watch.as_ref().map(Watch::on_file));
    meter.add_found(found.files.len(), found.bytes());
    meter.set_found();
    let (fetched, mut shown) = follow((args, scope), (&meter, watch.as_ref()), outcome, |stop| {
        fetch(&Job {
            servers: &servers,
            redial: &|server: ServerId| all.again(reached.get(server.0)?),
            census: found,
            store: landing.store.clone(),
            place: &|path| landing.of(path),
            patience: GONE_MAX,
            umask: if modes == Modes::Kept { 0 } else { umask() },
            parameters: args.parameters(),
            meter: &meter,
            stop,
        })
    })?;
    let fetched = fetched.context("cannot start a thread")?;
    for (server, error) in &fetched.lost {
        let name = &reached[server.0].name;
        shown.board.remark(&format!("{name}: {error}; the others have taken over"));
    }
    let mut done = Done::default();
    done.add_fetched(found, fetched);
    shown.end(&done, Direction::In, outcome)
}

/// Copies these files and directories into a Gfarm file system.
pub(super) fn upload(
    args: &CopyArgs,
    scope: &Scope,
    (sources, target): (&[PathBuf], &GfarmPath),
    outcome: &mut Outcome,
) -> Result<()> {
    let options = args.options()?;
    check_options(args, &options)?;
    let root = remote_path(&target.path).map_err(start::of_session)?;
    let mut done = Done::default();
    let sources = hikyaku_fan::Sources::find(sources, trees(&options), &mut done.failed)
        .map_err(start::of_session)?;
    let store = Gfarm::connect(target.server.clone()).map_err(explained)?;
    let shown = target.to_string();
    let look = |path: &StorePath| match store.look(path) {
        Ok(found) => Ok(vec![Some(found.kind)]),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(vec![None]),
        Err(error) => {
            let text = format!("{shown}: {}", error.kind);
            Err(SessionError::Refused { kind: error.kind.into(), text })
        }
    };
    let plan = Target::find(&look, &shown, root)
        .and_then(|target| target.plan(&sources, &mut done.failed))
        .map_err(start::of_session)?;
    let watch = outcome.watch(std::slice::from_ref(&shown), None, Direction::Out);
    let meter = Meter::new(0).heard_by(watch.as_ref().map(Watch::on_file));
    meter.add_found(plan.files.len(), plan.bytes());
    meter.set_found();
    let (uploaded, display) = follow((args, scope), (&meter, watch.as_ref()), outcome, |stop| {
        deposit(&DepositJob {
            store: &store,
            plan: &plan,
            older: older(&options),
            umask: if options.preserve { 0 } else { umask() },
            rate: args.parameters().client.rate,
            meter: &meter,
            stop,
        })
    })?;
    done.add_uploaded(&plan, uploaded.context("cannot start a thread")?);
    display.end(&done, Direction::Out, outcome)
}

/// The daemons on the nodes, if they are wanted.
fn daemons(args: &CopyArgs, survey: &Survey) -> Result<Option<Session>> {
    let Some(port) = args.gfarm().daemons().filter(|_| !survey.nodes.is_empty()) else {
        return Ok(None);
    };
    let address = |node: &hikyaku_gfarm::Address| Address { host: node.host.clone(), port };
    let servers = survey.nodes.iter().map(address).collect();
    let servers = Servers { servers, path: Vec::new(), keys: Vec::new() };
    let remedy = "start hikyaku serve --gfarm on the nodes, or leave out --gfarm-daemons";
    start::session(args, &servers).map(Some).map_err(|error| {
        let has_remedy = error.chain().any(|link| link.to_string().starts_with("try: "));
        with_remedy(error, (!has_remedy).then_some(remedy))
    })
}

/// The nodes of the file system that have files of the copy.
struct Nodes<'a> {
    nodes: &'a [Arc<Node>],
    handles: &'a Arc<Handles>,
    /// Daemons on some of them.
    session: Option<&'a Session>,
    /// Where those listen, in the order of the session.
    daemons: Vec<Address>,
}

/// A node that can be reached.
struct ReachedNode {
    /// Its number.
    node: usize,
    name: String,
    server: Server,
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
    fn new(
        nodes: &'a [Arc<Node>],
        handles: &'a Arc<Handles>,
        session: Option<&'a Session>,
    ) -> Self {
        let met = session.map(Session::met).unwrap_or_default();
        let daemons = met.into_iter().map(|met| met.address).collect();
        Self { nodes, handles, session, daemons }
    }

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
        let daemon = self.daemons.iter().position(|at| at.host == *host).map(ServerId);
        let client = daemon.and_then(|daemon| self.session?.client(daemon));
        if let Some((daemon, client)) = daemon.zip(client) {
            let (name, server) = (self.daemons[daemon.0].to_string(), client.into());
            return Ok(ReachedNode { node, name, server, daemon: Some(daemon) });
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
        if let Some((session, daemon)) = self.session.zip(reached.daemon)
            && let Some(client) = session.again(daemon)
        {
            return Some(client.into());
        }
        self.nodes[reached.node].probe().ok().map(|()| self.direct(reached.node))
    }
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
