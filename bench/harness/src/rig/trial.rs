//! One transfer in one lab: a server, a client, and the link's counters over time.

use crate::rig::contender::Contender;
use crate::rig::context::Ctx;
use crate::rig::line::{End, Place};
use crate::rig::others::{self, Others};
use crate::rig::sysctl::{Buffers, RAISED};
use crate::rig::transfer::Transfer;
use anyhow::{Context, Result, bail};
use hikyaku_lab::{Lab, LabSpec, Report, Side};
use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Finished, Running};

mod counters;

pub(crate) use counters::{Counters, Queue};

/// How long a server may take before it listens.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a server may go on after its client.
const AFTER: Duration = Duration::from_secs(5);
/// How often the counters are read.
const SAMPLING: Duration = Duration::from_millis(500);

/// What came of it.
pub(crate) struct Outcome {
    pub(crate) transfer: Transfer,
    pub(crate) counters: Counters,
    /// Where the receiver's clock has its zero, in the lab's time; nearly.
    pub(crate) origin: f64,
    /// The largest resident memory that the kernel saw, in bytes: client, server.
    pub(crate) peak_memory: [f64; 2],
    /// What a reader has to know.
    pub(crate) notes: Vec<String>,
}

/// What surrounds a transfer.
pub(crate) struct Surroundings {
    pub(crate) spec: LabSpec,
    /// When it is ended, and stands as `stopped`.
    pub(crate) cap: f64,
    /// The most that UDP sockets may ask for.
    pub(crate) buffers: u32,
}

impl Surroundings {
    /// With buffers raised, for a transfer of so many seconds and some time to end.
    pub(crate) fn new(spec: LabSpec, seconds: f64) -> Self {
        Self { spec, cap: seconds + 20.0, buffers: RAISED }
    }
}

/// Measures until a run is valid, or often enough; the last one is marked then.
pub(crate) fn measure(ctx: &Ctx, around: &Surroundings, who: &Contender) -> Result<Outcome> {
    let mut last = None;
    for _ in 0..ctx.attempts() {
        let outcome = run(around, who)?;
        if outcome.counters.end().valid {
            return Ok(outcome);
        }
        last = Some(outcome);
    }
    let mut outcome = last.context("nothing was measured")?;
    let problems = outcome.counters.end().problems.join(", ");
    outcome.notes.push(format!("INVALID: {problems}"));
    Ok(outcome)
}

/// Measures once.
pub(crate) fn run(around: &Surroundings, who: &Contender) -> Result<Outcome> {
    let _buffers = Buffers::limit(around.buffers)?;
    let lab = Lab::up(around.spec.clone())?;
    let mut server = Running::start(&mut who.server(&lab.server()).at(&lab, End::Server))?;
    lab.wait_for_listener(Side::Server(1), PATIENCE)?;
    lab.restart()?;
    let began = Instant::now();
    let mut client = Running::start(&mut who.client(&lab.server()).at(&lab, End::Client))?;
    let mut watch =
        Watch { samples: Vec::new(), memory: [0.0; 2], pids: [client.id(), server.id()] };
    let cap = began + Duration::from_secs_f64(around.cap);
    let finished = loop {
        watch.look(&lab)?;
        if let Some(finished) = client.wait(Instant::now() + SAMPLING)? {
            break Some(finished);
        }
        if Instant::now() >= cap {
            break None;
        }
    };
    watch.look(&lab)?;
    let mut notes = Vec::new();
    let is_stopped = finished.is_none();
    let said = match finished {
        Some(finished) => finished,
        None => client.stop()?,
    };
    let server = match server.wait(Instant::now() + AFTER)? {
        Some(finished) => finished,
        None => server.stop()?,
    };
    let counters = Counters::new(watch.samples)?;
    let transfer = if is_stopped {
        notes.push("stopped".to_owned());
        stopped(&counters, around.cap)
    } else {
        read(who, &said, &server)?
    };
    notes.extend(transfer.error.iter().map(|error| format!("broke: {error}")));
    let warnings = transfer.ours.warnings.iter().filter_map(|warning| warning.split(',').next());
    notes.extend(warnings.map(|warning| format!("warned: {warning}")));
    for (name, usage) in [("client", transfer.ours.client), ("server", transfer.ours.server)] {
        if usage.host_drops > 0.0 {
            notes.push(format!("{} datagrams dropped by the {name}'s host", usage.host_drops));
        }
    }
    let origin = transfer.ours.since_first_packet;
    Ok(Outcome { transfer, counters, origin, peak_memory: watch.memory, notes })
}

