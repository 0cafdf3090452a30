//! Builds the reported figures from what was measured.

use super::{
    Busiest, Connected, Cpu, End, IntervalReport, Line, PairEnd, PathLine, Start, StreamEnd, Sum,
    Utilization,
};
use crate::limit::{Facts, Targets, received};
use crate::message::{EndReport, Received, Share, Span};
use crate::plan::Direction;
use crate::sample::PathDelta;
use crate::session::{Interval, Outcome};

/// iperf3's parsers tell streams apart by their socket number, which starts here.
const FIRST_SOCKET: u32 = 1;

/// An interval as reported by this end, which sends if `sends`; `way` is the direction of a test of
/// a pair.
pub(crate) fn interval(interval: &Interval, sends: bool, way: Option<Direction>) -> IntervalReport {
    let count = &interval.count;
    let first = first_socket(way, count.streams.len());
    let line = |socket, bytes, path: Option<&PathDelta>| {
        let span = Span { start: count.start, end: count.end, bytes };
        Line {
            socket,
            start: span.start,
            end: span.end,
            seconds: span.seconds(),
            bytes,
            bits_per_second: span.bits_per_second(),
            omitted: count.share == Share::Omitted,
            sender: sends,
            path: path.map(path_line),
        }
    };
    let streams = count.streams.iter().enumerate().map(|(index, stream)| {
        line(Some(first + index as u32), stream.bytes, interval.path.get(index))
    });
    let streams = streams.collect();
    let total = count.streams.iter().fold(0u64, |sum, stream| sum.saturating_add(stream.bytes));
    let sum = Some(line(None, total, PathDelta::sum(&interval.path).as_ref()));
    match way {
        Some(Direction::Download) => IntervalReport { streams, sum: None, sum_bidir_reverse: sum },
        _ => IntervalReport { streams, sum, sum_bidir_reverse: None },
    }
}

/// The socket number of a test's first stream. In a pair the upload's streams come first.
pub(crate) const fn first_socket(way: Option<Direction>, streams: usize) -> u32 {
    match way {
        Some(Direction::Download) => FIRST_SOCKET + streams as u32,
        _ => FIRST_SOCKET,
    }
}

/// The start report of a pair of tests.
pub(crate) fn pair_start(up: &Start, down: &Start) -> Start {
    let mut start = up.clone();
    let first = first_socket(Some(Direction::Download), up.connected.len());
    let sockets = (first..).zip(&down.connected);
    start.connected.extend(sockets.map(|(socket, ends)| Connected { socket, ..ends.clone() }));
    start.test_start.bidir = 1;
    start
}

/// The results of a pair of tests.
pub(crate) fn pair_end(up: Option<End>, down: Option<End>) -> PairEnd {
    let mut up = up;
    if let (Some(up), Some(down)) = (&mut up, &down) {
        let first = first_socket(Some(Direction::Download), up.streams.len());
        let streams = (first..).zip(&down.streams).map(|(socket, stream)| {
            let renumbered = |sum: &Option<Sum>| {
                sum.as_ref().map(|sum| Sum { socket: Some(socket), ..sum.clone() })
            };
            StreamEnd { sender: renumbered(&stream.sender), receiver: renumbered(&stream.receiver) }
        });
        up.streams.extend(streams);
    }
    PairEnd {
        up,
        sum_sent_bidir_reverse: down.as_ref().and_then(|down| down.sum_sent.clone()),
        sum_received_bidir_reverse: down.as_ref().and_then(|down| down.sum_received.clone()),
        bidir_reverse: down,
    }
}

fn path_line(delta: &PathDelta) -> PathLine {
    PathLine {
        wire_bits_per_second: delta.wire_bits_per_second(),
        rtt_ms: delta.sample.rtt_ms,
        base_rtt_ms: delta.sample.base_rtt_ms,
        queue_ms: delta.sample.queue_ms,
        ambient_loss_percent: delta.sample.ambient_loss_percent,
        lost_percent: delta.lost_percent(),
        resent_percent: delta.resent_percent(),
        retransmits: delta.sample.lost_packets,
        phase: delta.sample.phase,
    }
}

