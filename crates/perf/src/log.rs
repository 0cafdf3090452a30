//! `--log-dir`: what a test looked like, for `hikyaku report`.

use crate::limit::LimitedBy;
use crate::plan::Direction;
use crate::sample::PathDelta;
use crate::session::Interval;
use anyhow::{Context, Result};
use hikyaku_console::{ExitCode, Tone, say};
use hikyaku_run_log::{End, Flow, Line, MachineId, Point, Recorder, Role};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The log of a client's run or of a server, and a thread that samples this machine.
pub(crate) struct RunLog {
    recorder: Arc<Recorder>,
    is_over: Arc<AtomicBool>,
    sampler: Option<JoinHandle<()>>,
}

/// The log of one test: bytes and losses since its begin.
pub(crate) struct FlowLog {
    recorder: Arc<Recorder>,
    m: MachineId,
    direction: Direction,
    bytes: u64,
    path: PathDelta,
}

/// A server without tests is sampled this often.
const IDLE: Duration = Duration::from_secs(60);
/// It is looked this often whether samples are due.
const LOOK: Duration = Duration::from_millis(100);

impl RunLog {
    /// Begins the log of a client in the directory `dir`.
    pub(crate) fn begin(dir: &Path, title: &str) -> Result<Self> {
        Self::sampled(Recorder::create(dir, ("perf", title), None)?, Duration::ZERO)
    }

    /// Begins the log of a server at this port. Without tests it is sampled once a minute.
    pub(crate) fn of_server(dir: &Path, port: u16) -> Result<Self> {
        let (name, title) = (format!("perf-{port}"), format!("perf -s at port {port}"));
        Self::sampled(Recorder::of_daemon(dir, &name, ("serve", &title), None)?, IDLE)
    }

    fn sampled(recorder: Recorder, idle: Duration) -> Result<Self> {
        let recorder = Arc::new(recorder);
        let is_over = Arc::new(AtomicBool::new(false));
        let (polled, ends) = (recorder.clone(), is_over.clone());
        let sample = move || {
            let mut last: Option<Instant> = None;
            while !ends.load(Ordering::Relaxed) {
                let now = Instant::now();
                // Each test has a reference of its own beside that of this thread and that of the log.
                let is_idle = Arc::strong_count(&polled) <= 2;
                if !is_idle || last.is_none_or(|last| now.duration_since(last) >= idle) {
                    polled.poll(now, |_, _| last = Some(now));
                }
                thread::park_timeout(LOOK);
            }
        };
        let sampler = thread::Builder::new().name("perf-log".to_owned()).spawn(sample);
        let sampler = Some(sampler.context("cannot start a thread")?);
        Ok(Self { recorder, is_over, sampler })
    }

    /// The log of a test with `host`.
    pub(crate) fn flow(&self, host: &str, direction: Direction) -> FlowLog {
        let name = match direction {
            Direction::Upload => format!("to {host}"),
            Direction::Download => format!("from {host}"),
        };
        self.flow_with(self.recorder.machine(&name, Role::Server), direction)
    }

    /// The log of a test with a client of this server.
    pub(crate) fn guest(&self, name: &str, direction: Direction) -> FlowLog {
        self.flow_with(self.recorder.add_machine(name, Role::Client), direction)
    }

    fn flow_with(&self, m: MachineId, direction: Direction) -> FlowLog {
        let (recorder, path) = (self.recorder.clone(), PathDelta::default());
        FlowLog { recorder, m, direction, bytes: 0, path }
    }

    /// Writes a point of a sweep.
    pub(crate) fn point(&self, point: Point) {
        self.recorder.write(&[Line::Point(point)]);
    }

    /// Ends the log. What could not be written of it is told, and is no failure of the test.
    pub(crate) fn end(mut self, done: &Result<()>) {
        self.stop();
        let code = done.as_ref().err().map_or(ExitCode::Success, |error| ExitCode::of(error, &[]));
        let end = End { exit_code: code.number(), ..End::default() };
        if let Some(error) = self.recorder.end(end) {
            let path = self.recorder.path().display();
            say(Tone::Warning, format_args!("the log {path} is not complete: {error}"));
        }
    }

    fn stop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(sampler) = self.sampler.take() {
            sampler.thread().unpark();
            // A panic there has been printed.
            let _ = sampler.join();
        }
    }
}

impl Drop for RunLog {
    fn drop(&mut self) {
        self.stop();
    }
}

impl FlowLog {
    /// Writes what has come in an interval.
    pub(crate) fn add(&mut self, interval: &Interval) {
        let streams = interval.count.streams.iter();
        self.bytes = streams.fold(self.bytes, |sum, stream| sum.saturating_add(stream.bytes));
        if let Some(delta) = PathDelta::sum(&interval.path) {
            self.path = self.path.and(&delta);
        }
        self.write(None);
    }

    /// Writes what limited the test.
    pub(crate) fn end(&self, limited_by: &LimitedBy) {
        self.write(Some(limited_by.log_word().to_owned()));
    }

    fn write(&self, limited_by: Option<String>) {
        let mut flow = Flow { m: self.m, limited_by, ..Flow::default() };
        flow.t = self.recorder.seconds(Instant::now());
        match self.direction {
            Direction::Upload => flow.sent_bytes = Some(self.bytes),
            Direction::Download => flow.received_bytes = Some(self.bytes),
        }
        let sample = &self.path.sample;
        if sample.sent_packets > 0 {
            let millis = |value: f64| Some((value * 100.0).round() / 100.0);
            flow.sent_packets = Some(sample.sent_packets);
            flow.lost_packets = Some(sample.lost_packets);
            flow.resent_bytes = Some(sample.resent_bytes);
            (flow.rtt_ms, flow.queue_ms) = (millis(sample.rtt_ms), millis(sample.queue_ms));
        }
        self.recorder.write(&[Line::Flow(flow)]);
    }
}
