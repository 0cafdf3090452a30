//! Copies from a Gfarm file system, straight from the nodes that have the files.

use super::{Outcome, Place, Reached, check_recursive, kind_of, one, umask};
use crate::args::CopyArgs;
use crate::location::GfarmPath;
use crate::outcome::failed;
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{Scope, with_remedy};
use hikyaku_fan::{GfarmNode, Server, ServerId, gfarm_census};
use hikyaku_store::StorePath;
use hikyaku_store_gfarm::{ConnectGfarm, Gfarm, Node, Survey, Trouble, survey};
use hikyaku_transfer::FailureKind;
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
        let reached = probe(&nodes, &survey);
        let number = |node: usize| reached.iter().position(|at| *at == node).map(ServerId);
        // A tree without bytes needs no node, and the census a place to stand on.
        let found = gfarm_census(&survey, reached.len().max(1), number);
        check_recursive(&found, (&root, options.recursive), source)?;
        let of = |node: &usize| {
            let (node, handles) = (nodes[*node].clone(), handles.clone());
            Server::Gfarm(GfarmNode { node, handles })
        };
        let servers: Vec<Server> = reached.iter().map(of).collect();
        let names: Vec<String> =
            reached.iter().map(|node| survey.nodes[*node].to_string()).collect();
        let again = |server: ServerId| {
            let node = reached.get(server.0)?;
            nodes[*node].probe().ok().map(|()| of(node))
        };
        let place = Place::new(&root, target, sources.len() > 1)?;
        let umask = if options.preserve { 0 } else { umask() };
        let reached = Reached { servers: &servers, names: &names, again: &again };
        one((args, scope), &reached, &found, (place, umask), outcome)?;
    }
    Ok(())
}

/// The nodes that can be reached. The others are told.
fn probe(nodes: &[Arc<Node>], survey: &Survey) -> Vec<usize> {
    let probed: Vec<Option<Trouble>> = thread::scope(|scope| {
        let probes: Vec<_> = nodes.iter().map(|node| scope.spawn(|| node.probe().err())).collect();
        let panicked = |_| Some(Trouble::Away("a thread panicked".to_owned()));
        probes.into_iter().map(|probe| probe.join().unwrap_or_else(panicked)).collect()
    });
    for (address, trouble) in survey.nodes.iter().zip(&probed) {
        if let Some(trouble) = trouble {
            eprintln!("hikyaku: {address}: {trouble}");
        }
    }
    (0..nodes.len()).filter(|node| probed[*node].is_none()).collect()
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
    failed(kind_of(trouble.kind()), format!("{source}: {trouble}"))
}