fn read(who: &Contender, client: &Finished, server: &Finished) -> Result<Transfer> {
    who.read(&client.stdout, &server.stdout).with_context(|| {
        let tail = |text: &str| {
            let lines: Vec<&str> = text.lines().collect();
            lines[lines.len().saturating_sub(5)..].join(" | ")
        };
        let said = [&client.stderr, &server.stderr].map(|text| tail(text));
        format!("{} ({}): {} / {}", who.name(), client.status, said[0], said[1])
    })
}

/// For a program that had to be stopped, what the link delivered stands for what it achieved.
fn stopped(counters: &Counters, seconds: f64) -> Transfer {
    let bytes = counters.end().up.delivered_bytes as f64;
    Transfer { bytes, seconds, ..Transfer::default() }
}

/// Reads counters and memory now and then.
struct Watch {
    samples: Vec<Report>,
    memory: [f64; 2],
    /// Client and server.
    pids: [u32; 2],
}

impl Watch {
    fn look(&mut self, lab: &Lab) -> Result<()> {
        self.samples.push(lab.report()?);
        for (peak, pid) in self.memory.iter_mut().zip(self.pids) {
            // A program that has ended has no memory: what was seen before stays.
            *peak = peak.max(peak_memory(pid).unwrap_or(0.0));
        }
        Ok(())
    }
}

/// The high-water mark of a process, in bytes.
pub(crate) fn peak_memory(pid: u32) -> Option<f64> {
    memory(pid, "VmHWM:")
}

/// What a process has now, in bytes.
pub(crate) fn resident_memory(pid: u32) -> Option<f64> {
    memory(pid, "VmRSS:")
}

fn memory(pid: u32, name: &str) -> Option<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024.0)
}

/// Measures a contender where no link is emulated, until nobody else has worked meanwhile or often
/// enough; the last one is marked then.
pub(crate) fn unimpaired(
    ctx: &Ctx,
    place: &dyn Place,
    who: &Contender,
    seconds: f64,
) -> Result<(Transfer, Vec<String>)> {
    let (transfers, notes) = unimpaired_beside(ctx, place, std::slice::from_ref(who), seconds)?;
    Ok((transfers.into_iter().next().context("nothing was measured")?, notes))
}

/// The same for several contenders at once, with ports of their own.
pub(crate) fn unimpaired_beside(
    ctx: &Ctx,
    place: &dyn Place,
    who: &[Contender],
    seconds: f64,
) -> Result<(Vec<Transfer>, Vec<String>)> {
    let mut last = None;
    for _ in 0..ctx.attempts() {
        if !ctx.is_quick() {
            others::wait_for_quiet()?;
        }
        let watch = Others::watch()?;
        let transfers = run_unimpaired(place, who, seconds)?;
        let cores = watch.cores()?;
        if cores < others::TOLERATED {
            return Ok((transfers, Vec::new()));
        }
        last = Some((transfers, vec![format!("INVALID: others took {cores:.2} cores")]));
    }
    last.context("nothing was measured")
}

fn run_unimpaired(place: &dyn Place, who: &[Contender], seconds: f64) -> Result<Vec<Transfer>> {
    let _buffers = Buffers::limit(RAISED)?;
    let address = place.server();
    let start = |end: End| -> Result<Vec<Running>> {
        let line = |who: &Contender| match end {
            End::Server => who.server(&address),
            End::Client => who.client(&address),
        };
        who.iter().map(|who| Running::start(&mut line(who).at(place, end))).collect()
    };
    let servers = start(End::Server)?;
    // A namespace without a relay cannot be asked for its sockets: programs are up by then.
    sleep(Duration::from_millis(500));
    let clients = start(End::Client)?;
    let until = Instant::now() + Duration::from_secs_f64(seconds + 15.0);
    let ends = who.iter().zip(clients).zip(servers);
    ends.map(|((who, mut client), mut server)| {
        let Some(said) = client.wait(until)? else {
            let said = client.stop()?;
            bail!("{} did not end: {}", who.name(), said.stderr.trim());
        };
        let server = match server.wait(Instant::now() + AFTER)? {
            Some(finished) => finished,
            None => server.stop()?,
        };
        read(who, &said, &server)
    })
    .collect()
}
