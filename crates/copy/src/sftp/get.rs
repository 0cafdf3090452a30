//! From the server to this machine, by the mover: the server is a store whose files are fetched over its one connection.
//!
//! Every name that the server sends is used beneath the target only, and never through a symbolic link.

use super::Run;
use super::fault::{Trouble, lost};
use super::remote::{expanded, resolved, split};
use crate::cluster::of_session;
use crate::outcome::of_new_tree;
use anyhow::{Context, Result};
use hikyaku_console::Kept;
use hikyaku_fs::{Name, Patience, Shown};
use hikyaku_job::{Choice as Patterns, End};
use hikyaku_mover::{
    Choice, Destination, Failed, FetchError, Fetched, Hashes, Job, Kind, Landed, LeftOut, Meter,
    Modes, NamedSource, Parameters, Plan, Same, Sources, Streams, Taking, Times, Together, Why,
    fetch,
};
use hikyaku_sftp::Client;
use hikyaku_store::{ErrorKind, Fetcher, Last, Store, fetchers};
use hikyaku_store_sftp::Sftp;
use hikyaku_transfer::{Failure, FailureKind, Links, OtherSources, Pass};
use hikyaku_units::Rate;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Copies them.
pub(super) fn get(run: &Run<'_>, sources: &[Vec<u8>], target: &Path) -> Result<()> {
    let (options, client) = (run.options, &run.server.client);
    // All that waits for the server ends with the copy. The session of another caller goes on.
    let (stop, ended) = (Arc::new(AtomicBool::new(false)), run.server.own_client().cloned());
    let told = stop.clone();
    let _stopped = run.scope.on_stop(move || {
        told.store(true, Ordering::Relaxed);
        ended.iter().for_each(Client::abandon);
    });
    let store = Sftp::of_dir(client.clone(), b"/")?;
    let (named, missing) = named(run, &store, sources)?;
    let store: Arc<dyn Store> = Arc::new(store);
    let patterns = Patterns::new(&options.patterns)?;
    let leaves_out = |path: &[u8], is_dir| patterns.leaves_out(path, is_dir);
    let choice = &Choice {
        depth: options.rules.depth,
        leaves_out: &leaves_out,
        listed: &options.files,
        dirs: &[],
        contents: &[],
        named_links: options.rules.links,
        links: options.rules.links,
        existing: options.rules.existing,
        pass: options.rules.pass,
        resume: Some(options.rules.resume),
        writing: (&options.rules).into(),
        hashes: Hashes::Dropped,
    };
    let mut failed = Vec::new();
    let found =
        Sources::in_store((store.clone(), run.origin.to_owned()), &named, choice, &mut failed);
    tell_all(run, &failed, b"")?;
    if found.count() == 0 {
        return run
            .is_stopped()
            .then_some(Kept::Unrecorded)
            .map_or(Ok(()), |kept| Err(kept.into()));
    }
    let claims = Mutex::default();
    let missing = missing + named.len() - found.count();
    let others = missing + usize::from(options.other_sources == OtherSources::Some);
    let together = Together { others, claims: &claims };
    let scope = run.scope.clone();
    let streams = Streams::Written(Patience::new(move || scope.stop_cause().is_none()));
    let mut failed = Vec::new();
    let landed = found.land(&Destination::Here(target), (choice, together, &streams), &mut failed);
    let landed = landed.map_err(of_session)?;
    tell_all(run, &failed, b"/")?;
    let servers = fetchers(&store, 1).context("cannot read from the server")?;
    for one in landed {
        land(run, &servers, one, &stop)?;
    }
    Ok(())
}

/// The text of a connection that was lost while the sources were looked at.
const LOST: &str = "the connection is lost";

/// Reports sources that cannot be copied, each by its path with `root` before it.
fn tell_all(run: &Run<'_>, failed: &[Failed], root: &[u8]) -> Result<()> {
    for one in failed {
        let kind = one.kind.as_file();
        if kind == FailureKind::Busy && !run.is_stopped() {
            return Err(lost(LOST));
        }
        tell(run, End::There, &[root, &one.path].concat(), kind, &one.text);
    }
    Ok(())
}

