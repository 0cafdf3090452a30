//! Several flows at one bottleneck, ours or TCP's, and what each gets.

use crate::rig::context::Ctx;
use crate::rig::home::Home;
use crate::rig::line::{End, Line, Place};
use crate::rig::sysctl::{Buffers, RAISED};
use crate::rig::transfer::Transfer;
use anyhow::{Context, Result, ensure};
use hikyaku_lab::{Lab, LabSpec, Report, Side};
use std::ffi::OsStr;
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};
use xtask::{Finished, Running};

/// One flow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flow {
    pub(crate) who: Who,
    /// Seconds after the first.
    pub(crate) begins: f64,
    /// The lab's server at its other end.
    pub(crate) server: u32,
}

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Who {
    /// Ours, with this policy.
    Ours(&'static str),
    /// TCP by iperf3, with this congestion control.
    Tcp(&'static str),
    /// The same, whose application has so many megabits a second to send.
    Limited(&'static str, u32),
}

/// What came of them in the seconds in which all are judged.
pub(crate) struct Shares {
    /// Bits a second of each.
    pub(crate) goodput: Vec<f64>,
    /// The mean wait in the queue.
    pub(crate) queue_ms: f64,
    /// What of the segments the full queue turned away, in percent.
    pub(crate) overflow_percent: f64,
    /// What a reader has to know.
    pub(crate) notes: Vec<String>,
}

/// A lab's client and one of its servers.
pub(crate) struct Ends<'a> {
    pub(crate) lab: &'a Lab,
    pub(crate) server: u32,
}

const FIRST_PORT: u16 = 6000;
/// Servers are up by then.
const UP: Duration = Duration::from_secs(1);
/// Flows go on for so long after what is judged, and may take so long to end.
const LONGER: f64 = 1.0;
const AFTER: Duration = Duration::from_secs(10);

impl Place for Ends<'_> {
    fn command(&self, end: End, program: &OsStr) -> Command {
        let side = match end {
            End::Client => Side::Client,
            End::Server => Side::Server(self.server),
        };
        self.lab.command(side, program)
    }

    fn server(&self) -> String {
        hikyaku_lab::ipv4(self.server).to_string()
    }
}

impl Who {
    /// What to run at the server's end.
    pub(crate) fn server(self, ctx: &Ctx, port: u16) -> Result<Line> {
        Ok(match self {
            Self::Ours(_) => Line::new(ctx.hikyaku()?).words("perf -s -1 -p"),
            Self::Tcp(_) | Self::Limited(..) => Line::new("iperf3").words("-s -1 -J -i 0.5 -p"),
        }
        .arg(port.to_string()))
    }

    /// What to run at the client's end.
    pub(crate) fn client(self, ctx: &Ctx, address: &str, port: u16, seconds: f64) -> Result<Line> {
        let line = match self {
            Self::Ours(policy) => {
                Line::new(ctx.hikyaku()?).words("perf -J -i 0.2 --policy").arg(policy)
            }
            Self::Tcp(control) => Line::new("iperf3").words("-J -i 0.5 -C").arg(control),
            Self::Limited(control, mbit) => {
                let all = Self::Tcp(control).client(ctx, address, port, seconds)?;
                return Ok(all.arg("-b").arg(format!("{mbit}M")));
            }
        };
        let seconds = format!("{seconds:.0}");
        Ok(line.args(["-c", address, "-t", &seconds, "-p", &port.to_string()]))
    }

    /// What its two ends have said of it.
    pub(crate) fn transfer(self, client: &Finished, server: &Finished) -> Result<Transfer> {
        let transfer = match self {
            Self::Ours(_) => Transfer::of_perf(&client.stdout),
            Self::Tcp(_) | Self::Limited(..) => Transfer::of_iperf3(&client.stdout, &server.stdout),
        };
        transfer.with_context(|| client.stderr.trim().to_owned())
    }
}

/// How long flows are left alone after the last begin, and how long they are judged then.
const SETTLED: f64 = 20.0;
const JUDGED: f64 = 60.0;

/// Runs `flows` in a lab; all are judged over a minute, from 20 s after the last begins.
pub(crate) fn judge(ctx: &Ctx, spec: LabSpec, flows: &[Flow]) -> Result<Shares> {
    let last = flows.iter().map(|flow| flow.begins).fold(0.0, f64::max);
    let from = last + ctx.seconds(SETTLED);
    run(ctx, spec, flows, [from, from + ctx.seconds(JUDGED)])
}

/// Runs `flows` in a lab; all are judged between two times, in seconds after the first begins.
pub(crate) fn run(ctx: &Ctx, spec: LabSpec, flows: &[Flow], judged: [f64; 2]) -> Result<Shares> {
    let mut last = None;
    for _ in 0..ctx.attempts() {
        let (shares, end) = run_once(ctx, spec.clone(), flows, judged)?;
        if end.valid {
            return Ok(shares);
        }
        last = Some((shares, end.problems.join(", ")));
    }
    let (mut shares, problems) = last.context("nothing was measured")?;
    shares.notes.push(format!("INVALID: {problems}"));
    Ok(shares)
}

fn run_once(
    ctx: &Ctx,
    spec: LabSpec,
    flows: &[Flow],
    [from, to]: [f64; 2],
) -> Result<(Shares, Report)> {
    ensure!(flows.is_sorted_by(|a, b| a.begins <= b.begins), "flows in the order of their begin");
    let _buffers = Buffers::limit(RAISED)?;
    let lab = Lab::up(spec)?;
    let home = Home::new()?;
    let ends = |flow: &Flow| Ends { lab: &lab, server: flow.server };
    let mut servers = Vec::new();
    for (flow, port) in flows.iter().zip(FIRST_PORT..) {
        let line = home.of_line(flow.who.server(ctx, port)?, End::Server);
        servers.push(Running::start(&mut line.at(&ends(flow), End::Server))?);
    }
    sleep(UP);
    lab.restart()?;
    let began = Instant::now();
    let until =
        |seconds: f64| sleep(Duration::from_secs_f64(seconds).saturating_sub(began.elapsed()));
    let mut clients = Vec::new();
    for (flow, port) in flows.iter().zip(FIRST_PORT..) {
        until(flow.begins);
        let address = ends(flow).server();
        let line = flow.who.client(ctx, &address, port, to + LONGER - flow.begins)?;
        let line = home.of_line(line, End::Client);
        clients.push(Running::start(&mut line.at(&ends(flow), End::Client))?);
    }
    until(from);
    let before = lab.report()?;
    until(to);
    let after = lab.report()?;
    let mut goodput = Vec::new();
    for ((flow, mut client), mut server) in flows.iter().zip(clients).zip(servers) {
        let client = client.wait(Instant::now() + AFTER)?.context("a flow does not end")?;
        let server = server.wait(Instant::now() + AFTER)?.context("a server does not end")?;
        let transfer = flow.who.transfer(&client, &server)?;
        // The receiver's clock begins with the first handshake at the earliest.
        let zero = flow.begins + transfer.ours.since_first_packet;
        let mean = |from: f64, to: f64| transfer.goodput.mean(from - zero, to - zero);
        goodput.push(mean(from, to));
        let third = (to - from) / 3.0;
        let thirds = [0.0, 1.0, 2.0].map(|nth| from + nth * third);
        let thirds = thirds.map(|from| format!("{:.0}", mean(from, from + third) / 1e6));
        println!("    begun at {} s: {} Mbit/s", flow.begins, thirds.join(", "));
    }
    let during = |sum: fn(&Report) -> f64| sum(&after) - sum(&before);
    let segments = during(|report| report.up.segments as f64).max(1.0);
    let seconds = during(|report| report.seconds);
    let shares = Shares {
        goodput,
        queue_ms: during(|report| report.up.queue_ms_seconds) / seconds,
        overflow_percent: 100.0 * during(|report| report.up.overflowed as f64) / segments,
        notes: Vec::new(),
    };
    Ok((shares, after))
}

impl Shares {
    /// Bits a second of all together.
    pub(crate) fn sum(&self) -> f64 {
        self.goodput.iter().sum()
    }

    /// Jain's index: 1 where all have the same, 1/n where one has all (Jain et al., 1984).
    pub(crate) fn jain(&self) -> f64 {
        hikyaku_sim::jain(&self.goodput)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_has_all_is_as_unfair_as_can_be() {
        let shares = |goodput: &[f64]| Shares {
            goodput: goodput.to_vec(),
            queue_ms: 0.0,
            overflow_percent: 0.0,
            notes: Vec::new(),
        };
        assert!((shares(&[5.0, 5.0, 5.0]).jain() - 1.0).abs() < 1e-9);
        assert!((shares(&[0.0, 8.0, 0.0, 0.0]).jain() - 0.25).abs() < 1e-9);
    }
}
