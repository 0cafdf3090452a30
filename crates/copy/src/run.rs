//! `hikyaku cp`: from arguments to copies, one after the other.

mod part;

use crate::args::CopyArgs;
use crate::engine::Meter;
use crate::manifest;
use crate::near::Far;
use crate::session::Session;
use crate::show::Show;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_transfer::FileHash;
use part::{Part, parts};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::process::ExitCode;
use std::thread;

/// Some files could not be copied; which ones has been said.
const SOME_FAILED: u8 = 2;

/// Copies what the arguments say.
pub fn run(args: &CopyArgs) -> Result<ExitCode> {
    let (sources, target) = args.locations()?;
    for remark in args.remarks() {
        eprintln!("hikyaku: {remark}");
    }
    crate::interrupt::listen().context("cannot listen for signals")?;
    let mut failures = 0;
    let mut hashes = BTreeMap::new();
    for part in parts(sources, target)? {
        ensure!(
            args.manifest().is_none() || !part.is_between_others(),
            "a manifest of a copy between two other hosts is not possible: it is not read here"
        );
        failures += copy(&part, args, &mut hashes)?;
    }
    if let Some(path) = args.manifest() {
        let shown = path.display();
        let written =
            File::create(path).and_then(|file| manifest::write(&mut BufWriter::new(file), &hashes));
        written.with_context(|| format!("cannot write {shown}"))?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(SOME_FAILED) })
}

/// Copies one part; gives the number of files that could not be.
fn copy(part: &Part, args: &CopyArgs, hashes: &mut BTreeMap<Vec<u8>, FileHash>) -> Result<usize> {
    part.check()?;
    let mut fars = part.open(args)?;
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
            let done = part.work(sessions, args, meter);
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
    match done {
        Ok(done) => done.map(|()| failures),
        Err(_) => bail!("a thread of the copy panicked"),
    }
}
