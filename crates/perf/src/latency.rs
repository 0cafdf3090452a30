//! `--latency`: the round-trip time while the path is idle, and while it is loaded in each direction and in both.
//!
//! A probe, which is a test of its own that sends 20 small messages a second, runs beside the load. Its sender tells its
//! smoothed round-trip time ten times a second.

use crate::args::ClientArgs;
use crate::client;
use crate::log::RunLog;
use crate::output::{Format, Sink};
use crate::plan::{Direction, Limit, Plan};
use crate::report::End;
use anyhow::{Context, Result, anyhow, bail};
use hikyaku_console::Scope;
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt::Write;
use std::thread;

/// Seconds of the phase without load: no more than those of the others.
const IDLE_SECONDS_MAX: f64 = 3.0;
/// The probe: 20 messages a second of 100 bytes.
const PROBE_BITS_PER_SECOND: u64 = 16_000;
const PROBE_BYTES: u32 = 100;
const PROBE_INTERVAL_SECONDS: f64 = 0.1;

/// What loads the path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Load {
    Idle,
    Up,
    Down,
    Both,
}

/// Round-trip times under a load.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct Phase {
    load: Load,
    median_ms: f64,
    /// The 95th percentile.
    p95_ms: f64,
    max_ms: f64,
    samples: usize,
    /// What the loads received, if there were any.
    #[serde(skip_serializing_if = "Option::is_none")]
    up_bits_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    down_bits_per_second: Option<f64>,
}

#[derive(Serialize)]
struct Report<'a> {
    title: &'a str,
    host: &'a str,
    phases: &'a [Phase],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Runs the phases one after the other, and prints what they measured.
///
/// # Errors
///
/// A test failed, or the user has stopped it. What was measured before is printed.
pub(crate) fn run(
    args: &ClientArgs,
    scope: &Scope,
    (sink, log): (&Sink, Option<&RunLog>),
) -> Result<()> {
    let mut phases = Vec::new();
    let mut done = Ok(());
    for load in [Load::Idle, Load::Up, Load::Down, Load::Both] {
        match phase(args, load, scope, log) {
            Ok(phase) => {
                sink.note(&format!("{}: median {:.1} ms", load.name(), phase.median_ms));
                phases.push(phase);
            }
            Err(error) => {
                done = Err(error);
                break;
            }
        }
    }
    let error = done.as_ref().err().map(hikyaku_console::causes);
    let report = Report { title: &args.common.title, host: &args.host, phases: &phases, error };
    match sink.format {
        Format::Text => sink.write(&table(&phases)),
        Format::Json => {
            let text = serde_json::to_string_pretty(&report).expect("its keys are strings");
            sink.write(&format!("{text}\n"));
        }
        Format::JsonStream => sink.event("latency", &report),
        Format::Csv => sink.write(&csv(&phases)),
    }
    done
}

fn phase(args: &ClientArgs, load: Load, scope: &Scope, log: Option<&RunLog>) -> Result<Phase> {
    if scope.stop_cause().is_some() {
        bail!("stopped by the user");
    }
    let seconds = match (load, args.plan.limit) {
        (_, Limit::Bytes(_)) => IDLE_SECONDS_MAX,
        (Load::Idle, Limit::Seconds(seconds)) => seconds.min(IDLE_SECONDS_MAX),
        (_, Limit::Seconds(seconds)) => seconds,
    };
    let directions = load.directions();
    let (mut rtts, ends) = thread::scope(|threads| {
        let loads: Vec<_> = directions
            .iter()
            .map(|direction| threads.spawn(|| one(args, *direction, scope, log)))
            .collect();
        let mut probe = args.clone();
        probe.plan = Plan {
            direction: Direction::Upload,
            limit: Limit::Seconds(seconds),
            streams: 1,
            interval: PROBE_INTERVAL_SECONDS,
            omit: 0.0,
            target: Some(PROBE_BITS_PER_SECOND),
            length: PROBE_BYTES,
            ..Plan::default()
        };
        let rtts = client::round_trips(&probe, scope).context("the probe");
        let ends: Vec<Result<End>> = loads
            .into_iter()
            .map(|load| load.join().unwrap_or_else(|_| Err(anyhow!("a test panicked"))))
            .collect();
        Ok::<_, anyhow::Error>((rtts?, ends))
    })?;
    let mut rates = [None, None];
    for (direction, end) in directions.iter().zip(ends) {
        let end = end.with_context(|| format!("the load ({})", load.name()))?;
        rates[*direction as usize] = end.sum_received.map(|sum| sum.bits_per_second);
    }
    rtts.sort_by(f64::total_cmp);
    let at = |share: f64| rtts.get(((rtts.len() as f64 - 1.0) * share).round() as usize).copied();
    let (Some(median_ms), Some(p95_ms), Some(max_ms)) = (at(0.5), at(0.95), at(1.0)) else {
        bail!("the probe has measured nothing")
    };
    let [up_bits_per_second, down_bits_per_second] = rates;
    let samples = rtts.len();
    Ok(Phase { load, median_ms, p95_ms, max_ms, samples, up_bits_per_second, down_bits_per_second })
}

/// A test that loads the path in one direction.
fn one(
    args: &ClientArgs,
    direction: Direction,
    scope: &Scope,
    log: Option<&RunLog>,
) -> Result<End> {
    let mut args = args.clone();
    args.plan.direction = direction;
    match client::quiet(&args, scope, log)? {
        (_, Some(error)) => Err(error),
        (quiet, None) => Ok(quiet.end),
    }
}

impl Load {
    const fn directions(self) -> &'static [Direction] {
        match self {
            Self::Idle => &[],
            Self::Up => &[Direction::Upload],
            Self::Down => &[Direction::Download],
            Self::Both => &[Direction::Upload, Direction::Download],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Up => "up",
            Self::Down => "down",
            Self::Both => "both",
        }
    }
}

fn table(phases: &[Phase]) -> String {
    let mut text = format!(
        "\n{:6} {:>9} {:>9} {:>9} {:>10} {:>12} {:>12}\n",
        "load", "median ms", "95 % ms", "max ms", "per minute", "up", "down"
    );
    let rate = |bits: Option<f64>| {
        bits.map_or_else(|| "-".to_owned(), |bits| Rate::from_bits_per_sec(bits as u64).to_string())
    };
    for phase in phases {
        // Writing to a text cannot fail.
        let _ = writeln!(
            text,
            "{:6} {:>9.1} {:>9.1} {:>9.1} {:>10.0} {:>12} {:>12}",
            phase.load.name(),
            phase.median_ms,
            phase.p95_ms,
            phase.max_ms,
            60_000.0 / phase.median_ms.max(0.001),
            rate(phase.up_bits_per_second),
            rate(phase.down_bits_per_second)
        );
    }
    text
}

fn csv(phases: &[Phase]) -> String {
    let mut text =
        "load,median_ms,p95_ms,max_ms,samples,up_bits_per_second,down_bits_per_second\n".to_owned();
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:.0}"));
    for phase in phases {
        let _ = writeln!(
            text,
            "{},{:.3},{:.3},{:.3},{},{},{}",
            phase.load.name(),
            phase.median_ms,
            phase.p95_ms,
            phase.max_ms,
            phase.samples,
            number(phase.up_bits_per_second),
            number(phase.down_bits_per_second)
        );
    }
    text
}
