//! `hikyaku cp`: from arguments to copies, one after the other.

mod part;

use crate::args::CopyArgs;
use crate::engine::Meter;
use crate::near::Far;
use crate::session::Session;
use crate::show::Show;
use anyhow::{Context, Result, bail};
use part::{Part, parts};
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
    for part in parts(sources, target)? {
        failures += copy(&part, args)?;
    }
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::from(SOME_FAILED) })
}

/// Copies one part; gives the number of files that could not be.
fn copy(part: &Part, args: &CopyArgs) -> Result<usize> {
    part.check()?;
    let mut fars = part.open(args)?;
    for advice in fars.iter().filter_map(|far| far.advice.as_deref()) {
        if !args.is_quiet() {
            eprintln!("hikyaku: {advice}");
        }
    }
    let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
    let sessions: Vec<Session> = sessions.collect::<Option<_>>().context("no session")?;
    let meter = Meter::default();
    let mut show = Show::new(args.output());
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
    failures += show.finish(&meter, matches!(done, Ok(Ok(()))));
    match done {
        Ok(done) => done.map(|()| failures),
        Err(_) => bail!("a thread of the copy panicked"),
    }
}
