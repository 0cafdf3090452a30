//! The writer of a run's log.

use crate::clock::Utc;
use crate::file::{LogError, LogFile, Room};
use crate::line::{Begin, End, FileLine, FileStage, Line, Load, Machine, MachineId, Role, VERSION};
use crate::probe::Probe;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The time between two samples.
pub const SAMPLE_EVERY: Duration = Duration::from_millis(500);
/// Begins and ends of files in a log. More are counted.
const FILES_MAX: u64 = 40_000;
/// Bytes of a path in a log.
const PATH_BYTES_MAX: usize = 4096;

/// Writes the log of a run. Several threads may use it.
///
/// An error of writing ends the log and not the run: [`Recorder::end`] returns it.
#[derive(Debug)]
pub struct Recorder {
    state: Mutex<State>,
    began: Instant,
    path: PathBuf,
}

#[derive(Debug)]
struct State {
    file: LogFile,
    probe: Probe,
    machines: u32,
    /// Those that were asked for by name.
    names: BTreeMap<String, MachineId>,
    /// When the next sample is due.
    due: Instant,
    /// Number of samples that were due.
    samples: u64,
    files: u64,
    untold: u64,
}

impl Recorder {
    /// Begins the log of `command` in the directory `dir`, which is made if it does not exist. `title` describes the
    /// run; `disk` is a path in the file system that the run reads or writes.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made.
    pub fn create(
        dir: &Path,
        (command, title): (&str, &str),
        disk: Option<PathBuf>,
    ) -> Result<Self, LogError> {
        let time = Utc::of(SystemTime::now()).compact();
        let name = format!("{time}-{command}-{}", std::process::id());
        Self::begin(LogFile::create(dir, &name, Room::Thinned)?, (command, title), disk)
    }

    /// Begins the log of a daemon, `NAME.jsonl`. Lines before the last 32 MiB are dropped.
    ///
    /// # Errors
    ///
    /// The directory or the file cannot be made.
    pub fn of_daemon(
        dir: &Path,
        name: &str,
        (command, title): (&str, &str),
        disk: Option<PathBuf>,
    ) -> Result<Self, LogError> {
        Self::begin(LogFile::create(dir, name, Room::Turned)?, (command, title), disk)
    }

    fn begin(
        mut file: LogFile,
        (command, title): (&str, &str),
        disk: Option<PathBuf>,
    ) -> Result<Self, LogError> {
        let (time, began) = (SystemTime::now(), Instant::now());
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let run = Begin {
            version: VERSION,
            command: command.to_owned(),
            title: title.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            began: Utc::of(time).rfc3339(),
            began_unix: thousandths(since.as_secs_f64()),
        };
        let role = if command == "serve" { Role::Server } else { Role::Client };
        let here = Machine { m: MachineId(0), name: host_name(), role };
        file.write_head(&[Line::Run(run), Line::Machine(here)]);
        let path = file.path().to_owned();
        let state = State {
            file,
            probe: Probe::new(disk),
            machines: 1,
            names: BTreeMap::new(),
            due: began + SAMPLE_EVERY,
            samples: 0,
            files: 0,
            untold: 0,
        };
        Ok(Self { state: Mutex::new(state), began, path })
    }

    /// Where the log is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The machine of this name, which is added if it is missing.
    pub fn machine(&self, name: &str, role: Role) -> MachineId {
        let known = self.state().names.get(name).copied();
        known.unwrap_or_else(|| {
            let m = self.add_machine(name, role);
            self.state().names.insert(name.to_owned(), m);
            m
        })
    }

    /// Adds another machine.
    pub fn add_machine(&self, name: &str, role: Role) -> MachineId {
        let mut state = self.state();
        let m = MachineId(state.machines);
        state.machines += 1;
        state.file.write(&[Line::Machine(Machine { m, name: name.to_owned(), role })]);
        m
    }

    /// Writes samples, if they are due: that of this machine, and those that `others` adds. Its argument is the time in
    /// seconds since the begin.
    pub fn poll(&self, now: Instant, others: impl FnOnce(f64, &mut Vec<Line>)) {
        {
            let mut state = self.state();
            if now < state.due {
                return;
            }
            // After a delay only one sample is taken at once.
            state.due = (state.due + SAMPLE_EVERY).max(now);
            state.samples += 1;
            if !state.samples.is_multiple_of(state.file.thinning()) {
                return;
            }
        }
        self.sample(now, others);
    }

    /// Writes samples whether they are due or not.
    pub fn sample(&self, now: Instant, others: impl FnOnce(f64, &mut Vec<Line>)) {
        let t = self.seconds(now);
        let mut lines = Vec::new();
        others(t, &mut lines);
        let mut state = self.state();
        let load = state.probe.take();
        lines.insert(0, Line::Load(Load { t, ..load }));
        state.file.write(&lines);
    }

    /// Writes that a file has begun, or ended.
    pub fn file(&self, stage: FileStage, path: &[u8], bytes: Option<u64>, m: Option<MachineId>) {
        let t = self.seconds(Instant::now());
        let path = String::from_utf8_lossy(&path[..path.len().min(PATH_BYTES_MAX)]).into_owned();
        let mut state = self.state();
        state.files += 1;
        if state.files > FILES_MAX {
            state.untold += 1;
            return;
        }
        state.file.write(&[Line::File(FileLine { t, stage, path, bytes, m })]);
    }

    /// Counts begins and ends of files whose lines were dropped.
    pub fn add_untold(&self, files: u64) {
        self.state().untold += files;
    }

    /// Writes any other lines.
    pub fn write(&self, lines: &[Line]) {
        self.state().file.write(lines);
    }

    /// Ends the log. Its time and the number of dropped lines are added. Returns the first error of writing.
    pub fn end(&self, end: End) -> Option<io::Error> {
        let now = Instant::now();
        let t = self.seconds(now);
        let mut state = self.state();
        let untold_files = state.untold;
        state.file.write_last(Line::End(End { t, untold_files, ..end }));
        state.file.take_lost()
    }

    /// Seconds since the begin of the log.
    pub fn seconds(&self, now: Instant) -> f64 {
        thousandths(now.saturating_duration_since(self.began).as_secs_f64())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn thousandths(seconds: f64) -> f64 {
    (seconds * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests;
