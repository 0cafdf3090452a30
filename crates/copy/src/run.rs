//! `hikyaku cp`: from arguments to copies, one after the other.

mod part;
mod patience;

use crate::args::CopyArgs;
use crate::engine::Meter;
use crate::manifest;
use crate::near::Far;
use crate::session::Session;
use crate::settings::Settings;
use crate::show::Show;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_transfer::FileHash;
use part::{Part, Plan, parts};
use patience::{Attempt, Patience, Progress};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Some files could not be copied; which ones has been said.
const SOME_FAILED: u8 = 2;

/// Copies what the arguments say.
pub fn run(args: &CopyArgs) -> Result<ExitCode> {
    let (sources, target) = args.locations()?;
    for remark in args.remarks() {
        eprintln!("hikyaku: {remark}");
    }
    crate::interrupt::listen().context("cannot listen for signals")?;
    let settings = Settings::of_user()?;
    let mut failures = 0;
    let mut hashes = BTreeMap::new();
    for part in parts(sources, target)? {
        ensure!(
            args.manifest().is_none() || !part.is_between_others(),
            "a manifest of a copy between two other hosts is not possible: it is not read here"
        );
        failures += persist(&part, (args, &settings), &mut hashes)?;
    }
    if let Some(path) = args.manifest() {
        let shown = path.display();
        let written =
            File::create(path).and_then(|file| manifest::write(&mut BufWriter::new(file), &hashes));
        written.with_context(|| format!("cannot write {shown}"))?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(SOME_FAILED) })
}

/// What is true of every interrupted copy.
const LATER: &str = "the same command goes on from there";

/// Hashes of what was copied, by name.
type Hashes = BTreeMap<Vec<u8>, FileHash>;

/// Copies one part, by several connections if one is lost; gives the number of files that could not be.
fn persist(
    part: &Part,
    (args, settings): (&CopyArgs, &Settings),
    hashes: &mut Hashes,
) -> Result<usize> {
    part.check()?;
    let limit = part.host().map_or(Ok(Duration::ZERO), |host| args.patience(host, settings))?;
    let mut patience = Patience::new(limit);
    let mut attempt = Attempt::First;
    loop {
        let mut progress = Progress::None;
        let plan = Plan { args, settings, attempt };
        let error = match copy(part, &plan, hashes, &mut progress) {
            Ok(failures) => return Ok(failures),
            Err(error) => error,
        };
        let Some(pause) = patience.after(Instant::now(), &error, progress) else {
            return Err(error);
        };
        let texts = error.chain().map(ToString::to_string);
        let why = texts.into_iter().find(|text| !text.starts_with("try: ")).unwrap_or_default();
        let pause_secs = pause.as_secs();
        eprintln!("hikyaku: {why}; trying again in {pause_secs} s (Ctrl-C ends it; {LATER})");
        thread::sleep(pause);
        attempt = Attempt::Again;
    }
}

/// Copies by one connection.
fn copy(
    part: &Part,
    plan: &Plan<'_>,
    hashes: &mut Hashes,
    progress: &mut Progress,
) -> Result<usize> {
    let args = plan.args;
    let mut fars = part.open(plan)?;
    for advice in fars.iter().filter_map(|far| far.advice.as_deref()) {
        if !args.is_quiet() {
            eprintln!("hikyaku: {advice}");
        }
    }
    let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
    let sessions: Vec<Session> = sessions.collect::<Option<_>>().context("no session")?;
    let meter = if args.manifest().is_some() { Meter::with_hashes() } else { Meter::default() };
    let mut show = Show::new(args.output(), args.stats_every());
    let mut failures = 0;
    let done = thread::scope(|scope| {
        let shown = thread::current();
        let meter = &meter;
        let worker = scope.spawn(move || {
            let done = part.work(sessions, plan, meter);
            shown.unpark();
            done
        });
        while !worker.is_finished() {
            failures += show.update(meter);
            thread::park_timeout(crate::show::EVERY);
        }
        worker.join()
    });
    let is_copied = matches!(done, Ok(Ok(()))) && !args.is_rehearsal();
    failures += show.finish(&meter, is_copied);
    hashes.extend(meter.take_hashes());
    if meter.tally().sent() > 0 {
        *progress = Progress::Some;
    }
    match done {
        Ok(done) => done.map(|()| failures),
        Err(_) => bail!("a thread of the copy panicked"),
    }
}
