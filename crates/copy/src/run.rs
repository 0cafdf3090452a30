//! `hikyaku cp`: from arguments to copies, one after the other.

mod onto;
mod opened;
mod part;
pub(crate) mod patience;

use crate::cluster;
use crate::log::{self, Recording};
use crate::manifest;
use crate::outcome::{code_of_failures, exit_code};
use crate::plan::{By, CopyPlan, SshHosts};
use crate::sftp::{self, OpenSftp};
use crate::show::{Hosts, Show, Shown, counts};
use crate::table::{self, TABLE};
use anyhow::{Context, Result, bail};
use hikyaku_console::{
    Audience, Counts, ExitCode, Given, Interrupt, Kept, Tone, UPDATE_EVERY, Way, causes, headline,
    misuse, print_end, printed, say, unwritten,
};
use hikyaku_fs::descriptor_number;
use hikyaku_job::{Claimant, Claims, End, Meter, Tally};
use hikyaku_pair::Refused;
use hikyaku_reach::settings;
use hikyaku_run_log::Recorder;
use hikyaku_stores::Location;
use hikyaku_transfer::{FailureKind, FileHash};
use hikyaku_units::RetryPolicy;
use opened::Opened;
use part::{Part, Turn, may_meet, parts};
use patience::{Attempt, Patience, Progress};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// What came of a run so far.
#[derive(Default)]
struct Sum {
    tally: Tally,
    failures: usize,
    kinds: BTreeSet<FailureKind>,
    hashes: Hashes,
    /// What was wrong with standard output first.
    lost: Option<io::Error>,
    /// Where it is written what the copy looks like.
    recorder: Option<Arc<Recorder>>,
}

/// Copies. If the caller has a session with the SFTP server of the far side, the copy goes over it, without another login.
pub fn copy(
    plan: &CopyPlan,
    interrupt: &Interrupt,
    server: Option<OpenSftp<'_>>,
) -> Result<ExitCode> {
    let recorder = match checked(plan).and_then(|()| log::begin(plan)) {
        Ok(recorder) => recorder,
        Err(error) => return refused(plan.report.audience, error),
    };
    if between(plan) == Between::Storages {
        return cluster::run(plan, interrupt, recorder);
    }
    let (mut sum, begin) = (Sum { recorder, ..Sum::default() }, Instant::now());
    let done = run_all((plan, server), interrupt, &mut sum);
    if done.as_ref().is_err_and(|error| is_without_programs(plan, error)) {
        // Both hosts are storages: the data go through this machine.
        return match cluster::ways(plan).and_then(|ways| note(&plan.given, &ways)) {
            Ok(()) => cluster::run(plan, interrupt, sum.recorder.take()),
            Err(error) => refused(plan.report.audience, error),
        };
    }
    let code = match &done {
        Ok(()) if sum.failures == 0 => ExitCode::Success,
        Ok(()) => code_of_failures(&sum.kinds),
        Err(error) => ExitCode::of(error, &[exit_code]),
    };
    if let Some(recorder) = &sum.recorder {
        log::end(recorder, code, sum.tally.files, sum.tally.sent());
    }
    let (error, exit) = (done.as_ref().err().map(causes), interrupt.exit(code));
    let counts = (&counts(&sum.tally), begin.elapsed());
    if let Err(error) = print_end(plan.report.audience, counts, exit, error.as_deref()) {
        sum.lost.get_or_insert(error);
    }
    done?;
    match sum.lost {
        Some(error) if error.kind() != ErrorKind::BrokenPipe && code == ExitCode::Success => {
            Err(unwritten(error))
        }
        _ => Ok(code),
    }
}

/// Refuses what no copy can do, before anybody is asked for a password.
fn check_possible(plan: &CopyPlan) -> Result<()> {
    let target = &plan.target;
    let is_output = matches!(target, Location::Local(path) if descriptor_number(path) == Some(1));
    match is_output && plan.report.audience.is_program() {
        true => Err(misuse(
            "JSON is not possible where the data go to standard output",
            "a file as the target, or leave out --json and --json-lines",
        )),
        false => Ok(()),
    }
}