/// The result of a test.
pub(crate) fn end(outcome: &Outcome, targets: Targets) -> End {
    let sends = !outcome.side.receives(outcome.plan.direction);
    let sent = sent(outcome);
    let total = PathDelta::sum(&sent).unwrap_or_default();
    let counted = shown(outcome);
    // Not the last interval's: in a short test the receiver may have had nothing from the sender but its first report,
    // which is older than the first round trip.
    let last = &total.sample;
    let (local, remote) = (&outcome.local, outcome.remote.as_ref());
    let gigabytes = counted.as_ref().map_or(0.0, |r| r.whole.bytes as f64 / 1e9);
    let per_gigabyte = |seconds: f64| (gigabytes > 0.0).then(|| seconds / gigabytes);
    let sum = |span: Span| sum_of(None, span, None, sends);
    End {
        streams: streams(outcome, &sent, counted.as_ref(), sends),
        sum_sent: (!sent.is_empty()).then(|| sent_sum(None, &total, sends)),
        sum_received: counted.as_ref().map(|r| sum(r.counted)),
        sum_received_whole: counted.as_ref().map(|r| sum(r.whole)),
        cpu: Cpu {
            local_seconds_per_gb: per_gigabyte(local.cpu_seconds),
            remote_seconds_per_gb: remote.and_then(|end| per_gigabyte(end.cpu_seconds)),
            local_seconds: local.cpu_seconds,
            remote_seconds: remote.map(|end| end.cpu_seconds),
        },
        cpu_utilization_percent: Utilization {
            host_total: utilization(local),
            remote_total: remote.map(utilization),
        },
        limited_by: Facts::of(outcome, targets).verdict(),
        ending: local.ending,
        wire_bits_per_second: total.wire_bits_per_second(),
        rtt_ms: last.rtt_ms,
        base_rtt_ms: last.base_rtt_ms,
        queue_ms: mean_queue(outcome),
        ambient_loss_percent: last.ambient_loss_percent,
        resent_percent: total.resent_percent(),
        lost_percent: total.lost_percent(),
        lost_packets: total.sample.lost_packets,
        spurious_losses: total.sample.spurious_losses,
        outages: total.sample.outages,
        host_drops_local: local.host_drops,
        host_drops_remote: remote.map(|end| end.host_drops),
        max_rss_local_bytes: local.max_rss_bytes,
        max_rss_remote_bytes: remote.map(|end| end.max_rss_bytes),
        busiest_thread_local: busiest(local),
        busiest_thread_remote: remote.and_then(busiest),
        compete: super::compete::end(outcome),
    }
}

fn utilization(end: &EndReport) -> f64 {
    if end.seconds > 0.0 { end.cpu_seconds * 100.0 / end.seconds } else { 0.0 }
}

fn busiest(end: &EndReport) -> Option<Busiest> {
    let (name, share) = end.busiest.clone()?;
    Some(Busiest { name: name.0, percent: share * 100.0 })
}

/// What the sender sent in each stream: from its final report, or if that is missing, the sum of
/// the intervals.
fn sent(outcome: &Outcome) -> Vec<PathDelta> {
    let ends = [outcome.local.sent.as_ref(), outcome.remote.as_ref().and_then(|e| e.sent.as_ref())];
    if let Some(path) = ends.into_iter().flatten().next() {
        return path.since(&outcome.before);
    }
    let mut sum: Vec<PathDelta> = Vec::new();
    for interval in &outcome.intervals {
        for (index, delta) in interval.path.iter().enumerate() {
            match sum.get_mut(index) {
                Some(sum) => *sum = sum.and(delta),
                None => sum.push(delta.clone()),
            }
        }
    }
    sum
}

