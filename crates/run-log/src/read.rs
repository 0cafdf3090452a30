//! Reading of logs. A log may come of another machine, so whatever it has is bounded.

use crate::line::{Begin, End, FileLine, Flow, Line, Load, Machine, Point};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The contents of a log.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The subject of the log.
    pub begin: Begin,
    /// The machines, the one that wrote the log first.
    pub machines: Vec<Machine>,
    /// Samples of machines.
    pub loads: Vec<Load>,
    /// Samples of the transfer with each machine.
    pub flows: Vec<Flow>,
    /// Begins and ends of files.
    pub files: Vec<FileLine>,
    /// The points of a sweep.
    pub points: Vec<Point>,
    /// How it ended; `None` if the program was killed or still runs.
    pub end: Option<End>,
    /// Lines that are not understood.
    pub skipped: u64,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}", path.display())]
pub struct ReadError {
    path: PathBuf,
    #[source]
    cause: Cause,
}

#[derive(Debug, thiserror::Error)]
enum Cause {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("its first line does not begin a log")]
    NoLog,
    #[error("a newer hikyaku has written it: it has version {0} of the format")]
    Newer(u32),
}

/// Bytes of a file that are read: more than a log has.
const FILE_BYTES_MAX: u64 = 128 << 20;
/// Bytes of a line. A longer one is skipped.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Machines of a log.
const MACHINES_MAX: usize = 4096;
/// Points of a sweep.
const POINTS_MAX: usize = 10_000;

/// Reads a log.
///
/// # Errors
///
/// The file cannot be read, or is no log.
// fuzz: none, each line is parsed by serde_json, and what is kept is bounded
pub fn read(path: &Path) -> Result<Run, ReadError> {
    let error = |cause| ReadError { path: path.to_owned(), cause };
    let file = File::open(path).map_err(|cause| error(cause.into()))?;
    let mut lines = BufReader::new(file.take(FILE_BYTES_MAX));
    let mut run = Run::default();
    let (mut bytes, mut is_first) = (Vec::new(), true);
    while next_line(&mut lines, &mut bytes).map_err(|cause| error(cause.into()))? {
        let line = serde_json::from_slice::<Line>(&bytes);
        if std::mem::take(&mut is_first) {
            match line {
                Ok(Line::Run(begin)) if begin.version == crate::line::VERSION => run.begin = begin,
                Ok(Line::Run(begin)) => return Err(error(Cause::Newer(begin.version))),
                _ => return Err(error(Cause::NoLog)),
            }
            continue;
        }
        match line {
            Ok(line) => run.add(line),
            Err(_) => run.skipped += 1,
        }
    }
    if is_first { Err(error(Cause::NoLog)) } else { Ok(run) }
}

/// The logs of a directory, the oldest first by name; or the path itself, if it is a file.
///
/// # Errors
///
/// The directory cannot be read.
pub fn logs_in(path: &Path) -> Result<Vec<PathBuf>, ReadError> {
    let error = |cause: io::Error| ReadError { path: path.to_owned(), cause: cause.into() };
    if !fs::metadata(path).map_err(error)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut logs = Vec::new();
    for entry in fs::read_dir(path).map_err(error)? {
        let entry = entry.map_err(error)?.path();
        if entry.extension().is_some_and(|extension| extension == "jsonl") {
            logs.push(entry);
        }
    }
    logs.sort();
    Ok(logs)
}

impl Run {
    fn add(&mut self, line: Line) {
        match line {
            Line::Machine(machine) if self.machines.len() < MACHINES_MAX => {
                self.machines.push(machine);
            }
            Line::Load(load) if load.t.is_finite() => self.loads.push(load),
            Line::Flow(flow) if flow.t.is_finite() => self.flows.push(flow),
            Line::File(file) if file.t.is_finite() => self.files.push(file),
            Line::Point(point) if self.points.len() < POINTS_MAX => self.points.push(point),
            Line::End(end) => self.end = Some(end),
            // The first line once more, or one of a newer program.
            Line::Run(_) | Line::Other => {}
            _ => self.skipped += 1,
        }
    }
}

/// Reads a line without its end. One that is too long is returned as an empty one, which is no line of a log.
fn next_line(lines: &mut impl BufRead, into: &mut Vec<u8>) -> io::Result<bool> {
    into.clear();
    let read = lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', into)?;
    if read == 0 {
        return Ok(false);
    }
    if into.last() == Some(&b'\n') {
        into.pop();
    } else if read as u64 == LINE_BYTES_MAX {
        into.clear();
        skip_line(lines)?;
    }
    Ok(true)
}

fn skip_line(lines: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = lines.fill_buf()?;
        let length = buffer.len();
        match buffer.iter().position(|byte| *byte == b'\n') {
            _ if length == 0 => return Ok(()),
            Some(at) => {
                lines.consume(at + 1);
                return Ok(());
            }
            None => lines.consume(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_line_of_a_log_is_skipped() {
        let dir = std::env::temp_dir().join(format!("hikyaku-read-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let path = dir.join("a.jsonl");
        let head = r#"{"type":"run","version":1,"command":"cp","title":"","program":"1","began":"","began_unix":0}"#;
        let long = format!("{{\"type\":\"file\",\"path\":\"{}\"}}", "a".repeat(200_000));
        let text = [
            head,
            r#"{"type":"later","x":[1,2]}"#,
            "{",
            &long,
            r#"{"type":"load","t":1e999,"m":0}"#,
            r#"{"type":"load","t":1,"m":0,"cpu_percent":5,"new":true}"#,
        ];
        fs::write(&path, text.join("\n")).unwrap();
        let run = read(&path).unwrap();
        assert_eq!((run.loads.len(), run.files.len(), run.skipped), (1, 0, 3));
        for (text, words) in [
            ("", "does not begin"),
            ("{}", "does not begin"),
            (&head.replace(":1,", ":2,"), "newer hikyaku"),
        ] {
            fs::write(&path, text).unwrap();
            let error = read(&path).unwrap_err().cause.to_string();
            assert!(error.contains(words), "{error}");
        }
        assert_eq!(logs_in(&dir).unwrap(), std::slice::from_ref(&path));
        assert_eq!(logs_in(&path).unwrap(), [path]);
        fs::remove_dir_all(dir).unwrap();
    }
}
