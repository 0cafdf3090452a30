//! Daemons as sources and as the target.

use super::order::written;
use super::target::{Place, TargetEnd};
use super::{Order, Outcome, follow, start};
use anyhow::{Context, Result};
use hikyaku_mover::{Choice, Direction, Download, SessionError, Together, Upload, remote_path};
use hikyaku_reach::dial::{Ending, Servers};
use hikyaku_store::StorePath;
use std::path::PathBuf;

/// Copies what the servers have at these paths.
pub(super) fn copy(
    order: &Order<'_>,
    (sources, choice, together): (&[Servers], &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let first = sources.first().context("no source")?;
    let named: Vec<(StorePath, Ending)> = (sources.iter())
        .map(|source| Ok((remote_path(&source.path)?, source.ending)))
        .collect::<Result<_, SessionError>>()
        .map_err(start::of_session)?;
    let connected = start::connect(order, first)?;
    let session = &connected.session;
    let stopped = session.clone();
    let _stopped = order.scope.on_stop(move || stopped.close("stopped by the user"));
    let (mut paths, mut dirs, mut contents) = (Vec::new(), Vec::new(), Vec::new());
    for (path, ending) in &named {
        let all = session.matching(path).map_err(start::of_session)?;
        dirs.extend(all.iter().filter(|_| *ending != Ending::Name).cloned());
        contents.extend(all.iter().filter(|_| *ending == Ending::Contents).cloned());
        paths.extend(all);
    }
    let choice = &Choice { dirs: &dirs, contents: &contents, ..*choice };
    let destination = target.destination()?;
    let watch = outcome.watch(&session.names(), Some(session), Direction::In);
    let meter = outcome.meter(session.met().len(), watch.as_ref());
    let done = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        session.download(&Download {
            sources: &paths,
            target: destination,
            choice,
            together,
            modes: order.modes(),
            streams: &order.streams(),
            meter: &meter,
            stop,
        })
    })?;
    let mut done = done.map_err(start::of_session)?;
    let losses = std::mem::take(&mut done.losses);
    outcome.end(done, Direction::In);
    order.note(&losses);
    Ok(())
}

/// Copies files of this machine to daemons: each whole to one of them.
pub(super) fn upload(
    order: &Order<'_>,
    (sources, choice, together): (&[PathBuf], &Choice<'_>, Together<'_>),
    target: &Servers,
    outcome: &mut Outcome,
) -> Result<()> {
    let path = remote_path(&target.path).map_err(start::of_session)?;
    let connected = start::connect(order, target)?;
    let session = &connected.session;
    let watch = outcome.watch(&session.names(), Some(session), Direction::Out);
    let meter = outcome.meter(session.met().len(), watch.as_ref());
    let dirs = if target.ending == Ending::Name { Vec::new() } else { vec![path.clone()] };
    let choice = &Choice { dirs: &dirs, ..*choice };
    let done = follow(order, (&meter, watch.as_ref()), outcome, |stop| {
        session.upload(&Upload {
            sources,
            target: &path,
            choice,
            together,
            modes: order.modes(),
            meter: &meter,
            stop,
        })
    })?;
    let mut done = done.map_err(start::of_session)?;
    let losses = std::mem::take(&mut done.losses);
    outcome.end(done, Direction::Out);
    order.note(&losses);
    Ok(())
}

/// A place on daemons.
pub(super) fn target(order: &Order<'_>, servers: &Servers) -> Result<Place> {
    let path = remote_path(&servers.path).map_err(start::of_session)?;
    let connected = start::connect(order, servers)?;
    let place = connected.session.place(&path, written(servers.ending));
    let (store, target) = place.map_err(start::of_session)?;
    let session = connected.session.clone();
    let stopped = order.scope.on_stop(move || session.close("stopped by the user"));
    let name = servers.to_string();
    Ok(Place::new(store, target, name).stopped_by(stopped).over(connected))
}
