//! What a transfer achieved, in one form whichever program made it.

use crate::rig::goodput::{Goodput, Interval};
use anyhow::{Context, Result, ensure};
use serde_json::Value;

#[cfg(test)]
mod tests;

/// What the receiver counted, and what the programs said.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfer {
    /// Payload over time, in the receiver's count. Empty for programs that do not tell.
    pub(crate) goodput: Goodput,
    /// All payload.
    pub(crate) bytes: f64,
    /// In how long.
    pub(crate) seconds: f64,
    /// The transport's own words if it broke.
    pub(crate) error: Option<String>,
    /// Bytes that were not what was sent, if the receiver checked.
    pub(crate) wrong: Option<f64>,
    /// What only our own program tells.
    pub(crate) ours: Ours,
}

/// What `hikyaku perf` tells beyond the others.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ours {
    /// From the first handshake packet to the zero of the receiver's clock, in seconds.
    pub(crate) since_first_packet: f64,
    pub(crate) warnings: Vec<String>,
    pub(crate) limited_by: String,
    /// Each connection by itself.
    pub(crate) streams: Vec<Goodput>,
    pub(crate) client: Usage,
    pub(crate) server: Usage,
}

/// What one end used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) cpu_seconds: f64,
    pub(crate) rss_bytes: f64,
    /// Datagrams that the host had no room for.
    pub(crate) host_drops: f64,
}

impl Transfer {
    /// Bits a second over the whole run.
    pub(crate) fn whole(&self) -> f64 {
        if self.seconds > 0.0 { self.bytes * 8.0 / self.seconds } else { 0.0 }
    }

    /// From the report of `hikyaku perf -c -J`.
    pub(crate) fn of_perf(text: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(text).context("perf printed no JSON")?;
        if let Some(error) = report["error"].as_str() {
            anyhow::bail!("perf: {error}");
        }
        let received = match &report["end"]["sum_received_whole"] {
            Value::Null => &report["end"]["sum_received"],
            whole => whole,
        };
        ensure!(received.is_object(), "perf's report says nothing of what was received");
        let (start, end) = (&report["start"], &report["end"]);
        let intervals = report["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        let count =
            intervals.first().and_then(|first| first["streams"].as_array()).map_or(0, Vec::len);
        let stream = |index: usize| goodput(intervals.iter().map(|i| &i["streams"][index]));
        let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let warnings = start["warnings"].as_array().map_or(&[][..], Vec::as_slice);
        let usage = |end_name: &str| Usage {
            cpu_seconds: number(&end["cpu"][format!("{end_name}_seconds")]),
            rss_bytes: number(&end[format!("max_rss_{end_name}_bytes")]),
            host_drops: number(&end[format!("host_drops_{end_name}")]),
        };
        Ok(Self {
            goodput: goodput(intervals.iter().map(|interval| &interval["sum"])),
            bytes: number(&received["bytes"]),
            seconds: number(&received["seconds"]),
            error: None,
            wrong: None,
            ours: Ours {
                since_first_packet: number(&start["since_first_packet"]),
                warnings: warnings.iter().map(words).collect(),
                limited_by: words(&end["limited_by"]),
                streams: (0..count).map(stream).collect(),
                client: usage("local"),
                server: usage("remote"),
            },
        })
    }

    /// From the line that the server of a peer printed.
    pub(crate) fn of_peer(text: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(text.trim()).context("a peer printed no JSON")?;
        let intervals = report["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            goodput: goodput(intervals.iter()),
            bytes: number(&report["bytes"]),
            seconds: number(&report["seconds"]),
            error: report["error"].as_str().map(str::to_owned),
            wrong: report["wrong"].as_f64(),
            ours: Ours::default(),
        })
    }

    /// From the reports of `iperf3 -c -J` and of its server.
    pub(crate) fn of_iperf3(client: &str, server: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(client).context("iperf3 printed no JSON")?;
        if let Some(error) = report["error"].as_str() {
            anyhow::bail!("iperf3: {error}");
        }
        let received = &report["end"]["sum_received"];
        ensure!(received.is_object(), "iperf3's report says nothing of what was received");
        let server: Value = serde_json::from_str(server).unwrap_or_default();
        let intervals = server["intervals"].as_array().map_or(&[][..], Vec::as_slice);
        Ok(Self {
            goodput: goodput(intervals.iter().map(|interval| &interval["sum"])),
            bytes: number(&received["bytes"]),
            seconds: number(&received["seconds"]),
            ..Self::default()
        })
    }

    /// From the line that the receiver of the raw loop printed.
    pub(crate) fn of_rawloop(text: &str) -> Result<Self> {
        let report: Value = serde_json::from_str(text.trim()).context("rawloop printed no JSON")?;
        let seconds = number(&report["seconds"]);
        let bytes = number(&report["gbit_per_s"]) * 1e9 / 8.0 * seconds;
        Ok(Self { bytes, seconds, ..Self::default() })
    }
}

fn goodput<'a>(intervals: impl Iterator<Item = &'a Value>) -> Goodput {
    let interval = |value: &Value| Interval {
        start: number(&value["start"]),
        end: number(&value["end"]),
        bytes: number(&value["bytes"]),
    };
    Goodput::new(intervals.map(interval).collect())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}