/// What the receiver counted: from its final report, or if that is missing, the sum of the
/// intervals.
fn shown(outcome: &Outcome) -> Option<Received> {
    if let Some(received) = received(outcome) {
        return Some(received.clone());
    }
    let (first, last) = (outcome.intervals.first()?, outcome.intervals.last()?);
    let is_counted = |interval: &&Interval| interval.count.share == Share::Counted;
    let counted: Vec<&Interval> = outcome.intervals.iter().filter(is_counted).collect();
    let add = |sum: u64, bytes: &u64| sum.saturating_add(*bytes);
    let mut streams = vec![0u64; first.count.streams.len()];
    for interval in &counted {
        for (sum, stream) in streams.iter_mut().zip(&interval.count.streams) {
            *sum = sum.saturating_add(stream.bytes);
        }
    }
    let end = last.count.end;
    let counts = outcome.intervals.iter().flat_map(|interval| &interval.count.streams);
    let all: Vec<u64> = counts.map(|stream| stream.bytes).collect();
    Some(Received {
        whole: Span { start: 0.0, end, bytes: all.iter().fold(0, add) },
        counted: Span {
            start: counted.first().map_or(end, |interval| interval.count.start),
            end,
            bytes: streams.iter().fold(0, add),
        },
        streams,
    })
}

fn streams(
    outcome: &Outcome,
    sent: &[PathDelta],
    received: Option<&Received>,
    sends: bool,
) -> Vec<StreamEnd> {
    let stream = |index: usize| {
        let socket = Some(FIRST_SOCKET + index as u32);
        let span =
            received.and_then(|r| r.streams.get(index).map(|&bytes| Span { bytes, ..r.counted }));
        StreamEnd {
            sender: sent.get(index).map(|delta| sent_sum(socket, delta, sends)),
            receiver: span.map(|span| sum_of(socket, span, None, sends)),
        }
    };
    (0..outcome.plan.streams as usize).map(stream).collect()
}

fn sent_sum(socket: Option<u32>, delta: &PathDelta, sends: bool) -> Sum {
    let bytes = delta.sample.payload_bytes;
    let span = Span { start: 0.0, end: delta.seconds, bytes };
    sum_of(socket, span, Some(delta.sample.lost_packets), sends)
}

fn sum_of(socket: Option<u32>, span: Span, retransmits: Option<u64>, sender: bool) -> Sum {
    Sum {
        socket,
        start: span.start,
        end: span.end,
        seconds: span.seconds(),
        bytes: span.bytes,
        bits_per_second: span.bits_per_second(),
        retransmits,
        sender,
    }
}

fn mean_queue(outcome: &Outcome) -> f64 {
    let queues: Vec<f64> = outcome
        .intervals
        .iter()
        .filter_map(|interval| Some(PathDelta::sum(&interval.path)?.sample.queue_ms))
        .collect();
    queues.iter().sum::<f64>() / queues.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{CountReport, Ending};
    use crate::plan::Plan;
    use crate::sample::{PathReport, PathSample};
    use crate::session::Side;

    fn report(ending: Ending, sent: Option<PathReport>) -> EndReport {
        EndReport {
            ending,
            seconds: 1.0,
            cpu_seconds: 0.0,
            max_rss_bytes: 0,
            host_drops: 0,
            busiest: None,
            received: None,
            sent,
            standing: None,
        }
    }

    #[test]
    fn the_round_trip_is_that_of_the_senders_last_report() {
        let plan = Plan { direction: Direction::Download, ..Plan::default() };
        // The only report that the receiver had during the test: of before the first acknowledgement.
        let early = PathDelta { seconds: 0.0, sample: PathSample::default() };
        let count =
            CountReport { start: 0.0, end: 1.0, share: Share::Counted, streams: Vec::new() };
        let streams = vec![PathSample { base_rtt_ms: 20.0, rtt_ms: 21.0, ..PathSample::default() }];
        let outcome = Outcome {
            plan,
            side: Side::Client,
            intervals: vec![Interval { count, path: vec![early] }],
            local: report(Ending::Complete, None),
            remote: Some(report(Ending::Complete, Some(PathReport { seconds: 1.0, streams }))),
            before: PathReport::default(),
            broken: None,
        };
        let end = end(&outcome, Targets { payload: None, wire: None });
        assert_eq!((end.base_rtt_ms, end.rtt_ms), (20.0, 21.0));
    }
}