/// The ways that the data of a copy go.
///
/// # Errors
///
/// There is no way between its ends.
pub fn ways(plan: &CopyPlan) -> Result<Vec<Way>> {
    match between(plan) {
        Between::Storages => cluster::ways(plan),
        Between::Programs => {
            Ok(table::ways(&plan.sources, &plan.target, plan.transport.by == By::Sftp))
        }
    }
}

/// Refuses what no copy can do, and notes options that have no effect on the ways of this one.
fn checked(plan: &CopyPlan) -> Result<()> {
    check_possible(plan)?;
    let (by, ways) = (plan.transport.by, ways(plan)?);
    // Its session with a host is the same as beside this machine.
    let by_sftp = |way: Way| match way {
        Way::FromHost | Way::ToHost if by == By::Sftp => Way::Sftp,
        way => way,
    };
    let ways: Vec<Way> = ways.into_iter().map(by_sftp).collect();
    let given = plan.given.clone();
    let given = match by {
        // They leave UDP out, too.
        By::Tcp | By::Ssh => given.with("no_udp"),
        By::Auto | By::Udp | By::Native | By::Sftp => given,
    };
    note(&given, &ways)
}

/// Notes options that have no effect on these ways.
fn note(given: &Given, ways: &[Way]) -> Result<()> {
    TABLE.check(given, ways)?.iter().for_each(|note| say(Tone::Note, note));
    Ok(())
}

/// Ends a run that has not begun.
pub(crate) fn refused(audience: Audience, error: anyhow::Error) -> Result<ExitCode> {
    let exit = ExitCode::of(&error, &[exit_code]).into();
    let counts = (&Counts::default(), Duration::ZERO);
    printed(print_end(audience, counts, exit, Some(&causes(&error))))?;
    Err(error)
}

/// Whether a copy between two other hosts has failed because one of them has no hikyaku.
fn is_without_programs(plan: &CopyPlan, error: &anyhow::Error) -> bool {
    plan.transport.by == By::Auto && sftp::commands(error).is_some() && is_between_hosts(plan)
}

/// Whether a source and the target are on other hosts.
fn is_between_hosts(plan: &CopyPlan) -> bool {
    let is_host = |at: &Location| matches!(at, Location::Remote(_));
    is_host(&plan.target) && plan.sources.iter().any(is_host)
}

/// What carries a copy at its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Between {
    /// Programs of ours, on this machine and on hosts behind ssh.
    Programs,
    /// Storages. Hosts behind ssh are storages beside others, and where two of them are reached by SFTP.
    Storages,
}

fn between(plan: &CopyPlan) -> Between {
    let is_storage = |at: &Location| !matches!(at, Location::Local(_) | Location::Remote(_));
    let by_sftp = plan.transport.by == By::Sftp && is_between_hosts(plan);
    let by_sftp = by_sftp || plan.hosts == SshHosts::Storages;
    match by_sftp || plan.sources.iter().chain([&plan.target]).any(is_storage) {
        true => Between::Storages,
        false => Between::Programs,
    }
}

/// Refuses a target without a name.
pub(crate) fn check_target(path: &Path) -> Result<()> {
    match path.as_os_str().is_empty() {
        true => Err(misuse("the target is empty", "'.' for the current directory")),
        false => Ok(()),
    }
}

