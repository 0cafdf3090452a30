//! The parts of a copy between storages. If a connection is lost, the copy connects again and goes on, as one between two hosts
//! does. A lost daemon, bucket or server ends it, unless the user has set `--retry-for`.

use super::ends::{self, is_stream, parts};
use super::target::TargetEnd;
use super::{Order, Outcome, daemons, here, stored};
use crate::manifest;
use crate::plan::CopyPlan;
use crate::run::LATER;
use crate::run::patience::{Patience, Progress};
use anyhow::{Context, Result};
use hikyaku_console::{
    Ending, ExitCode, Interrupt, Kept, Tone, causes, headline, print_end, printed, say, unwritten,
};
use hikyaku_fs::descriptor_number;
use hikyaku_mover::Hashes;
use hikyaku_pair::LostConnection;
use hikyaku_run_log::Recorder;
use hikyaku_stores::Location;
use hikyaku_units::RetryPolicy;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Copies.
pub(crate) fn run(
    plan: &CopyPlan,
    interrupt: &Interrupt,
    recorder: Option<Arc<Recorder>>,
) -> Result<ExitCode> {
    interrupt.listen().context("cannot listen for signals")?;
    let (scope, begin) = (interrupt.scope(), Instant::now());
    let mut outcome = Outcome::new(plan, recorder);
    let done = Order::new(plan, &scope).and_then(|order| persist(&order, &mut outcome));
    let is_told = done.is_ok() && !plan.is_rehearsal();
    let ending = if is_told { Ending::Done } else { Ending::Untold };
    outcome.id.iter().for_each(|id| outcome.board.finish(*id, ending, Instant::now()));
    let (code, counts) = (outcome.code(&done), outcome.counts());
    if let Some(recorder) = &outcome.recorder {
        crate::log::end(recorder, code, counts.files, counts.sent());
    }
    let (error, exit) = (done.as_ref().err().map(causes), interrupt.exit(code));
    let counts = (&counts, begin.elapsed());
    printed(print_end(plan.report.audience, counts, exit, error.as_deref()))?;
    match (done, outcome.board.into_lost()) {
        (Ok(()), Some(error)) => Err(unwritten(error)),
        (done, _) => done.map(|()| code),
    }
}

/// Copies, and begins again if a connection is lost, until the time of the user is over.
fn persist(order: &Order<'_>, outcome: &mut Outcome) -> Result<()> {
    let policy = match order.retry_for {
        Some(time) => RetryPolicy::COPY.within(time),
        None if has_host(order) => RetryPolicy::COPY,
        None => return copy(order, outcome),
    };
    let mut patience = Patience::new(policy);
    loop {
        outcome.held = Some(Vec::new());
        let done = copy(order, outcome);
        let has_failed = outcome.held.as_ref().is_some_and(|held| !held.is_empty());
        let is_lost = order.has_lost_host() || (order.retry_for.is_some() && has_failed);
        let counts = outcome.attempt();
        let progress = if counts.sent() > 0 { Progress::Some } else { Progress::None };
        let pause = match &done {
            Err(error) if Kept::of(error).is_some() => None,
            // A stream keeps the bytes that it has got, and gives none again.
            _ if progress == Progress::Some && takes_in_order(&order.plan.target) => None,
            _ if outcome.progress.is_spent() => None,
            _ if is_lost => patience.after(Instant::now(), &LostConnection.into(), progress),
            Err(error) => patience.after(Instant::now(), error, progress),
            Ok(()) => None,
        };
        let Some(pause) = pause else {
            tell(outcome);
            return done;
        };
        outcome.earlier.files += counts.files;
        outcome.earlier.bytes += counts.sent();
        outcome.progress = Arc::default();
        let lost = || "the connection is lost".to_owned();
        let why = done.as_ref().err().filter(|_| !is_lost).map_or_else(lost, headline);
        let secs = pause.as_secs();
        let text = format_args!("{why}; trying again in {secs} s (Ctrl-C ends it; {LATER})");
        say(Tone::Warning, text);
        if order.scope.sleep(pause).is_some() {
            return Err(outcome.kept.unwrap_or(Kept::Nothing).into());
        }
    }
}

/// Copies the sources of each storage, in the order of the command.
fn copy(order: &Order<'_>, outcome: &mut Outcome) -> Result<()> {
    let (plan, target) = (order.plan, TargetEnd::new(order)?);
    let parts: Vec<&[Location]> = parts(plan).collect();
    for (number, part) in parts.iter().enumerate() {
        outcome.later = parts.len() - 1 - number;
        let (choice, together) = (&order.choice(), order.together(part));
        let copied = match (part.first(), &plan.target) {
            (Some(source @ Location::Local(_)), Location::Servers(servers))
                if !is_stream(source) && order.hashes() == Hashes::Dropped =>
            {
                let paths = (&*ends::paths(part), choice, together);
                daemons::upload(order, paths, servers, outcome)
            }
            (Some(Location::Local(_)), _) => {
                here::copy(order, (&ends::paths(part), choice, together), &target, outcome)
            }
            (Some(Location::Servers(_)), _) => {
                daemons::copy(order, (&ends::servers(part), choice, together), &target, outcome)
            }
            (_, _) => stored::copy(order, (part, choice, together), &target, outcome),
        };
        let name = part.first().map(ToString::to_string).unwrap_or_default();
        outcome.beside((parts.len(), &name), copied)?;
    }
    plan.report.manifest.iter().try_for_each(|path| manifest::save(path, &outcome.hashes))
}

/// Whether a host behind ssh takes part.
fn has_host(order: &Order<'_>) -> bool {
    let mut ends = order.plan.sources.iter().chain([&order.plan.target]);
    ends.any(|at| matches!(at, Location::Remote(_)))
}

/// Whether the target takes bytes in order, as a FIFO, a device and an open descriptor do.
fn takes_in_order(target: &Location) -> bool {
    let is_special = |path: &Path| path.metadata().is_ok_and(|it| !it.is_file() && !it.is_dir());
    matches!(target, Location::Local(path) if descriptor_number(path).is_some() || is_special(path))
}

/// Reports the failures that no other connection has mended.
fn tell(outcome: &mut Outcome) {
    let held = outcome.held.take().unwrap_or_default();
    let messages: Vec<_> = held.iter().filter_map(|failed| outcome.add(failed)).collect();
    if !messages.is_empty() {
        outcome.tell(&messages);
    }
}
