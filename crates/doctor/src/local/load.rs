//! Processor time that this machine, or this control group, did not get, as differences over the run.

use crate::check::{Check, Id, State};
use std::fs;
use std::path::Path;

/// Counters at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Load {
    /// Ticks of all processors, and those among them that the hypervisor gave to others.
    ticks: Option<(u64, u64)>,
    /// Periods of the control group, and those in which it was stopped.
    periods: Option<(u64, u64)>,
}

/// From this share of the time on a loss of processor time counts as harm.
const HARM: f64 = 0.05;

impl Load {
    /// Reads the counters.
    pub(crate) fn read() -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let group = group.lines().find_map(|line| line.strip_prefix("0::/"));
        let file = |group: &str| Path::new("/sys/fs/cgroup").join(group).join("cpu.stat");
        let periods = group.and_then(|group| fs::read_to_string(file(group)).ok());
        Self { ticks: ticks(&stat), periods: periods.and_then(|text| periods_of(&text)) }
    }

    /// The load between this sample and `later`.
    pub(crate) fn until(self, later: Self) -> [Check; 2] {
        let steal = share(self.ticks, later.ticks);
        let throttled = share(self.periods, later.periods);
        [
            check(Id::Steal, steal, "the hypervisor gave to others", "processor time")
                .with_remedy_if(steal, "a machine that does not share its processors"),
            check(Id::Throttling, throttled, "the control group was stopped in", "its periods")
                .with_remedy_if(
                    throttled,
                    "a larger cpu.max for the control group: see /proc/self/cgroup",
                ),
        ]
    }
}

impl Check {
    fn with_remedy_if(self, share: Option<f64>, remedy: &str) -> Self {
        if share.is_some_and(|share| share >= HARM) { self.with_remedy(remedy) } else { self }
    }
}

fn check(id: Id, share: Option<f64>, what: &str, of: &str) -> Check {
    let Some(share) = share else { return Check::new(id, State::Skip, "the kernel does not tell") };
    let percent = share * 100.0;
    let state = if share >= HARM { State::Warn } else { State::Ok };
    Check::new(id, state, format!("{what} {percent:.1} % of {of}")).measured(percent, "%")
}

/// The part of the second counter in the growth of the first; `None` if it did not grow.
fn share(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<f64> {
    let ((all, part), (all_after, part_after)) = (before?, after?);
    let grown = all_after.checked_sub(all).filter(|&grown| grown > 0)?;
    Some(part_after.saturating_sub(part) as f64 / grown as f64)
}

/// The line `cpu` of /proc/stat (proc_stat(5)): user, nice, system, idle, iowait, irq, softirq, steal.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = line.split_whitespace().take(8).map_while(|n| n.parse().ok()).collect();
    Some((ticks.iter().sum(), *ticks.get(7)?))
}

/// `nr_periods` and `nr_throttled` of a control group's cpu.stat.
fn periods_of(text: &str) -> Option<(u64, u64)> {
    let of = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name).and_then(|(_, value)| value.trim().parse().ok())
    };
    Some((of("nr_periods")?, of("nr_throttled")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_given_to_others_is_a_share_of_the_growth() {
        let at = |idle: u64, steal: u64| Load {
            ticks: ticks(&format!("cpu  10 0 10 {idle} 0 0 0 {steal} 0 0\ncpu0 1\n")),
            periods: None,
        };
        let [steal, throttling] = at(100, 0).until(at(180, 20));
        assert_eq!(steal.measure.map(|measure| measure.value), Some(20.0));
        assert_eq!(steal.state, State::Warn);
        assert!(steal.remedy.is_some());
        assert_eq!(throttling.state, State::Skip);
        let [steal, _] = at(100, 0).until(at(199, 1));
        assert_eq!((steal.state, steal.remedy), (State::Ok, None));
        let [steal, _] = at(100, 0).until(at(100, 0));
        assert_eq!(steal.state, State::Skip);
    }

    #[test]
    fn a_stopped_group_is_seen() {
        let at = |all: u64, part: u64| {
            let text = format!("usage_usec 5\nnr_periods {all}\nnr_throttled {part}\n");
            Load { ticks: None, periods: periods_of(&text) }
        };
        let [_, throttling] = at(10, 1).until(at(20, 6));
        assert_eq!(throttling.measure.map(|measure| measure.value), Some(50.0));
        assert_eq!(throttling.state, State::Warn);
    }
}
