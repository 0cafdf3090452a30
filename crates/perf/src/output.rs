//! Output of the figures: text, one JSON object at the end, or one JSON object for each event.

mod csv;
mod pair;
mod text;

pub(crate) use pair::end_both;

use crate::compete::CompetitorCount;
use crate::log::FlowLog;
use crate::plan::Direction;
use crate::report::{self, CompetitorInterval, End, IntervalReport, Report, Start};
use crate::sample::PathDelta;
use crate::session::Interval;
use anyhow::{Error, Result};
use hikyaku_console::{At, Noise};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Format of the output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Text,
    /// One object at the end.
    Json,
    /// One object for each event, as it happens.
    JsonStream,
    /// A line for each interval and one for the test, of values between commas.
    Csv,
}

/// The output of this process, shared by all tests. Clones share it.
#[derive(Clone)]
pub(crate) struct Sink {
    to: Arc<Mutex<Drain>>,
    pub(crate) format: Format,
}

/// Whether the output could be written.
pub(crate) enum OutputState {
    Written,
    /// The reader of the output has closed it.
    ReaderClosed,
    Failed(Error),
}

/// The destination and its first error.
struct Drain {
    to: Box<dyn Write + Send>,
    name: String,
    /// The first error. After it nothing more is written.
    lost: Option<io::Error>,
    /// Called on the first error.
    on_loss: Option<Box<dyn Fn() + Send>>,
}

/// The output of one test.
pub(crate) struct Output {
    sink: Sink,
    title: String,
    /// Prepended to each line, if several tests share the sink.
    prefix: String,
    /// Direction of this test, if it is one of a `--bidir` pair.
    way: Option<Direction>,
    sends: bool,
    start: Option<Start>,
    intervals: Vec<IntervalReport>,
    competitors: Vec<CompetitorInterval>,
    /// Where each interval is written as well.
    log: Option<FlowLog>,
    /// Where the round-trip time of each interval goes as well.
    round_trips: Option<Arc<Mutex<Vec<f64>>>>,
}

impl Sink {
    /// Opens standard output, or `file` for appending.
    pub(crate) fn open(format: Format, file: Option<&Path>) -> Result<Self> {
        let (to, name): (Box<dyn Write + Send>, String) = match file {
            None => (Box::new(io::stdout()), "standard output".to_owned()),
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                let file = file.at(path.display())?;
                (Box::new(file), path.display().to_string())
            }
        };
        Ok(Self::to(to, name, format))
    }

    fn to(to: Box<dyn Write + Send>, name: String, format: Format) -> Self {
        let drain = Drain { to, name, lost: None, on_loss: None };
        Self { to: Arc::new(Mutex::new(drain)), format }
    }

    fn drain(&self) -> MutexGuard<'_, Drain> {
        self.to.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a text.
    pub(crate) fn write(&self, text: &str) {
        let mut drain = self.drain();
        if drain.lost.is_some() {
            return;
        }
        let written = drain.to.write_all(text.as_bytes()).and_then(|()| drain.to.flush());
        if let Err(error) = written {
            drain.lost = Some(error);
            drain.on_loss.iter().for_each(|call| call());
        }
    }

    /// A sink that discards everything.
    pub(crate) fn silent() -> Self {
        Self::to(Box::new(io::sink()), String::new(), Format::Text)
    }

    /// Calls `action` on the first write error, or at once if there was one already.
    pub(crate) fn on_loss(&self, action: impl Fn() + Send + 'static) {
        let mut drain = self.drain();
        if drain.lost.is_some() {
            action();
        }
        drain.on_loss = Some(Box::new(action));
    }

    /// Whether everything could be written. A reader that has closed the output wanted no more,
    /// which is not an error.
    pub(crate) fn state(&self) -> OutputState {
        let drain = self.drain();
        match &drain.lost {
            None => OutputState::Written,
            Some(error) if error.kind() == ErrorKind::BrokenPipe => OutputState::ReaderClosed,
            Some(error) => {
                let text = format!("cannot write to {}: {error}", drain.name);
                OutputState::Failed(io::Error::new(error.kind(), text).into())
            }
        }
    }

    /// Writes a line, if the format is text.
    pub(crate) fn note(&self, line: &str) {
        if self.format == Format::Text {
            self.write(&format!("{line}\n"));
        }
    }

    /// Writes an event as a JSON object in a line.
    pub(crate) fn event(&self, event: &'static str, data: &impl Serialize) {
        #[derive(Serialize)]
        struct Line<'a, T> {
            event: &'static str,
            data: &'a T,
        }
        let text = serde_json::to_string(&Line { event, data });
        self.write(&format!("{}\n", text.expect("its keys are strings")));
    }
}

