//! Reports the two tests of a `--bidir` run together.

use super::{Format, Output, Sink, text};
use crate::plan::Direction;
use crate::report::{End, IntervalReport, Report, Start, first_socket, pair_end, pair_start};

/// Prefix of a test's lines by its direction, seen from the client. iperf3 marks them the same way.
const fn mark(way: Direction) -> &'static str {
    match way {
        Direction::Upload => "TX ",
        Direction::Download => "RX ",
    }
}

impl Output {
    /// The output of one test of the pair.
    pub(crate) fn one_way(sink: Sink, title: String, way: Direction) -> Self {
        let output = Self::new(sink, title, mark(way).to_owned());
        Self { way: Some(way), sends: way == Direction::Upload, ..output }
    }

    /// Reports the start of both tests.
    pub(crate) fn start_both(&self, up: &Start, down: &Start) {
        match self.sink.format {
            Format::Text => self.sink.write(&head(up, down)),
            Format::Json => {}
            Format::JsonStream => self.event("start", &pair_start(up, down)),
            // The command line refuses it: the lines of both directions would look the same.
            Format::Csv => {}
        }
    }
}

fn head(up: &Start, down: &Start) -> String {
    let mut warnings: Vec<&String> = up.warnings.iter().chain(&down.warnings).collect();
    warnings.sort();
    warnings.dedup();
    let warnings: String = warnings.iter().map(|warning| format!("warning: {warning}\n")).collect();
    let ends = [(up, Direction::Upload), (down, Direction::Download)].map(|(start, way)| {
        format!("{}{}", mark(way), text::connection(start, way == Direction::Upload))
    });
    format!("{warnings}{}   {}", ends.concat(), text::head(up))
}

/// Reports the end of both tests; a test that has not begun has no end.
pub(crate) fn end_both(
    starts: &[Option<Start>; 2],
    tests: [(Output, Option<End>); 2],
    error: Option<String>,
) {
    let [(mut up, up_end), (mut down, down_end)] = tests;
    match up.sink.format {
        Format::Text => {
            for (output, end) in [(&up, &up_end), (&down, &down_end)] {
                if let Some(end) = end {
                    let first = first_socket(output.way, end.streams.len());
                    output.lines(&text::end(end, first));
                }
            }
            if let (Some(up_end), Some(down_end)) = (&up_end, &down_end) {
                up.sink.write(&text::both(up_end, down_end));
            }
        }
        Format::Json => {
            let start = match starts {
                [Some(up), Some(down)] => Some(pair_start(up, down)),
                [up, down] => up.clone().or_else(|| down.clone()),
            };
            let intervals =
                beside(std::mem::take(&mut up.intervals), std::mem::take(&mut down.intervals));
            let has_end = up_end.is_some() || down_end.is_some();
            let end = pair_end(up_end, down_end);
            let report = Report {
                title: &up.title,
                start: start.as_ref(),
                intervals: &intervals,
                competitor_intervals: &[],
                end: has_end.then_some(&end),
                error,
            };
            let text = serde_json::to_string_pretty(&report);
            up.sink.write(&format!("{}\n", text.expect("its keys are strings")));
        }
        Format::JsonStream => {
            error.iter().for_each(|error| up.event("error", error));
            if up_end.is_some() || down_end.is_some() {
                up.event("end", &pair_end(up_end, down_end));
            }
        }
        Format::Csv => {}
    }
}

/// Pairs the intervals of both tests by number: they have the same length and began within a round
/// trip of each other.
fn beside(up: Vec<IntervalReport>, down: Vec<IntervalReport>) -> Vec<IntervalReport> {
    let (mut up, mut down) = (up.into_iter(), down.into_iter());
    let next = || match (up.next(), down.next()) {
        (Some(up), Some(down)) => Some(up.beside(down)),
        (up, down) => up.or(down),
    };
    std::iter::from_fn(next).collect()
}
