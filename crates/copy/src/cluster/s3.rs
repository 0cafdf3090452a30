//! Copies from and into buckets of S3-compatible services, over several connections at once.

use super::beside::beside;
use super::direct::{Fetching, down, up};
use super::{Order, Outcome, start};
use crate::outcome::failed;
use crate::plan::CopyPlan;
use anyhow::{Error, Result};
use hikyaku_console::{Tone, begun, say, with_remedy};
use hikyaku_fan::{
    Arriving, Claims, Done, Landing, LeftOut, Modes, Plan, Renamed, ServerId, SessionError, Target,
    Why, failure_kind, remote_path, store_census, unfit,
};
use hikyaku_reach::dial::Ending;
use hikyaku_reach::tcp::Pipes;
use hikyaku_store::{End, ErrorKind, Kind, Led, Store, StorePath, fetchers};
use hikyaku_store_s3::{Meant, S3, S3Error, S3Options, Times};
use hikyaku_stores::S3Path;
use hikyaku_transfer::Depth;
use hikyaku_units::counted;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copies what buckets have at these paths to `target`.
pub(super) fn all(
    order: &Order<'_>,
    (sources, target): (&[S3Path], &Path),
    outcome: &mut Outcome,
) -> Result<()> {
    let mut bucket: Option<(String, S3)> = None;
    let mut claims = Claims::default();
    for source in sources {
        let store = match &bucket {
            Some((name, store)) if *name == source.bucket => store.clone(),
            _ => connect(order.plan, source)?,
        };
        bucket = Some((source.bucket.clone(), store.clone()));
        let stopped = store.clone();
        let _stopped = order.scope.on_stop(move || stopped.stop());
        let number = sources.len();
        let copied = one(order, (&store, source), (target, number, &mut claims), outcome);
        beside(order, (number, &source.to_string()), copied, outcome)?;
    }
    Ok(())
}

/// Fetches what one source means.
fn one(
    order: &Order<'_>,
    (store, source): (&S3, &S3Path),
    (target, sources, claims): (&Path, usize, &mut Claims),
    outcome: &mut Outcome,
) -> Result<()> {
    let (plan, choice) = (order.plan, order.choice());
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
        .choose((&root, &root), &choice)
        .map_err(|kind| failed(failure_kind(kind), format!("{source}: {}", unfit(kind))))?;
    let shared: Arc<dyn Store> = Arc::new(store.clone());
    let servers = fetchers(&shared, connections)
        .map_err(|error| failed(failure_kind(error.kind), format!("{source}: {}", error.kind)))?;
    let streams = &order.streams();
    let renamed = Renamed::of(sources, choice.meant(&root));
    let arriving = Arriving { renamed, kind, pass: choice.pass, streams };
    let landing = Landing::new((&root, &root), target, arriving).map_err(start::of_session)?;
    let mut wanted = Plan::of(found, &landing);
    claims.take(&source.bucket, &mut wanted);
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
        landing: &landing,
        // A bucket has none.
        modes: Modes::Usual,
        // One that is gone is asked again as it is.
        redial: &|_: ServerId| None,
        after_loss: "it was tried again",
        remark: &whole_files,
    };
    down(order, &what, outcome)
}

/// Copies these files and directories into a bucket.
pub(super) fn upload(
    order: &Order<'_>,
    (sources, target): (&[PathBuf], &S3Path),
    outcome: &mut Outcome,
) -> Result<()> {
    let choice = order.choice();
    let root = remote_path(&target.path).map_err(start::of_session)?;
    let mut done = Done::default();
    let sources = hikyaku_fan::Sources::find(sources, &choice, &mut done.failed)
        .map_err(start::of_session)?;
    let store = connect(order.plan, target)?;
    let stopped = store.clone();
    let _stopped = order.scope.on_stop(move || stopped.stop());
    let shown = target.to_string();
    let look = |path: &StorePath| match store.look(path) {
        Ok(found) => Ok(vec![Some(found.kind)]),
        // A directory of a bucket is there as soon as something is in it.
        Err(error) if error.kind == ErrorKind::NotFound => {
            let is_dir = *path != root || target.ending != Ending::Name;
            Ok(vec![is_dir.then_some(Kind::Dir)])
        }
        Err(error) => {
            let text = format!("{shown}: {}", error.kind);
            Err(SessionError::Refused { kind: error.kind.into(), text })
        }
    };
    // A bucket has no links.
    let led = Led { path: root.clone(), end: End::There };
    let mut plan = Target::find(&look, &shown, (order.written(&root), led))
        .and_then(|target| target.plan(&sources, &choice, &mut done.failed))
        .map_err(start::of_session)?;
    implied(&mut plan);
    up(order, (&store, &shown), (&sources, &plan), done, outcome)
}

/// Leaves out directories that something is in: only an empty one needs an object that marks it.
fn implied(plan: &mut Plan) {
    let files = plan.files.iter().filter_map(|file| file.to.split());
    let dirs = plan.dirs.iter().filter_map(|(path, _)| path.split());
    let filled: BTreeSet<StorePath> = files.chain(dirs).map(|(dir, _)| dir).collect();
    plan.dirs.retain(|(path, _)| !filled.contains(path));
}

/// Connections to the server of a bucket, unless `--pipes` says otherwise. On a path of 100 ms one carries some 100 to 500
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
