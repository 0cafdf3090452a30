//! The table of all pairs as text, JSON or CSV.

use super::{MeshArgs, Pair};
use crate::output::{Format, Sink};
use hikyaku_console::ExitCode;
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt::Write;

/// The pairs so far.
pub(super) struct Table {
    title: String,
    names: Vec<String>,
    pairs: Vec<Pair>,
}

/// A pair as JSON.
#[derive(Serialize)]
struct PairReport<'a> {
    from: &'a str,
    to: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    received_bits_per_second: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost_percent: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
}

#[derive(Serialize)]
struct Report<'a> {
    title: &'a str,
    hosts: &'a [String],
    pairs: Vec<PairReport<'a>>,
}

impl Table {
    pub(super) fn new(args: &MeshArgs) -> Self {
        let names = args.hosts.0.iter().map(|host| host.name.clone()).collect();
        Self { title: args.title.clone(), names, pairs: Vec::new() }
    }

    /// The codes of all failures, if no pair was tested.
    pub(super) fn failures(&self) -> Option<Vec<ExitCode>> {
        self.pairs.iter().map(|pair| Some(pair.measured.as_ref().err()?.code)).collect()
    }

    /// Adds a pair, and tells it at once.
    pub(super) fn add(&mut self, sink: &Sink, pair: Pair) {
        let (from, to) = (&self.names[pair.from], &self.names[pair.to]);
        match (sink.format, &pair.measured) {
            (Format::Text, Ok(measured)) => {
                let rate = rate(measured.received_bits_per_second);
                sink.note(&format!("{from} -> {to}: {rate}"));
            }
            (Format::Text, Err(failed)) => sink.note(&format!("{from} -> {to}: {}", failed.text)),
            (Format::JsonStream, _) => sink.event("pair", &self.report(&pair)),
            (Format::Json | Format::Csv, _) => {}
        }
        self.pairs.push(pair);
    }

    /// Tells all pairs.
    pub(super) fn end(&self, sink: &Sink) {
        let pairs = self.pairs.iter().map(|pair| self.report(pair));
        let report = Report { title: &self.title, hosts: &self.names, pairs: pairs.collect() };
        match sink.format {
            Format::Text => sink.write(&self.text()),
            Format::Json => {
                let text = serde_json::to_string_pretty(&report).expect("its keys are strings");
                sink.write(&format!("{text}\n"));
            }
            Format::JsonStream => sink.event("mesh", &report),
            Format::Csv => sink.write(&csv(&report)),
        }
    }

    fn report<'a>(&'a self, pair: &'a Pair) -> PairReport<'a> {
        let measured = pair.measured.as_ref().ok();
        PairReport {
            from: &self.names[pair.from],
            to: &self.names[pair.to],
            received_bits_per_second: measured.map(|measured| measured.received_bits_per_second),
            rtt_ms: measured.map(|measured| measured.rtt_ms),
            lost_percent: measured.map(|measured| measured.lost_percent),
            error: pair.measured.as_ref().err().map(|failed| failed.text.as_str()),
        }
    }

    /// A row for each host that sends, a column for each that receives.
    fn text(&self) -> String {
        let cell = |from: usize, to: usize| {
            let pair = self.pairs.iter().find(|pair| (pair.from, pair.to) == (from, to));
            match pair.map(|pair| &pair.measured) {
                _ if from == to => String::new(),
                Some(Ok(measured)) => rate(measured.received_bits_per_second),
                Some(Err(_)) => "failed".to_owned(),
                None => "-".to_owned(),
            }
        };
        let width = |column: usize| {
            let cells = (0..self.names.len()).map(|row| cell(row, column).len());
            cells.max().unwrap_or(0).max(self.names[column].len())
        };
        let first = self.names.iter().map(String::len).max().unwrap_or(0).max("from / to".len());
        let mut text = format!("\n{:first$}", "from / to");
        for (column, name) in self.names.iter().enumerate() {
            // Writing to a text cannot fail.
            let _ = write!(text, "  {name:>width$}", width = width(column));
        }
        text.push('\n');
        for (row, name) in self.names.iter().enumerate() {
            let _ = write!(text, "{name:first$}");
            for column in 0..self.names.len() {
                let _ = write!(text, "  {:>width$}", cell(row, column), width = width(column));
            }
            text.push('\n');
        }
        text
    }
}

fn csv(report: &Report<'_>) -> String {
    let mut text = "from,to,received_bits_per_second,rtt_ms,lost_percent\n".to_owned();
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(String::new, |value| format!("{value:.decimals$}"))
    };
    for pair in &report.pairs {
        let _ = writeln!(
            text,
            "{},{},{},{},{}",
            pair.from,
            pair.to,
            number(pair.received_bits_per_second, 0),
            number(pair.rtt_ms, 3),
            number(pair.lost_percent, 4)
        );
    }
    text
}

fn rate(bits_per_second: f64) -> String {
    Rate::from_bits_per_sec(bits_per_second as u64).to_string()
}
