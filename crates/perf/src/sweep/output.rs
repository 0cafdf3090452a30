//! The curve as text, JSON, or CSV.

use crate::output::{Format, Sink};
use hikyaku_run_log::Point;
use hikyaku_units::Rate;
use serde::Serialize;
use std::fmt::Write;

/// What a sweep has measured.
#[derive(Debug, Serialize)]
pub(super) struct Curve {
    title: String,
    host: String,
    /// What a test without a target received, if that was measured.
    #[serde(rename = "capacity_bits_per_second", skip_serializing_if = "Option::is_none")]
    pub(super) capacity: Option<u64>,
    /// The largest target that was met to 97 %, as all smaller ones were.
    #[serde(rename = "knee_bits_per_second", skip_serializing_if = "Option::is_none")]
    pub(super) knee: Option<f64>,
    /// The time at the start of each test that its result leaves out, the longest of all tests.
    pub(super) omitted_seconds: f64,
    pub(super) points: Vec<Point>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<String>,
    #[serde(skip)]
    format: Format,
}

impl Curve {
    pub(super) fn new(host: &str, title: &str, format: Format) -> Self {
        Self {
            title: title.to_owned(),
            host: host.to_owned(),
            capacity: None,
            knee: None,
            omitted_seconds: 0.0,
            points: Vec::new(),
            error: None,
            format,
        }
    }

    /// Adds a point, and tells it at once.
    pub(super) fn add(&mut self, sink: &Sink, (number, count): (usize, usize), point: Point) {
        self.points.push(point);
        match self.format {
            Format::Text => {
                let [target, received] =
                    [point.target_bits_per_second, point.received_bits_per_second].map(rate);
                sink.note(&format!("{number} of {count}: target {target}, received {received}"));
            }
            Format::JsonStream => sink.event("point", &point),
            Format::Json | Format::Csv => {}
        }
    }

    /// Tells the whole curve.
    pub(super) fn end(&self, sink: &Sink) {
        match self.format {
            Format::Text => sink.write(&self.table()),
            Format::Json => {
                let text = serde_json::to_string_pretty(self).expect("its keys are strings");
                sink.write(&format!("{text}\n"));
            }
            Format::JsonStream => sink.event("sweep", self),
            Format::Csv => sink.write(&self.csv()),
        }
    }

    fn table(&self) -> String {
        let mut text = format!(
            "\n{:>12} {:>12} {:>7} {:>7} {:>7} {:>7}\n",
            "target", "received", "", "RTT ms", "queue", "lost"
        );
        for point in &self.points {
            let share = 100.0 * point.received_bits_per_second / point.target_bits_per_second;
            // Writing to a text cannot fail.
            let _ = writeln!(
                text,
                "{:>12} {:>12} {share:>5.1} % {:>7.1} {:>7.1} {:>6.2}%",
                rate(point.target_bits_per_second),
                rate(point.received_bits_per_second),
                point.rtt_ms,
                point.queue_ms,
                point.lost_percent
            );
        }
        let _ = match (&self.error, self.knee) {
            // Some targets were not tried, so nothing follows for the whole.
            (Some(_), _) => writeln!(text, "not all targets were tried"),
            (None, Some(knee)) => {
                writeln!(text, "the largest target that was met to 97 %: {}", rate(knee))
            }
            (None, None) => writeln!(text, "no target was met to 97 %"),
        };
        if self.omitted_seconds > 0.0 {
            let seconds = self.omitted_seconds;
            let _ =
                writeln!(text, "the first {seconds:.1} s of each test, its start-up, are left out");
        }
        text
    }

    fn csv(&self) -> String {
        let mut text =
            "target_bits_per_second,received_bits_per_second,lost_percent,rtt_ms,queue_ms\n"
                .to_owned();
        for point in &self.points {
            let _ = writeln!(
                text,
                "{:.0},{:.0},{:.4},{:.3},{:.3}",
                point.target_bits_per_second,
                point.received_bits_per_second,
                point.lost_percent,
                point.rtt_ms,
                point.queue_ms
            );
        }
        text
    }
}

fn rate(bits_per_second: f64) -> String {
    Rate::from_bits_per_sec(bits_per_second as u64).to_string()
}
