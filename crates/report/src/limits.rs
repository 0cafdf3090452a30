//! The limits of a run, derived from its samples.

use crate::series::{Counter, times_of};
use hikyaku_run_log::{Flow, Load, MachineId, Run};
use std::collections::BTreeMap;

/// The limiting resource of a part of the time.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Cause {
    /// The limit that the sender reported.
    Said(String),
    /// The rates that the rate controls of the senders allowed.
    Path,
    /// The processors of a machine.
    Processors(MachineId),
    /// The memory of a machine.
    Memory(MachineId),
    /// The disk of a machine.
    Disk(MachineId),
    /// No byte had come yet: ssh logged in, or connections were made.
    Start,
    /// Nothing moved.
    Still,
    /// Nothing of what was sampled was full.
    Unknown,
}

/// A cause, and its part of the run.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Part {
    pub(crate) cause: Cause,
    pub(crate) seconds: f64,
    pub(crate) bytes: f64,
}

/// From this share of the allowed rate on, a sender is held by its rate control.
const PATH_FULL: f64 = 0.8;
/// From these shares in percent on, something of a machine is full.
const PROCESSORS_FULL: f64 = 90.0;
const DISK_FULL: f64 = 90.0;
const MEMORY_FULL: f64 = 97.0;
/// Below this share of the mean rate nothing moves.
const STILL: f64 = 0.01;
/// A sample holds until the next one, but at most for this number of seconds.
const SAMPLE_HOLDS: f64 = 3.0;

/// The causes, the one with the most time first. Only those of runs with samples of a transfer.
pub(crate) fn parts(run: &Run, counters: &BTreeMap<MachineId, Counter>) -> Vec<Part> {
    let times = times_of(counters.values());
    let Some((first, last)) = times.first().zip(times.last()) else { return Vec::new() };
    let total: f64 = counters.values().map(Counter::total).sum();
    let mean = total / (last - first).max(0.001);
    let mut parts: BTreeMap<Cause, (f64, f64)> = BTreeMap::new();
    let mut has_begun = false;
    for pair in times.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let moved = |counter: &Counter| (counter.at(to) - counter.at(from)).max(0.0);
        let bytes: f64 = counters.values().map(moved).sum();
        let is_still = bytes / (to - from) < STILL * mean;
        has_begun |= !is_still;
        let cause = match (is_still, has_begun) {
            (true, false) => Cause::Start,
            (true, true) => Cause::Still,
            (false, _) => cause(run, counters, (from, to)),
        };
        let part = parts.entry(cause).or_default();
        (part.0, part.1) = (part.0 + to - from, part.1 + bytes);
    }
    let part = |(cause, (seconds, bytes))| Part { cause, seconds, bytes };
    let mut parts: Vec<Part> = parts.into_iter().map(part).collect();
    parts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    parts
}

/// The first of the causes that holds from one time to another.
fn cause(run: &Run, counters: &BTreeMap<MachineId, Counter>, (from, to): (f64, f64)) -> Cause {
    let seconds = to - from;
    let (mut said, mut moved, mut held) = (None, 0.0, 0.0);
    for (m, counter) in counters {
        let bytes = counter.at(to) - counter.at(from);
        moved += bytes;
        let Some(flow) = flow_at(run, *m, to) else { continue };
        said = said.or_else(|| flow.limited_by.clone());
        let allowed = flow.allowed_bytes_per_second.map(|allowed| allowed as f64);
        if allowed.is_some_and(|allowed| bytes / seconds >= PATH_FULL * allowed) {
            held += bytes;
        }
    }
    // A test is judged once, at its end.
    let verdict = || run.flows.iter().rev().find_map(|flow| flow.limited_by.clone());
    if let Some(said) = said.or_else(|| (run.begin.command == "perf").then(verdict).flatten()) {
        return Cause::Said(said);
    }
    if moved > 0.0 && held >= moved / 2.0 {
        return Cause::Path;
    }
    let machines = run.machines.iter().map(|machine| machine.m);
    for m in machines {
        let Some(load) = load_at(run, m, to) else { continue };
        let is_full = |percent: Option<f64>, full| percent.is_some_and(|percent| percent >= full);
        if is_full(load.cpu_percent, PROCESSORS_FULL) {
            return Cause::Processors(m);
        }
        if is_full(load.disk_busy_percent, DISK_FULL) {
            return Cause::Disk(m);
        }
        if is_full(memory_percent(load), MEMORY_FULL) {
            return Cause::Memory(m);
        }
    }
    Cause::Unknown
}

