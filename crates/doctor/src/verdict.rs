//! The limit of a transfer, derived from the measurements.
//!
//! The lowest measured rate is the limit. If that is the rate of the path, the test shows the reason: its
//! host dropped datagrams, a thread was busy, the reader was slow, or the link had a queue or loss.

use crate::check::Id;
use crate::far::{Path, share};
use crate::local::Facts;
use hikyaku_perf::{Direction, LimitedBy, Measured};
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt;

/// The end of a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum End {
    /// This machine.
    Near,
    /// The host.
    Far,
}

/// The kind of a limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "limited_by", content = "at")]
pub(crate) enum Limit {
    /// The link between the hosts.
    Path,
    /// A processor core, all of whose time one thread took.
    Processor(End),
    /// A socket buffer that was full.
    SocketBuffer(End),
    /// The receive window: the reader was slow, or the window is small.
    ReceiveWindow(End),
    /// The disk of the directory that was named.
    Disk,
    /// The encryption rate of one core.
    Cipher,
    /// The rate of UDP within this machine.
    Udp,
    /// Nothing was found: the test was too short, or too little was sent.
    NotFound,
}

/// A verdict on one direction, or on this machine alone.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(crate) struct Verdict {
    /// `to HOST`, `from HOST`, or `this machine`.
    pub(crate) way: String,
    #[serde(flatten)]
    pub(crate) limit: Limit,
    /// Bits per second.
    pub(crate) bits_per_second: Option<u64>,
    /// The check with the details.
    pub(crate) see: Option<Id>,
}

/// From this share of dropped datagrams on the drops explain the rate.
const DROPS: f64 = 0.001;

/// The verdicts on what was measured.
pub(crate) fn verdicts(facts: &Facts, path: &Path, host: Option<&str>) -> Vec<Verdict> {
    let Some(host) = host else { return vec![alone(facts)] };
    let both = [(Direction::Upload, &path.up), (Direction::Download, &path.down)];
    let measured = both.into_iter().filter_map(|(way, measured)| Some((way, measured.as_ref()?)));
    measured.map(|(direction, measured)| of_path(direction, measured, facts, host)).collect()
}

/// The lowest rate of this machine.
fn alone(facts: &Facts) -> Verdict {
    let rates = [
        (facts.cipher, Limit::Cipher, Id::Cipher),
        (facts.loopback, Limit::Udp, Id::UdpLoopback),
        (facts.disk_write, Limit::Disk, Id::Disk),
        (facts.disk_read, Limit::Disk, Id::Disk),
    ];
    let known = rates.into_iter().filter_map(|(rate, limit, id)| Some((rate?, limit, id)));
    let lowest = known.min_by_key(|(rate, ..)| rate.bits_per_sec());
    let (rate, limit, see) = lowest
        .map_or((None, Limit::NotFound, None), |(rate, limit, id)| (Some(rate), limit, Some(id)));
    let bits_per_second = rate.map(Rate::bits_per_sec);
    Verdict { way: "this machine".to_owned(), limit, bits_per_second, see }
}

fn of_path(direction: Direction, measured: &Measured, facts: &Facts, host: &str) -> Verdict {
    let path = measured.bits_per_second.max(0.0) as u64;
    let (way, disk, own) = match direction {
        Direction::Upload => (format!("to {host}"), facts.disk_read, Id::PathUp),
        Direction::Download => (format!("from {host}"), facts.disk_write, Id::PathDown),
    };
    if let Some(disk) = disk.map(Rate::bits_per_sec).filter(|&disk| disk < path) {
        let see = Some(Id::Disk);
        return Verdict { way, limit: Limit::Disk, bits_per_second: Some(disk), see };
    }
    let (limit, see) = of_test(direction, measured, own);
    Verdict { way, limit, bits_per_second: Some(path), see: Some(see) }
}

