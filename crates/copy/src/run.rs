//! `hikyaku cp`: from arguments to copies, one after the other.

mod onto;
mod part;
mod patience;

use crate::args::CopyArgs;
use crate::engine::{Claimant, Claims, End, Meter, Options, Tally};
use crate::far::Far;
use crate::interrupt::Interrupted;
use crate::location::Location;
use crate::manifest;
use crate::outcome::{code_of_failures, exit_code, failed};
use crate::session::{Refused, Session};
use crate::settings::Settings;
use crate::show::{Hosts, Output, Show, Shown, print_end};
use crate::unfinished;
use anyhow::{Context, Result, bail, ensure};
use hikyaku_fs::FsError;
use hikyaku_transfer::{FailureKind, FileHash};
use part::{Part, Plan, may_meet, parts};
use patience::{Attempt, Patience, Progress};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

/// Where nothing is known of an error.
const FAILED: u8 = 2;

/// What came of a run so far.
#[derive(Default)]
struct Sum {
    tally: Tally,
    failures: usize,
    kinds: BTreeSet<FailureKind>,
    hashes: Hashes,
    /// What was wrong with standard output first.
    lost: Option<io::Error>,
}

/// Copies what the arguments say. For a program the run ends with an event, however it ends.
pub fn run(args: &CopyArgs) -> Result<ExitCode> {
    if let Some((wish, reader)) = args.wish() {
        return unfinished::run(&wish, reader);
    }
    let (mut sum, begin) = (Sum::default(), Instant::now());
    let done = run_all(args, &mut sum);
    let code = match &done {
        Ok(()) if sum.failures == 0 => 0,
        Ok(()) => code_of_failures(&sum.kinds),
        Err(error) => exit_code(error).unwrap_or(FAILED),
    };
    if args.output() == Output::Events {
        let error = done.as_ref().err().map(cause);
        if let Err(error) = print_end(&sum.tally, begin.elapsed(), code, error.as_deref()) {
            sum.lost.get_or_insert(error);
        }
    }
    done?;
    match sum.lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe && code == 0 => {
            let cause = FsError::io("write", b"standard output", &error);
            Err(failed(FailureKind::Other, cause.to_string()))
        }
        _ => Ok(ExitCode::from(code)),
    }
}

fn run_all(args: &CopyArgs, sum: &mut Sum) -> Result<()> {
    let (sources, target) = args.locations()?;
    for remark in args.remarks() {
        eprintln!("hikyaku: {remark}");
    }
    crate::interrupt::listen().context("cannot listen for signals")?;
    crate::interrupt::survive_file_size_limit().context("cannot handle a signal")?;
    ensure!(
        !matches!(&target, Location::Local(path) if path.as_os_str().is_empty()),
        "the target is empty; the current directory is '.'"
    );
    let (settings, options) = (Settings::of_user()?, args.options()?);
    let parts = parts(sources, target)?;
    ensure!(
        args.manifest().is_none() || !parts.iter().any(Part::is_between_others),
        "a manifest of a copy between two other hosts is not possible: it is not read here"
    );
    let mut first = None;
    let claims = may_meet(&parts, &options).then(Claims::default);
    for (number, mut part) in parts.into_iter().enumerate() {
        let claims = claims.as_ref().map_or(Claimant::only(), |claims| claims.part(number));
        // Of several machines those that can be reached are: the first that cannot gives the reason.
        match persist(&mut part, (args, &settings, &options), claims, sum) {
            Ok(()) => {}
            Err(error) if error.is::<Interrupted>() => return Err(error),
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => eprintln!("hikyaku: {}", cause(&error)),
        }
    }
    if let Some(error) = first {
        return Err(error);
    }
    if let Some(path) = args.manifest() {
        let shown = path.display();
        let written = File::create(path)
            .and_then(|file| manifest::write(&mut BufWriter::new(file), &sum.hashes));
        written.with_context(|| format!("cannot write {shown}"))?;
    }
    Ok(())
}

