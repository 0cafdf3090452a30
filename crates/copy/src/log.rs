//! `--log-dir`: what a copy looked like, for `hikyaku report`.

use crate::plan::CopyPlan;
use crate::show::word;
use anyhow::Result;
use hikyaku_console::{ExitCode, Tone, say};
use hikyaku_fs::Shown;
use hikyaku_job::Meter;
pub(crate) use hikyaku_mover::Direction;
use hikyaku_run_log::{End, Flow, Line, MachineId, Recorder, Role, millis};
use hikyaku_stores::Location;
use hikyaku_transfer::LimitedBy;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::Instant;

/// Characters of the title of a log.
const TITLE_CHARS_MAX: usize = 300;

/// Begins the log that the user wants, if any.
pub(crate) fn begin(plan: &CopyPlan) -> Result<Option<Arc<Recorder>>> {
    let Some(dir) = &plan.report.log_dir else { return Ok(None) };
    let mut local =
        [&plan.target].into_iter().chain(&plan.sources).filter_map(|location| match location {
            Location::Local(path) => Some(path),
            _ => None,
        });
    let disk = local.next().and_then(|path| std::path::absolute(path).ok());
    let recorder = Recorder::create(dir, ("cp", &title(plan)), disk)?;
    Ok(Some(Arc::new(recorder)))
}

/// Ends the log. What could not be written of it is told, and is no failure of the copy.
pub(crate) fn end(recorder: &Recorder, code: ExitCode, files: u64, bytes: u64) {
    let (files, bytes) = (Some(files), Some(bytes));
    let end = End { exit_code: code.number(), files, bytes, ..End::default() };
    if let Some(error) = recorder.end(end) {
        say(
            Tone::Warning,
            format_args!("the log {} is not complete: {error}", recorder.path().display()),
        );
    }
}

fn title(plan: &CopyPlan) -> String {
    let paths = plan.report.typed.iter().map(|path| Shown::new(path.as_bytes()).to_string());
    let title = ["cp".to_owned()].into_iter().chain(paths).collect::<Vec<_>>().join(" ");
    title.chars().take(TITLE_CHARS_MAX).collect()
}

/// The log of a copy with one other machine.
#[derive(Clone)]
pub(crate) struct Recording {
    pub(crate) recorder: Arc<Recorder>,
    m: MachineId,
    direction: Direction,
}

impl Recording {
    /// The log of a copy with the machine `name`.
    pub(crate) fn new(recorder: &Arc<Recorder>, name: &str, direction: Direction) -> Self {
        let m = recorder.machine(name, Role::Server);
        Self { recorder: recorder.clone(), m, direction }
    }

    /// Writes samples, if they are due.
    pub(crate) fn poll(&self, meter: &Meter) {
        self.recorder.poll(Instant::now(), |t, lines| lines.push(self.flow(meter, t)));
    }

    /// Writes the last samples of a connection.
    pub(crate) fn last(&self, meter: &Meter) {
        self.recorder.sample(Instant::now(), |t, lines| lines.push(self.flow(meter, t)));
    }

    fn flow(&self, meter: &Meter, t: f64) -> Line {
        let (bytes, path) = (Some(meter.tally().sent()), meter.path());
        let mut flow = Flow { t, m: self.m, ..Flow::default() };
        match self.direction {
            Direction::In => flow.received_bytes = bytes,
            Direction::Out => flow.sent_bytes = bytes,
        }
        if path.sent_packets > 0 {
            flow.sent_packets = Some(path.sent_packets);
            flow.lost_packets = Some(path.lost_packets);
            flow.resent_bytes = Some(path.resent_bytes);
            flow.queue_ms = Some(millis(path.queue));
        }
        if path.rtt > 0.0 {
            flow.rtt_ms = Some(millis(path.rtt));
        }
        if path.rtt > 0.0 || path.limited_by != LimitedBy::Starting {
            flow.limited_by = Some(word(path.limited_by));
        }
        Line::Flow(flow)
    }
}