/// The limit of a test.
fn of_test(direction: Direction, measured: &Measured, own: Id) -> (Limit, Id) {
    let (near, far) = (measured.near, measured.far);
    let (receiver, drops) = match direction {
        Direction::Upload => (End::Far, far.drops),
        Direction::Download => (End::Near, near.drops),
    };
    if share(drops, measured) >= DROPS {
        return (Limit::SocketBuffer(receiver), Id::SocketDrops);
    }
    match measured.limited_by {
        LimitedBy::Cpu => {
            let is_near = near.busiest_percent >= far.busiest_percent;
            (Limit::Processor(if is_near { End::Near } else { End::Far }), own)
        }
        LimitedBy::Receiver => (Limit::ReceiveWindow(receiver), own),
        LimitedBy::Link => (Limit::Path, own),
        LimitedBy::Target | LimitedBy::Application => (Limit::NotFound, own),
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |end: End| match end {
            End::Near => "of this machine",
            End::Far => "of the host",
        };
        write!(f, "{}: ", self.way)?;
        match self.limit {
            Limit::Path => f.write_str("limited by the path")?,
            Limit::Processor(end) => write!(f, "limited by a processor core {}", at(end))?,
            Limit::SocketBuffer(end) => write!(f, "limited by the socket buffer {}", at(end))?,
            Limit::ReceiveWindow(end) => write!(f, "limited by the receive window {}", at(end))?,
            Limit::Disk => f.write_str("limited by the disk")?,
            Limit::Cipher => f.write_str("limited by encryption on one core")?,
            Limit::Udp => f.write_str("limited by UDP in the kernel")?,
            Limit::NotFound => f.write_str("no limit was found")?,
        }
        match self.bits_per_second {
            Some(bits) => write!(f, ": about {}", Rate::from_bits_per_sec(bits)),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate(bits: u64) -> Option<Rate> {
        Some(Rate::from_bits_per_sec(bits))
    }

    fn test(limited_by: LimitedBy) -> Measured {
        Measured { bits_per_second: 9e8, bytes: 300_000_000, limited_by, ..Measured::default() }
    }

    fn on(measured: Measured, facts: &Facts) -> Verdict {
        let path = Path { up: None, down: Some(measured) };
        verdicts(facts, &path, Some("far")).remove(0)
    }

    #[test]
    fn the_lowest_rate_of_this_machine_is_its_limit() {
        let facts = Facts { cipher: rate(50), loopback: rate(40), ..Facts::default() };
        assert_eq!(verdicts(&facts, &Path::default(), None)[0].limit, Limit::Udp);
        let facts = Facts { disk_write: rate(10), ..facts };
        let verdict = &verdicts(&facts, &Path::default(), None)[0];
        assert_eq!((verdict.limit, verdict.bits_per_second), (Limit::Disk, Some(10)));
    }

    #[test]
    fn the_test_tells_what_limits_a_path() {
        let facts = Facts { cipher: rate(50_000_000_000), ..Facts::default() };
        let shown = |measured| on(measured, &facts).to_string();
        assert_eq!(shown(test(LimitedBy::Link)), "from far: limited by the path: about 900 Mbit/s");
        let mut busy = test(LimitedBy::Cpu);
        busy.far.busiest_percent = 99.0;
        assert!(shown(busy).contains("a processor core of the host"));
        assert!(shown(test(LimitedBy::Receiver)).contains("receive window of this machine"));
        assert!(shown(test(LimitedBy::Application)).contains("no limit was found"));
        let mut dropped = test(LimitedBy::Link);
        dropped.near.drops = 5_000;
        assert!(shown(dropped).contains("socket buffer of this machine"));
    }

    #[test]
    fn a_disk_slower_than_the_path_is_the_limit_of_its_direction() {
        let facts = Facts { disk_write: rate(100_000_000), ..Facts::default() };
        let verdict = on(test(LimitedBy::Link), &facts);
        assert_eq!((verdict.limit, verdict.bits_per_second), (Limit::Disk, Some(100_000_000)));
        let up = Path { up: Some(test(LimitedBy::Link)), down: None };
        assert_eq!(verdicts(&facts, &up, Some("far"))[0].limit, Limit::Path);
    }
}
