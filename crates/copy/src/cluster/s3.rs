//! Copies from and into buckets of S3-compatible services, over several connections at once.

use super::beside::beside;
use super::direct::{Fetching, bring};
use super::order::written;
use super::target::{Place, TargetEnd};
use super::{Order, Outcome, start};
use crate::outcome::failed;
use crate::plan::CopyPlan;
use anyhow::{Error, Result};
use hikyaku_console::{Tone, begun, say, with_remedy};
use hikyaku_fan::{
    Arriving, Choice, Direction, Done, LeftOut, Modes, Plan, ServerId, SessionError, Target,
    Together, Why, failure_kind, remote_path, store_census, unfit,
};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::tcp::Pipes;
use hikyaku_store::{End, ErrorKind, Kind, Led, Store, StorePath, fetchers};
use hikyaku_store_s3::{Meant, S3, S3Error, S3Options, Times};
use hikyaku_stores::S3Path;
use hikyaku_transfer::Depth;
use hikyaku_units::counted;
use std::sync::Arc;

/// Copies what a bucket has at these paths.
pub(super) fn copy(
    order: &Order<'_>,
    (sources, choice, together): (&[S3Path], &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let Some(first) = sources.first() else { return Ok(()) };
    let store = connect(order.plan, first)?;
    let stopped = store.clone();
    let _stopped = order.scope.on_stop(move || stopped.stop());
    for source in sources {
        let of = (source, sources.len(), choice, together);
        let copied = one(order, &store, of, target, outcome);
        let number = sources.len() + together.others;
        beside(order, (number, &source.to_string()), copied, outcome)?;
    }
    Ok(())
}

/// Copies what one source means; there are so many.
fn one(
    order: &Order<'_>,
    store: &S3,
    (source, sources, choice, together): (&S3Path, usize, &Choice<'_>, Together<'_>),
    target: &TargetEnd<'_>,
    outcome: &mut Outcome,
) -> Result<()> {
    let plan = order.plan;
    let root = remote_path(&source.path).map_err(start::of_session)?;
    let times = if order.modes() == Modes::Kept { Times::Noted } else { Times::Written };
    let meant = match choice.depth {
        _ if source.ending != Ending::Name => Meant::Directory,
        Depth::Tree => Meant::Either,
        Depth::File => Meant::Object,
    };
    let survey = store.survey(&root, (meant, times)).map_err(|error| explained(&error, source))?;
    let connections = connections(plan) as usize;
    let mut found = store_census(&survey.all, connections);
    let doubles = survey.doubles.iter().cloned();
    found.left_out.extend(doubles.map(|path| LeftOut { path, why: Why::Double }));
    let kind = found
        .choose((&root, &root), choice)
        .map_err(|kind| failed(failure_kind(kind), format!("{source}: {}", unfit(kind))))?;
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let servers = fetchers(&shared, connections)
        .map_err(|error| failed(failure_kind(error.kind), format!("{source}: {}", error.kind)))?;
    let streams = &order.streams();
    let renamed = together.renamed(sources, choice.meant(&root));
    let (pass, name) = (choice.pass, source.to_string());
    let origin = choice.origin(&name);
    let arriving = Arriving { renamed, kind, pass, streams, origin };
    let landing =
        target.destination()?.landing((&root, &root), arriving).map_err(start::of_session)?;
    let mut wanted = Plan::of(found, &landing);
    together.claim(sources, &format!("s3://{}", source.bucket), &mut wanted);
    let connection = |number: usize| format!("s3://{} by connection {}", source.bucket, number + 1);
    let names: Vec<String> = (0..connections).map(connection).collect();
    let whole_files = || {
        let is_told = store.ignores_ranges() && !plan.is_quiet();
        let url = store.url();
        is_told.then(|| {
            format!(
                "{url}: the server sends a whole file for each part of it that is asked for, which is slow"
            )
        })
    };
    let what = Fetching {
        servers: &servers,
        names: &names,
        session: None,
        plan: &wanted,
        store: landing.store.clone(),
        taking: landing.taking,
        journal: landing.journal.as_ref(),
        direction: Direction::In,
        done: Done::default(),
        // A bucket has none.
        modes: Modes::Usual,
        // One that is gone is asked again as it is.
        redial: &|_: ServerId| None,
        after_loss: "it was tried again",
        remark: &whole_files,
    };
    bring(order, what, outcome)
}

/// A place in a bucket.
pub(super) fn target(order: &Order<'_>, path: &S3Path) -> Result<Place> {
    let root = remote_path(&path.path).map_err(start::of_session)?;
    let store = connect(order.plan, path)?;
    let stopped = store.clone();
    let stopped = order.scope.on_stop(move || stopped.stop());
    let name = path.to_string();
    let look = |at: &StorePath| match store.look(at) {
        Ok(found) => Ok(vec![Some(found.kind)]),
        // A directory of a bucket is there as soon as something is in it.
        Err(error) if error.kind == ErrorKind::NotFound => {
            let is_dir = *at != root || path.ending != Ending::Name;
            Ok(vec![is_dir.then_some(Kind::Dir)])
        }
        Err(error) => {
            let text = format!("{name}: {}", error.kind);
            Err(SessionError::Refused { kind: error.kind.into(), text })
        }
    };
    // A bucket has no links.
    let led = Led { path: root.clone(), end: End::There };
    let target = Target::find(&look, &name, (written(path.ending), led));
    let target = target.map_err(start::of_session)?.with_implied_dirs();
    Ok(Place::new(Arc::new(store), target, name).stopped_by(stopped))
}

/// Connections to the server of a bucket, unless `--connections` says otherwise. On a path of 100 ms one carries some 100 to 500
/// Mbit/s, so that sixteen fill a few Gbit/s.
const CONNECTIONS: u32 = 16;

/// Connections to the server of a bucket.
const fn connections(plan: &CopyPlan) -> u32 {
    match plan.transport.way.pipes {
        Pipes::Fixed(n) => n,
        Pipes::Auto => CONNECTIONS,
    }
}

fn connect(plan: &CopyPlan, path: &S3Path) -> Result<S3> {
    let options = S3Options {
        endpoint: plan.transport.endpoint.clone(),
        uploads: connections(plan),
        recorded: begun(),
        ..S3Options::default()
    };
    let store = S3::connect(&path.bucket, &options).map_err(|error| explained(&error, path))?;
    if plan.verbosity() > 0 {
        let connections = counted(connections(plan), "connection");
        say(Tone::Note, format_args!("{}, up to {connections}", store.url()));
    }
    let is_near = ["http://127.", "http://localhost", "http://[::1]"];
    if store.url().starts_with("http://")
        && !is_near.iter().any(|near| store.url().starts_with(near))
        && !plan.is_quiet()
    {
        say(
            Tone::Warning,
            format_args!("{}: the data are not encrypted on their way", store.url()),
        );
    }
    Ok(store)
}

/// Why a bucket cannot be used.
fn explained(error: &S3Error, path: &S3Path) -> Error {
    let text = format!("{path}: {error}");
    with_remedy(failed(failure_kind(error.kind()), text), error.remedy())
}