impl Output {
    pub(crate) fn new(sink: Sink, title: String, prefix: String) -> Self {
        Self {
            sink,
            title,
            prefix,
            way: None,
            sends: false,
            start: None,
            intervals: Vec::new(),
            competitors: Vec::new(),
            log: None,
            round_trips: None,
        }
    }

    /// The same, and the sender's round-trip time of each interval goes there, in milliseconds.
    pub(crate) fn with_round_trips(self, into: Arc<Mutex<Vec<f64>>>) -> Self {
        Self { round_trips: Some(into), ..self }
    }

    /// Writes what comes into a log as well.
    pub(crate) fn keep(&mut self, log: Option<FlowLog>) {
        self.log = log;
    }

    /// The same, with a log.
    pub(crate) fn with_log(self, log: Option<FlowLog>) -> Self {
        Self { log, ..self }
    }

    /// An output that discards everything; stands in while the real one is in use elsewhere.
    pub(crate) fn silent() -> Self {
        let sink = Sink::silent();
        Self::new(sink, String::new(), String::new())
    }

    /// Reports the start of the test; `sends` says whether this end is the sender.
    pub(crate) fn start(&mut self, start: Start, sends: bool) {
        self.sends = sends;
        match self.sink.format {
            Format::Text => self.lines(&text::start(&start, sends)),
            Format::Json => {}
            Format::JsonStream => self.event("start", &start),
            Format::Csv => self.sink.write(csv::HEAD),
        }
        self.start = Some(start);
    }

    /// The values that were known when the test began.
    pub(crate) fn into_start(self) -> Option<Start> {
        self.start
    }

    /// Reports an interval.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.log.iter_mut().for_each(|log| log.add(interval));
        let path = PathDelta::sum(&interval.path).filter(|path| path.sample.rtt_ms > 0.0);
        if let (Some(round_trips), Some(path)) = (&self.round_trips, path) {
            let mut round_trips = round_trips.lock().unwrap_or_else(PoisonError::into_inner);
            round_trips.push(path.sample.rtt_ms);
        }
        let report = report::interval(interval, self.sends, self.way);
        match self.sink.format {
            Format::Text if Noise::chosen() == Noise::Quiet => {}
            Format::Text => self.lines(&text::interval(&report)),
            Format::Json => self.intervals.push(report),
            Format::JsonStream => self.event("interval", &report),
            Format::Csv => self.sink.write(&csv::interval(&report)),
        }
    }

    /// Reports an interval of the competing flows.
    pub(crate) fn competitors(&mut self, count: &CompetitorCount) {
        let report = report::competitors(count);
        match self.sink.format {
            Format::Text => self.lines(&text::competitors(&report)),
            Format::Json => self.competitors.push(report),
            Format::JsonStream => self.event("competitors", &report),
            Format::Csv => {}
        }
    }

    /// Reports the end of the test, with its result, an error, or both.
    pub(crate) fn end(&self, end: Option<&End>, error: Option<String>) {
        if let (Some(log), Some(end)) = (&self.log, end) {
            log.end(&end.limited_by);
        }
        match self.sink.format {
            Format::Text => {
                if let Some(end) = end {
                    let first = report::first_socket(self.way, end.streams.len());
                    self.lines(&text::end(end, first));
                }
            }
            Format::Json => {
                let report = Report {
                    title: &self.title,
                    start: self.start.as_ref(),
                    intervals: &self.intervals,
                    competitor_intervals: &self.competitors,
                    end,
                    error,
                };
                let text = serde_json::to_string_pretty(&report);
                self.sink.write(&format!("{}\n", text.expect("its keys are strings")));
            }
            Format::JsonStream => {
                if let Some(error) = error {
                    self.event("error", &error);
                }
                if let Some(end) = end {
                    self.event("end", end);
                }
            }
            Format::Csv => self.sink.write(&end.map_or_else(String::new, csv::end)),
        }
    }

    /// Writes a line, if the format is text.
    pub(crate) fn note(&self, line: &str) {
        if self.sink.format == Format::Text {
            self.lines(line);
        }
    }

    fn lines(&self, text: &str) {
        let mut lines = String::new();
        for line in text.lines() {
            lines.push_str(&self.prefix);
            lines.push_str(line);
            lines.push('\n');
        }
        self.sink.write(&lines);
    }

    fn event(&self, event: &'static str, data: &impl Serialize) {
        self.sink.event(event, data);
    }
}
