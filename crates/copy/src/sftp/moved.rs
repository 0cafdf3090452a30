//! The parts that both directions share. The mover carries the files. Its results are reported as those of a copy between
//! two programs.

use super::Run;
use crate::outcome::{failed, of_new_tree};
use anyhow::{Context, Error, Result};
use hikyaku_console::{Kept, Registration};
use hikyaku_fs::Shown;
use hikyaku_job::End;
use hikyaku_mover::{
    Choice, Failed, FetchError, Fetched, Hashes, Job, Kind, Landed, LeftOut, Meter, Modes,
    Parameters, Plan, Same, Taking, Times, Why, fetch,
};
use hikyaku_pair::LostConnection;
use hikyaku_sftp::Client;
use hikyaku_store::{ErrorKind, Fetcher};
use hikyaku_transfer::{Failure, FailureKind, Pass};
use hikyaku_units::Rate;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The text of a connection that was lost while sources or target were looked at.
pub(super) const LOST: &str = "the connection is lost";

/// The error of a copy whose connection was lost.
pub(super) fn lost(why: &str) -> Error {
    let remedy = "try: the same command again; it goes on where this one stopped";
    Error::new(LostConnection).context(remedy).context(why.to_owned())
}

/// The ends of a copy.
pub(super) struct Sides<'a> {
    pub(super) source: End,
    pub(super) target: End,
    /// The begin of paths of the target in messages.
    pub(super) target_root: &'a [u8],
}

/// Is set when the copy is stopped.
pub(super) struct Watched {
    stop: Arc<AtomicBool>,
    _stopped: Registration,
}

/// The end of requests that are under way when the copy is stopped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pending {
    /// They end with the copy. The session of another caller goes on.
    Abandoned,
    /// Their answers are awaited: the server is to have what was sent.
    Awaited,
}

/// Watches whether the copy is stopped.
pub(super) fn watched(run: &Run<'_>, pending: Pending) -> Watched {
    let stop = Arc::new(AtomicBool::new(false));
    let ended = run.server.own_client().filter(|_| pending == Pending::Abandoned).cloned();
    let told = stop.clone();
    let stopped = run.scope.on_stop(move || {
        told.store(true, Ordering::Relaxed);
        ended.iter().for_each(Client::abandon);
    });
    Watched { stop, _stopped: stopped }
}

/// The choice of the user, for the mover.
pub(super) fn choice<'a>(run: &'a Run<'_>) -> Choice<'a> {
    let rules = &run.options.rules;
    Choice {
        depth: rules.depth,
        patterns: &run.options.patterns,
        listed: &run.options.files,
        dirs: &[],
        contents: &[],
        named_links: rules.links,
        links: rules.links,
        existing: rules.existing,
        same: Same::Never,
        times: if rules.preserve.times() { Times::Kept } else { Times::New },
        pass: rules.pass,
        resume: Some(rules.resume),
        writing: rules.into(),
        hashes: hashes(run),
        expected: None,
    }
}

/// Whether the user wants a list of the hashes.
fn hashes(run: &Run<'_>) -> Hashes {
    if run.meter.wants_hashes() { Hashes::Listed } else { Hashes::Dropped }
}

/// Reports sources that cannot be copied, each by its path with `root` before it.
pub(super) fn tell_all(run: &Run<'_>, (end, root): (End, &[u8]), failed: &[Failed]) -> Result<()> {
    for one in failed {
        let kind = one.kind.as_file();
        if end == End::There && kind == FailureKind::Busy && !run.is_stopped() {
            return Err(lost(LOST));
        }
        tell(run, end, &[root, &one.path].concat(), kind, &one.text);
    }
    Ok(())
}

/// Copies the files of one plan. Messages name a source by its path with `root` before it.
pub(super) fn carry(
    run: &Run<'_>,
    (servers, root): (&[Arc<dyn Fetcher>], &[u8]),
    landed: Landed,
    (sides, watched): (&Sides<'_>, &Watched),
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
    meter.add_plan(&plan);
    let mut parameters = Parameters::default();
    let limit = run.options.limit.filter(|&limit| limit > 0);
    parameters.client.rate = limit.map(Rate::from_bits_per_sec);
    let modes = if rules.preserve.modes() { Modes::Kept } else { Modes::Usual };
    let fetched = fetch(&Job {
        dress: modes.dress(),
        times: if rules.preserve.times() { Times::Kept } else { Times::New },
        taking,
        journal: journal.as_ref(),
        writing: rules.into(),
        hashes: hashes(run),
        existing: rules.existing,
        pass: rules.pass,
        parameters,
        ..Job::new(servers, &plan, store.clone(), (&meter, &watched.stop))
    });
    let fetched = fetched.context("cannot start a thread")?;
    if run.is_stopped() {
        let tally = run.meter.tally();
        let of = tally.is_counted.then_some(tally.total_files);
        let kept = match () {
            () if meter.is_continued() => Kept::Everything,
            () if taking == Taking::InOrder || run.meter.is_spent() => Kept::Spent,
            () => Kept::whole_files(tally.files, of),
        };
        let is_in_the_way = plan.is_new_tree && kept != Kept::Everything;
        return Err(of_new_tree(kept.into(), is_in_the_way));
    }
    match store.lost() {
        None => {}
        Some(ErrorKind::Unreachable) => return Err(lost(LOST)),
        Some(kind) => return Err(failed(kind.into(), kind.to_string())),
    }
    if let Some(why) = fetched.lost.first().map(|(_, why)| why.clone()) {
        return Err(lost(&why));
    }
    measured.map_err(|error| lost(&error.to_string()))?;
    for (path, hash) in &fetched.hashes {
        run.meter.add_hash(&plan.listed(path), || Some(*hash));
    }
    report(run, (&plan, root), &fetched, sides);
    Ok(())
}

/// Reports the files that a dry run would copy, and the files that could not be copied.
fn report(run: &Run<'_>, (plan, root): (&Plan, &[u8]), fetched: &Fetched, sides: &Sides<'_>) {
    let from = |path: &[u8]| [root, path].concat();
    let to = |path: &[u8]| [sides.target_root, path].concat();
    for path in &fetched.would {
        run.meter.add_note(Shown::new(&to(path)).to_string());
    }
    for left in &plan.left_out {
        let (kind, text) = (Kind::from(left.why).as_file(), left.why.to_string());
        tell(run, sides.source, &from(&left.path), kind, &text);
    }
    for (path, error) in &fetched.failed {
        let kind = Kind::from(error).as_file();
        let place = || {
            let file = plan.files.iter().find(|file| file.path.as_bytes() == path);
            to(file.map_or(&path[..], |file| file.to.as_bytes()))
        };
        match error {
            FetchError::Target(error) => {
                let text = format!("cannot {}: {}", error.what, error.kind);
                tell(run, sides.target, &to(error.path.as_bytes()), kind, &text);
            }
            FetchError::InTheWay(way) => tell(run, sides.target, &place(), kind, &way.to_string()),
            FetchError::NoTime => tell(run, sides.target, &place(), kind, &error.to_string()),
            FetchError::Source(error) => {
                tell(run, sides.source, &from(path), kind, &error.kind.to_string());
            }
            other => tell(run, sides.source, &from(path), kind, &other.to_string()),
        }
    }
}

pub(super) fn tell(run: &Run<'_>, end: End, place: &[u8], kind: FailureKind, text: &str) {
    let failure = Failure { place: place.to_vec(), kind, text: text.to_owned() };
    run.meter.add_failure(end, &failure);
}
