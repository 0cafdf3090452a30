//! A download, with the payload that the link delivers and the number of connections over time.
//!
//! Programs differ in how long they hold received bytes before they write them. The rate of a program that is stopped before
//! its end is therefore that of the payload that the link has delivered to it. The share of this payload that is in the file
//! after the end stands beside it.

use crate::record::row::Row;
use crate::rig::downloader::Downloader;
use crate::rig::files::{same, written};
use crate::rig::goodput::Goodput;
use crate::rig::line::Line;
use crate::rig::web::{NAME, Web};
use anyhow::Result;
use hikyaku_lab::{DirectionReport, Report};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval between two samples of the link and of the connections.
const LOOK: Duration = Duration::from_millis(500);
/// The number of connections is taken from this many samples before the last, because connections run out of work at the end.
const LOOKS_BEFORE_THE_END: usize = 2;
/// Length of the start, whose rate has a column.
const START_SECONDS: f64 = 10.0;
/// Payload of a full packet, and the bytes that it takes on the link, framing included.
pub(crate) const PAYLOAD_SHARE: f64 = 1448.0 / 1538.0;
/// Bytes of the headers of IP and TCP with time stamps.
const HEADER_BYTES: u64 = 52;

/// Measurements of a download.
pub(crate) struct Download {
    /// From the start of the program to its end, or to the signal that stopped it.
    pub(crate) seconds: f64,
    /// Whether it was stopped by a signal.
    is_stopped: bool,
    /// The program's standard output.
    pub(crate) output: String,
    looks: Vec<Seen>,
    link: Report,
}

/// One sample.
#[derive(Clone, Copy, Debug)]
struct Seen {
    seconds: f64,
    /// Bytes of payload that the link has delivered.
    payload: f64,
    connections: usize,
}

impl Download {
    /// Runs a program to its end, or stops it with SIGTERM after `cap`.
    ///
    /// # Errors
    /// The program fails.
    pub(crate) fn run(web: &mut Web, line: &Line, cap: Duration) -> Result<Self> {
        Self::run_with(web, line, cap, &mut |_, _| Ok(()))
    }

    /// Like [`Download::run`], with a call at each sample, which has the seconds since the start and may change the server.
    pub(crate) fn run_with(
        web: &mut Web,
        line: &Line,
        cap: Duration,
        at_look: &mut dyn FnMut(&mut Web, f64) -> Result<()>,
    ) -> Result<Self> {
        web.lab.restart()?;
        let began = Instant::now();
        let mut running = web.start(line)?;
        let mut looks = vec![Seen { seconds: 0.0, payload: 0.0, connections: 0 }];
        loop {
            let next = (Instant::now() + LOOK).min(began + cap);
            let finished = running.wait(next)?;
            let seconds = began.elapsed().as_secs_f64();
            let link = web.lab.report()?;
            let connections = web.connections()?;
            looks.push(Seen { seconds, payload: payload(&link.down), connections });
            if let Some(finished) = finished {
                let output = finished.success()?;
                return Ok(Self { seconds, is_stopped: false, output, looks, link });
            }
            if began.elapsed() >= cap {
                let output = running.stop()?.stdout;
                return Ok(Self { seconds, is_stopped: true, output, looks, link });
            }
            at_look(web, seconds)?;
        }
    }

    /// The row of this download of `source` into `folder`, whose content is compared.
    pub(crate) fn row(&self, who: Downloader, source: &Path, folder: &Path) -> Result<Row> {
        let carried = self.looks.last().map_or(0.0, |look| look.payload);
        let (bytes, kept) = match self.is_stopped {
            true => (carried, written(source, folder)? as f64),
            false => {
                same(source, &folder.join(NAME))?;
                let bytes = fs::metadata(source)?.len() as f64;
                (bytes, bytes)
            }
        };
        let mbit = |bytes: f64, seconds: f64| bytes * 8e-6 / seconds;
        let mut row = Row::new().with("rate", mbit(bytes, self.seconds), "Mbit/s");
        if let Some(look) = self.looks.iter().find(|look| look.seconds >= START_SECONDS) {
            row.push("first 10 s", mbit(look.payload, look.seconds), "Mbit/s", None);
        }
        row.push("seconds", self.seconds, "s", None);
        row.push("connections", self.connections() as f64, "", None);
        if let (Downloader::Tuned, Some(n)) = (who, tuned_number(&self.output)) {
            row.push("tuned to", n, "", None);
        }
        row.push("kept", 100.0 * kept / carried, "%", None);
        if self.is_stopped {
            row = row.note("stopped");
        }
        Ok(marked(row, &self.link))
    }

    /// Bits a second between two times, by the samples.
    pub(crate) fn mean(&self, from: f64, to: f64) -> f64 {
        self.goodput().mean(from, to)
    }

    /// Seconds from `from` until the mean of a second was at least `least` bits a second, the second included.
    pub(crate) fn back_after(&self, from: f64, least: f64) -> Option<f64> {
        Some(self.goodput().reaches(least, from)? + 1.0 - from)
    }

    fn goodput(&self) -> Goodput {
        let sums: Vec<_> = self.looks.iter().map(|look| (look.seconds, look.payload)).collect();
        Goodput::of_sums(&sums)
    }

    /// The number of connections shortly before the end.
    fn connections(&self) -> usize {
        let at = self.looks.len().saturating_sub(1 + LOOKS_BEFORE_THE_END);
        self.looks.get(at).map_or(0, |look| look.connections)
    }
}

/// The row with a mark if the relay of the lab was late.
pub(crate) fn marked(row: Row, link: &Report) -> Row {
    if link.valid { row } else { row.note(format!("INVALID: {}", link.problems.join(", "))) }
}

/// Bytes of payload of TCP that one direction of a link has delivered.
pub(crate) fn payload(link: &DirectionReport) -> f64 {
    link.delivered_bytes.saturating_sub(HEADER_BYTES * link.delivered) as f64
}

/// The number of connections that the tuner of `hikyaku get` measured last, by its events.
pub(crate) fn tuned_number(events: &str) -> Option<f64> {
    let events = events.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    events.filter(|event| event["event"] == "epoch").find_map(|event| event["connections"].as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_number_of_the_tuner_counts() {
        let epoch = |n: u32| format!("{{\"event\":\"epoch\",\"connections\":{n}}}");
        let events = [epoch(16), epoch(32), "{\"event\":\"end\",\"connections\":3}".to_owned()];
        assert_eq!(tuned_number(&events.join("\n")), Some(32.0));
        assert_eq!(tuned_number("no event"), None);
    }
}