fn run_all(
    (copy, server): (&CopyPlan, Option<OpenSftp<'_>>),
    interrupt: &Interrupt,
    sum: &mut Sum,
) -> Result<()> {
    interrupt.listen().context("cannot listen for signals")?;
    let scope = &interrupt.scope();
    hikyaku_console::survive_file_size_limit().context("cannot handle a signal")?;
    if let Location::Local(path) = &copy.target {
        check_target(path)?;
    }
    let settings = &settings::of_user()?;
    let parts = parts(copy.sources.clone(), copy.target.clone())?;
    let (mut first, attempt) = (None, Attempt::First);
    let claims = may_meet(&parts, &copy.options).then(Claims::default);
    for (number, mut part) in parts.into_iter().enumerate() {
        let claims = claims.as_ref().map_or(Claimant::only(), |claims| claims.part(number));
        // Of several machines those that can be reached are: the first that cannot gives the reason.
        let turn = Turn { copy, settings, attempt, claims, scope, server };
        match persist(&mut part, turn, sum) {
            Ok(()) => {}
            Err(error) if Kept::of(&error).is_some() => return Err(error),
            Err(error) if first.is_none() => first = Some(error),
            Err(error) => say(Tone::Warning, headline(&error)),
        }
    }
    if let Some(error) = first {
        return Err(error);
    }
    if let Some(path) = &copy.report.manifest {
        manifest::save(path, &sum.hashes)?;
    }
    Ok(())
}

/// What is true of every interrupted copy.
pub(crate) const LATER: &str = "the same command continues the copy";

/// Hashes of what was copied, by name.
type Hashes = BTreeMap<Vec<u8>, FileHash>;

/// Copies one part, by several connections if one is lost.
fn persist(part: &mut Part, turn: Turn<'_>, sum: &mut Sum) -> Result<()> {
    let alone = OnceCell::new();
    let mut turn = turn;
    part.check(&turn.copy.options)?;
    let policy = match part.host() {
        Some(host) => turn.copy.retries(host, turn.settings)?,
        // A copy on this machine has no connection that could be lost.
        None => RetryPolicy::COPY.within(Duration::ZERO),
    };
    let mut patience = Patience::new(policy);
    loop {
        let mut progress = Progress::None;
        let Err(error) = copy_once(part, &turn, sum, &mut progress) else { return Ok(()) };
        if turn.scope.stop_cause().is_some() && Kept::of(&error).is_none() {
            // What failed was ended by the signal, such as an ssh that had not logged in.
            return Err(progress.interrupted().into());
        }
        let error = named(error, &part.hosts());
        let Some(pause) = patience.after(Instant::now(), &error, progress) else {
            return Err(error);
        };
        if let Some((text, remedy)) = progress.hindrance() {
            return Err(error.context(remedy).context(text));
        }
        let why = headline(&error);
        let pause_secs = pause.as_secs();
        say(
            Tone::Warning,
            format_args!("{why}; trying again in {pause_secs} s (Ctrl-C ends it; {LATER})"),
        );
        if turn.scope.sleep(pause).is_some() {
            return Err(progress.interrupted().into());
        }
        turn.attempt = Attempt::Again;
        // A login that the caller shares may be lost with the connection.
        turn.copy = alone.get_or_init(|| turn.copy.alone());
    }
}

/// The error, with the name of the machine that it is from.
fn named(error: anyhow::Error, hosts: &Hosts) -> anyhow::Error {
    let refused = error.chain().find_map(|link| link.downcast_ref::<Refused>());
    match refused.and_then(|refused| Some(refused.on(hosts.at(refused.end)?))) {
        Some(text) => error.context(text),
        None => error,
    }
}

/// Copies by one connection.
fn copy_once(part: &Part, turn: &Turn<'_>, sum: &mut Sum, progress: &mut Progress) -> Result<()> {
    let plan = turn.copy;
    let meter =
        if plan.report.manifest.is_some() { Meter::with_hashes() } else { Meter::default() };
    let meter = Arc::new(meter.recorded(sum.recorder.clone()));
    let (name, direction) = part.flow();
    let recording =
        sum.recorder.as_ref().map(|recorder| Recording::new(recorder, &name, direction));
    part.objections().iter().for_each(|objection| meter.add_failure(End::Here, objection));
    let mut show = Show::new(plan, part.hosts());
    if part.is_empty() {
        sum.add(&meter, 0, show.finish(&meter, false));
        return Ok(());
    }
    let mut opened = Opened::of(part, turn)?;
    opened.advice().iter().for_each(|advice| say(Tone::Note, advice));
    let mut failures = 0;
    let done = thread::scope(|scope| {
        let shown = thread::current();
        let (meter, opened) = (&meter, &mut opened);
        let worker = scope.spawn(move || {
            let done = opened.work(part, turn, meter);
            shown.unpark();
            done
        });
        while !worker.is_finished() {
            failures += show.update(meter);
            recording.iter().for_each(|recording| recording.poll(meter));
            thread::park_timeout(UPDATE_EVERY);
        }
        worker.join()
    });
    recording.iter().for_each(|recording| recording.last(&meter));
    let is_copied = matches!(done, Ok(Ok(()))) && !plan.is_rehearsal();
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
