//! Where the figures go: lines for people, one JSON object, or one JSON object a line.

mod text;

use crate::compete::CompetitorCount;
use crate::report::{self, CompetitorInterval, End, IntervalReport, Report, Start};
use crate::session::Interval;
use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// How figures are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    Text,
    /// One object at the end.
    Json,
    /// An object for each event.
    JsonStream,
}

/// Where all tests of this process write. Clones mean the same.
#[derive(Clone)]
pub(crate) struct Sink {
    to: Arc<Mutex<Box<dyn Write + Send>>>,
    pub(crate) format: Format,
}

/// The output of one test.
pub(crate) struct Output {
    sink: Sink,
    title: String,
    /// Before each line, if several tests share the sink.
    prefix: String,
    sends: bool,
    start: Option<Start>,
    intervals: Vec<IntervalReport>,
    competitors: Vec<CompetitorInterval>,
}

impl Sink {
    /// Standard output, or the end of `file`.
    pub(crate) fn open(format: Format, file: Option<&Path>) -> Result<Self> {
        let to: Box<dyn Write + Send> = match file {
            None => Box::new(io::stdout()),
            Some(path) => {
                let file = OpenOptions::new().create(true).append(true).open(path);
                Box::new(file.with_context(|| format!("cannot write {}", path.display()))?)
            }
        };
        Ok(Self { to: Arc::new(Mutex::new(to)), format })
    }

    fn write(&self, text: &str) {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        // A reader that has gone away does not end a measurement.
        let _ = to.write_all(text.as_bytes()).and_then(|()| to.flush());
    }

    /// A line for people, if they are who reads.
    pub(crate) fn note(&self, line: &str) {
        if self.format == Format::Text {
            self.write(&format!("{line}\n"));
        }
    }
}

impl Output {
    pub(crate) fn new(sink: Sink, title: String, prefix: String) -> Self {
        Self {
            sink,
            title,
            prefix,
            sends: false,
            start: None,
            intervals: Vec::new(),
            competitors: Vec::new(),
        }
    }

    /// What stands in for an output that is in use elsewhere.
    pub(crate) fn silent() -> Self {
        let to: Box<dyn Write + Send> = Box::new(io::sink());
        let sink = Sink { to: Arc::new(Mutex::new(to)), format: Format::Text };
        Self::new(sink, String::new(), String::new())
    }

    /// The test begins; `sends` says whether this end is the sender.
    pub(crate) fn start(&mut self, start: Start, sends: bool) {
        self.sends = sends;
        match self.sink.format {
            Format::Text => self.lines(&text::start(&start, sends)),
            Format::Json => {}
            Format::JsonStream => self.event("start", &start),
        }
        self.start = Some(start);
    }

    /// An interval has ended.
    pub(crate) fn interval(&mut self, interval: &Interval) {
        let report = report::interval(interval, self.sends);
        match self.sink.format {
            Format::Text => self.lines(&text::interval(&report)),
            Format::Json => self.intervals.push(report),
            Format::JsonStream => self.event("interval", &report),
        }
    }

    /// An interval of the competitors has ended.
    pub(crate) fn competitors(&mut self, count: &CompetitorCount) {
        let report = report::competitors(count);
        match self.sink.format {
            Format::Text => self.lines(&text::competitors(&report)),
            Format::Json => self.competitors.push(report),
            Format::JsonStream => self.event("competitors", &report),
        }
    }

    /// The test is over, well or not.
    pub(crate) fn end(&self, end: Option<&End>, error: Option<String>) {
        match self.sink.format {
            Format::Text => {
                if let Some(end) = end {
                    self.lines(&text::end(end));
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
        }
    }

    /// A line for people.
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
        #[derive(Serialize)]
        struct Line<'a, T> {
            event: &'static str,
            data: &'a T,
        }
        let text = serde_json::to_string(&Line { event, data });
        self.sink.write(&format!("{}\n", text.expect("its keys are strings")));
    }
}
