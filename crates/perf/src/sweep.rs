//! `--sweep`: one test for each of several target rates, and the curve of received against target rate.

mod output;
mod targets;

pub(crate) use targets::Targets;

use crate::args::ClientArgs;
use crate::client::{self, Quiet};
use crate::log::RunLog;
use crate::output::Sink;
use crate::report::End;
use anyhow::{Context, Result, bail};
use hikyaku_console::Scope;
use hikyaku_run_log::Point;
use hikyaku_units::Rate;
use output::Curve;

/// A target counts as met from this share of it on.
const MET: f64 = 0.97;

/// Runs the tests in a random order, so that a change of the path over time does not look like a bend of the curve.
pub(crate) fn run(
    args: &ClientArgs,
    targets: &Targets,
    scope: &Scope,
    (sink, log): (&Sink, Option<&RunLog>),
) -> Result<()> {
    let mut curve = Curve::new(&args.host, &args.common.title, sink.format);
    let done = measure(args, targets, scope, (&mut curve, sink, log));
    curve.points.sort_by(|a, b| a.target_bits_per_second.total_cmp(&b.target_bits_per_second));
    curve.knee = knee(&curve.points);
    curve.error = done.as_ref().err().map(hikyaku_console::causes);
    curve.end(sink);
    done
}

fn measure(
    args: &ClientArgs,
    targets: &Targets,
    scope: &Scope,
    (curve, sink, log): (&mut Curve, &Sink, Option<&RunLog>),
) -> Result<()> {
    let capacity = match targets.needs_capacity() {
        true => {
            sink.note("measuring without a target, which is 100 %");
            let quiet = one(args, None, scope, log)?;
            let received = quiet.end.sum_received.map_or(0.0, |sum| sum.bits_per_second);
            Some(Rate::from_bits_per_sec(received as u64))
        }
        false => None,
    };
    curve.capacity = capacity.map(Rate::bits_per_sec);
    let mut rates = targets.rates(capacity);
    fastrand::shuffle(&mut rates);
    for (number, rate) in rates.iter().enumerate() {
        let quiet = one(args, Some(*rate), scope, log)?;
        let point = point(*rate, &quiet.end);
        curve.omitted_seconds = curve.omitted_seconds.max(quiet.omitted_seconds);
        log.iter().for_each(|log| log.point(point));
        curve.add(sink, (number + 1, rates.len()), point);
    }
    Ok(())
}

/// One test with this target for all streams together.
fn one(
    args: &ClientArgs,
    target: Option<Rate>,
    scope: &Scope,
    log: Option<&RunLog>,
) -> Result<Quiet> {
    if scope.stop_cause().is_some() {
        bail!("stopped by the user");
    }
    let mut args = args.clone();
    let streams = u64::from(args.plan.streams);
    args.plan.target = target.map(|rate| (rate.bits_per_sec() / streams).max(1));
    let (quiet, broken) = client::quiet(&args, scope, log)?;
    match broken {
        Some(error) => Err(error),
        None => Ok(quiet),
    }
    .with_context(|| match target {
        Some(target) => format!("the test at {target}"),
        None => "the test without a target".to_owned(),
    })
}

fn point(target: Rate, end: &End) -> Point {
    Point {
        target_bits_per_second: target.bits_per_sec() as f64,
        received_bits_per_second: end.sum_received.as_ref().map_or(0.0, |sum| sum.bits_per_second),
        lost_percent: end.lost_percent,
        rtt_ms: end.rtt_ms,
        queue_ms: end.queue_ms,
    }
}

/// The largest target that was met, as all smaller ones were.
fn knee(sorted: &[Point]) -> Option<f64> {
    let is_met =
        |point: &&Point| point.received_bits_per_second >= MET * point.target_bits_per_second;
    sorted.iter().take_while(is_met).last().map(|point| point.target_bits_per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_knee_is_the_last_target_that_was_met_without_a_gap() {
        let point = |target: f64, received: f64| Point {
            target_bits_per_second: target,
            received_bits_per_second: received,
            ..Point::default()
        };
        let curve = [point(1.0, 1.0), point(2.0, 1.95), point(3.0, 2.0), point(4.0, 4.0)];
        assert_eq!(knee(&curve), Some(2.0));
        assert_eq!(knee(&curve[2..3]), None);
    }
}