/// The memory in use, in percent.
pub(crate) fn memory_percent(load: &Load) -> Option<f64> {
    let (used, total) = (load.memory_used_bytes?, load.memory_total_bytes?);
    (total > 0).then(|| 100.0 * used as f64 / total as f64)
}

fn flow_at(run: &Run, m: MachineId, t: f64) -> Option<&Flow> {
    latest(&run.flows, t, |flow| flow.t).find(|flow| flow.m == m)
}

fn load_at(run: &Run, m: MachineId, t: f64) -> Option<&Load> {
    latest(&run.loads, t, |load| load.t).find(|load| load.m == m)
}

/// The samples of the time before `t`, the latest first. They are in the order of their times but for what clocks of
/// several threads do.
fn latest<T>(samples: &[T], t: f64, time: impl Fn(&T) -> f64 + Copy) -> impl Iterator<Item = &T> {
    let behind = samples.partition_point(|sample| time(sample) <= t + 0.01);
    let samples = samples[..behind].iter().rev();
    samples.take_while(move |sample| time(sample) >= t - SAMPLE_HOLDS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::Origin;
    use hikyaku_run_log::{Machine, Role};

    #[test]
    fn before_the_first_byte_a_run_starts() {
        let m = MachineId(0);
        let samples = [(0.0, 0), (1.0, 0), (2.0, 0), (3.0, 1000), (4.0, 1000)];
        let counter = Counter::new(samples.into_iter(), Origin::Zero);
        let parts = parts(&Run::default(), &BTreeMap::from([(m, counter)]));
        let told: Vec<_> = parts.into_iter().map(|part| (part.cause, part.seconds)).collect();
        let wanted = [(Cause::Start, 2.0), (Cause::Still, 1.0), (Cause::Unknown, 1.0)];
        assert_eq!(told, wanted);
    }

    #[test]
    fn the_first_full_thing_of_each_part_of_the_time_is_named() {
        let (here, there) = (MachineId(0), MachineId(1));
        let machine = |m| Machine { m, name: String::new(), role: Role::Client };
        let mut run = Run { machines: vec![machine(here), machine(there)], ..Run::default() };
        let samples: Vec<(f64, u64)> =
            (0..=60).map(|n| (f64::from(n), u64::from(n.min(50) as u32) * 100)).collect();
        for (t, _) in &samples {
            let flow = Flow { t: *t, m: there, ..Flow::default() };
            let (allowed, said) = match *t {
                t if t <= 10.0 => (Some(110), None),
                t if t > 40.0 => (Some(1000), Some("source".to_owned())),
                _ => (Some(1000), None),
            };
            run.flows.push(Flow { allowed_bytes_per_second: allowed, limited_by: said, ..flow });
            let load = |m| Load { t: *t, m, cpu_percent: Some(20.0), ..Load::default() };
            let (mut ours, mut theirs) = (load(here), load(there));
            ours.cpu_percent = Some(if *t > 10.0 && *t <= 20.0 { 95.0 } else { 20.0 });
            theirs.disk_busy_percent = Some(if *t > 20.0 && *t <= 30.0 { 99.0 } else { 1.0 });
            run.loads.extend([ours, theirs]);
        }
        let counter = Counter::new(samples.into_iter(), Origin::Zero);
        let parts = parts(&run, &BTreeMap::from([(there, counter)]));
        let mut told: Vec<(Cause, f64)> =
            parts.iter().map(|part| (part.cause.clone(), part.seconds)).collect();
        told.sort_by(|a, b| a.0.cmp(&b.0));
        let wanted = [
            Cause::Said("source".to_owned()),
            Cause::Path,
            Cause::Processors(here),
            Cause::Disk(there),
            Cause::Still,
            Cause::Unknown,
        ];
        assert_eq!(told, wanted.map(|cause| (cause, 10.0)));
        assert_eq!(parts.iter().map(|part| part.bytes).sum::<f64>(), 5000.0);
    }
}