/// What is true of every interrupted copy.
const LATER: &str = "the same command goes on from there";

/// Hashes of what was copied, by name.
type Hashes = BTreeMap<Vec<u8>, FileHash>;

/// Copies one part, by several connections if one is lost.
fn persist(
    part: &mut Part,
    (args, settings, options): (&CopyArgs, &Settings, &Options),
    claims: Claimant<'_>,
    sum: &mut Sum,
) -> Result<()> {
    part.check(options)?;
    let limit = part.host().map_or(Ok(Duration::ZERO), |host| args.patience(host, settings))?;
    let mut patience = Patience::new(limit);
    let mut attempt = Attempt::First;
    loop {
        let mut progress = Progress::None;
        let plan = Plan { args, settings, attempt, options, claims };
        let Err(error) = copy(part, &plan, sum, &mut progress) else { return Ok(()) };
        let error = named(error, &part.hosts());
        let Some(pause) = patience.after(Instant::now(), &error, progress) else {
            return Err(error);
        };
        if let Some((text, remedy)) = progress.hindrance() {
            return Err(error.context(remedy).context(text));
        }
        let why = cause(&error);
        let pause_secs = pause.as_secs();
        eprintln!("hikyaku: {why}; trying again in {pause_secs} s (Ctrl-C ends it; {LATER})");
        thread::sleep(pause);
        attempt = Attempt::Again;
    }
}

/// The error, with the name of the machine that it is from.
fn named(error: anyhow::Error, hosts: &Hosts) -> anyhow::Error {
    let end = error.chain().find_map(|link| link.downcast_ref::<Refused>()).map(|said| said.end);
    match end.and_then(|end| hosts.at(end)) {
        // A path of its machine follows, or what is wrong there.
        Some(host) => error.context(format!("on {host}")),
        None => error,
    }
}

/// What happened, without its remedy.
fn cause(error: &anyhow::Error) -> String {
    let texts = error.chain().map(ToString::to_string);
    let text = texts.into_iter().find(|text| !text.starts_with("try: ")).unwrap_or_default();
    hikyaku_fs::brief(&text)
}

/// Copies by one connection.
fn copy(part: &Part, plan: &Plan<'_>, sum: &mut Sum, progress: &mut Progress) -> Result<()> {
    let args = plan.args;
    let meter = if args.manifest().is_some() { Meter::with_hashes() } else { Meter::default() };
    part.objections().iter().for_each(|objection| meter.add_failure(End::Here, objection));
    let mut show = Show::new(args.output(), args.stats_every(), part.hosts());
    if part.is_empty() {
        sum.add(&meter, 0, show.finish(&meter, false));
        return Ok(());
    }
    let mut fars = part.open(plan)?;
    for advice in fars.iter().filter_map(|far| far.advice.as_deref()) {
        if !args.is_quiet() {
            eprintln!("hikyaku: {advice}");
        }
    }
    let sessions = fars.iter_mut().map(|far: &mut Far| far.session.take());
    let sessions: Vec<Session> = sessions.collect::<Option<_>>().context("no session")?;
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
    sum.add(&meter, failures, show.finish(&meter, is_copied));
    if meter.has_streamed() {
        *progress = Progress::Streamed;
    } else if meter.is_spent() {
        *progress = Progress::Spent;
    } else if meter.tally().sent() > 0 {
        *progress = Progress::Some;
    }
    match done {
        Ok(done) => done,
        Err(_) => bail!("a thread of the copy panicked"),
    }
}

impl Sum {
    /// A copy has ended, of which so many failures had been told before.
    fn add(&mut self, meter: &Meter, failures: usize, shown: Shown) {
        self.failures += failures + shown.failures;
        self.kinds.extend(meter.kinds());
        self.hashes.extend(meter.take_hashes());
        self.tally.add(&shown.tally);
        self.lost = self.lost.take().or(shown.lost);
    }
}