/// The sources by their paths on the server, and the number of those that have none.
fn named(run: &Run<'_>, store: &Sftp, sources: &[Vec<u8>]) -> Result<(Vec<NamedSource>, usize)> {
    let last = match run.options.rules.links {
        Links::Followed => Last::Followed,
        Links::Kept => Last::Kept,
    };
    let (mut named, mut failed) = (Vec::new(), 0);
    for source in sources {
        let all = expanded(run, &resolved(source)?).map_err(Trouble::into_error)?;
        for typed in all {
            // A list names what is in the directory itself.
            let last = if run.options.files.is_empty() { last } else { Last::Followed };
            let name = split(&typed).1.filter(|_| !typed.ends_with(b"/."));
            let name = name.map(Name::new).transpose().map_err(|_| ErrorKind::BadName);
            match store.path_of(&typed, last).and_then(|from| Ok((from, name?))) {
                Ok((from, name)) => named.push(NamedSource { from, name, typed }),
                Err(ErrorKind::Unreachable) => return Err(lost(LOST)),
                Err(kind) => {
                    tell(run, End::There, &typed, kind.into(), &kind.to_string());
                    failed += 1;
                }
            }
        }
    }
    Ok((named, failed))
}

/// Fetches what goes to one place.
fn land(
    run: &Run<'_>,
    servers: &[Arc<dyn Fetcher>],
    landed: Landed,
    stop: &AtomicBool,
) -> Result<()> {
    let Landed { store, taking, journal, mut plan } = landed;
    if taking == Taking::InOrder {
        // A stream does not give written bytes back, so that the copy is not begun again.
        run.meter.set_stream();
    }
    let rules = &run.options.rules;
    plan.is_from(servers.len());
    let is_away = |left: &LeftOut| left.why == Why::Server(ErrorKind::Unreachable);
    if plan.left_out.iter().any(is_away) && !run.is_stopped() {
        return Err(lost(LOST));
    }
    let measured = match servers.first().filter(|_| rules.pass == Pass::Copy) {
        Some(channel) => plan.measure(&**channel),
        None => Ok(()),
    };
    let meter = Meter::over(servers.len(), run.meter.clone());
    meter.add_found(plan.files.len(), plan.bytes());
    meter.set_found();
    let mut parameters = Parameters::default();
    let limit = run.options.limit.filter(|&limit| limit > 0);
    parameters.client.rate = limit.map(Rate::from_bits_per_sec);
    let modes = if rules.preserve.modes() { Modes::Kept } else { Modes::Usual };
    let fetched = fetch(&Job {
        servers,
        pools: &[],
        redial: &|_| None,
        plan: &plan,
        store,
        patience: Duration::ZERO,
        dress: modes.dress(),
        times: if rules.preserve.times() { Times::Kept } else { Times::New },
        same: Same::Never,
        taking,
        journal: journal.as_ref(),
        writing: rules.into(),
        hashes: Hashes::Dropped,
        existing: rules.existing,
        pass: rules.pass,
        expected: None,
        parameters,
        meter: &meter,
        stop,
    });
    let fetched = fetched.context("cannot start a thread")?;
    if run.is_stopped() {
        let tally = run.meter.tally();
        return Err(match () {
            () if meter.is_continued() => Kept::Everything.into(),
            () if taking == Taking::InOrder => Kept::Spent.into(),
            () => {
                let of = tally.is_counted.then_some(tally.total_files);
                of_new_tree(Kept::whole_files(tally.files, of).into(), plan.is_new_tree)
            }
        });
    }
    if let Some(why) = fetched.lost.first().map(|(_, why)| why.clone()) {
        return Err(lost(&why));
    }
    measured.map_err(|error| lost(&error.to_string()))?;
    report(run, &plan, &fetched);
    Ok(())
}

/// Reports the files that would be copied, and those that could not be copied.
fn report(run: &Run<'_>, plan: &Plan, fetched: &Fetched) {
    for path in &fetched.would {
        run.meter.add_note(Shown::new(path).to_string());
    }
    for left in &plan.left_out {
        let (kind, text) = (Kind::from(left.why).as_file(), left.why.to_string());
        tell(run, End::There, &there(&left.path), kind, &text);
    }
    for (path, error) in &fetched.failed {
        let kind = Kind::from(error).as_file();
        let to = || {
            let file = plan.files.iter().find(|file| file.path.as_bytes() == path);
            file.map_or(&path[..], |file| file.to.as_bytes())
        };
        match error {
            FetchError::Target(error) => {
                let text = format!("cannot {}: {}", error.what, error.kind);
                tell(run, End::Here, error.path.as_bytes(), kind, &text);
            }
            FetchError::InTheWay(way) => tell(run, End::Here, to(), kind, &way.to_string()),
            FetchError::Source(error) => {
                tell(run, End::There, &there(path), kind, &error.kind.to_string());
            }
            other => tell(run, End::There, &there(path), kind, &other.to_string()),
        }
    }
}

/// A path of the store as the server takes it.
fn there(path: &[u8]) -> Vec<u8> {
    [b"/", path].concat()
}

fn tell(run: &Run<'_>, end: End, place: &[u8], kind: FailureKind, text: &str) {
    let failure = Failure { place: place.to_vec(), kind, text: text.to_owned() };
    run.meter.add_failure(end, &failure);
}
