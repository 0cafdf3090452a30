//! Real servers of other projects, for tests: started on loopback addresses, without systemd, each in a directory.
//!
//! A server's directory has the file `processes` with a line for each process: its number and the time when it started.
//! Both together name one process for as long as the machine runs, so only processes that were started here are ended.

pub mod apache;
pub mod authority;
pub mod ftp;
pub mod gfarm;
pub mod gridftp;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// How long a server may take to start or to end.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// The processes of the servers in one directory.
#[derive(Debug)]
pub struct Processes {
    list: PathBuf,
}

/// A process, by its number and the clock tick of its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Process {
    pid: Pid,
    start: u64,
}

impl Processes {
    /// Those recorded in `dir`.
    pub fn of(dir: &Path) -> Self {
        Self { list: dir.join("processes") }
    }

    /// Records the process that wrote its number into `pid_file`, once it has.
    ///
    /// # Errors
    ///
    /// It does not within [`PATIENCE`], or the process has ended.
    pub fn record(&self, pid_file: &Path) -> Result<()> {
        let text = until(|| fs::read_to_string(pid_file).ok().filter(|text| text.ends_with('\n')));
        let text = text.with_context(|| format!("{} does not appear", pid_file.display()))?;
        let pid = text.trim().parse().ok().and_then(Pid::from_raw);
        let pid = pid.with_context(|| format!("{}: no process number", pid_file.display()))?;
        let start = start_of(pid).with_context(|| format!("process {text} has ended"))?;
        let mut list = OpenOptions::new().create(true).append(true).open(&self.list)?;
        Ok(writeln!(list, "{} {start}", pid.as_raw_nonzero())?)
    }

    /// Ends all of them, and returns when they have ended. A process that is gone is left out.
    ///
    /// # Errors
    ///
    /// One of them cannot be ended.
    pub fn end(&self) -> Result<()> {
        let there = self.there();
        for (signal, limit) in [(Signal::TERM, GRACE), (Signal::KILL, PATIENCE)] {
            let alive = || there.iter().filter(|process| process.is_there());
            // A process that ends meanwhile needs no signal.
            for process in alive() {
                let _ = kill_process(process.pid, signal);
            }
            let begin = Instant::now();
            while alive().next().is_some() && begin.elapsed() < limit {
                thread::sleep(LOOK);
            }
        }
        ensure!(!there.iter().any(Process::is_there), "a server does not end");
        there.iter().for_each(Process::end_children);
        fs::remove_file(&self.list).or_else(|error| match error.kind() {
            std::io::ErrorKind::NotFound => Ok(()),
            _ => Err(error.into()),
        })
    }

    /// Sends a signal to the process that was recorded as number `at`, counted from 0. With KILL it returns when the
    /// process has ended.
    ///
    /// # Errors
    ///
    /// There is none, or it has ended.
    pub fn signal(&self, at: usize, signal: Signal) -> Result<()> {
        let text = fs::read_to_string(&self.list)?;
        let process = text.lines().nth(at).and_then(Process::parse);
        let process = process.filter(Process::is_there).context("there is no such process")?;
        kill_process(process.pid, signal)?;
        if signal == Signal::KILL {
            process.end_children();
        }
        let ended = || (signal != Signal::KILL || !process.is_there()).then_some(());
        until(ended).context("a killed process does not end")
    }

    /// Those that have not ended.
    fn there(&self) -> Vec<Process> {
        let text = fs::read_to_string(&self.list).unwrap_or_default();
        text.lines().filter_map(Process::parse).filter(Process::is_there).collect()
    }
}

impl Process {
    fn parse(line: &str) -> Option<Self> {
        let (pid, start) = line.split_once(' ')?;
        Some(Self { pid: Pid::from_raw(pid.parse().ok()?)?, start: start.parse().ok()? })
    }

    /// Ends what a server has left behind: a daemon is the leader of a group, which its children are in.
    fn end_children(&self) {
        // There may be none.
        let _ = kill_process_group(self.pid, Signal::KILL);
    }

    fn is_there(&self) -> bool {
        start_of(self.pid) == Some(self.start)
    }
}

/// Makes `dir`, or takes an empty one or one in which no server runs.
///
/// # Errors
///
/// It has other files, or a server of it runs.
pub fn open(dir: &Path, kind: &str) -> Result<PathBuf> {
    fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let dir = dir.canonicalize()?;
    let mark = dir.join("kind");
    match fs::read_to_string(&mark) {
        Ok(text) if text.trim() == kind => {}
        Ok(text) => bail!("{} belongs to {}", dir.display(), text.trim()),
        Err(_) => {
            ensure!(dir.read_dir()?.next().is_none(), "{} is not empty", dir.display());
            fs::write(mark, kind)?;
        }
    }
    let runs = !Processes::of(&dir).there().is_empty();
    ensure!(!runs, "the servers of {} run\ntry: cargo xtask servers {kind} down", dir.display());
    Ok(dir)
}

/// What `look` finds, within [`PATIENCE`].
pub fn until<T>(mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let begin = Instant::now();
    loop {
        match look() {
            None if begin.elapsed() < PATIENCE => thread::sleep(LOOK),
            found => return found,
        }
    }
}

/// A free TCP port.
fn free_port(ip: IpAddr) -> Result<u16> {
    let listener = TcpListener::bind((ip, 0)).with_context(|| format!("no free port at {ip}"))?;
    Ok(listener.local_addr()?.port())
}

/// Waits until something listens.
fn wait_for_port(ip: IpAddr, port: u16) -> Result<()> {
    let connected = until(|| TcpStream::connect((ip, port)).ok());
    connected.map(drop).with_context(|| format!("nothing listens on {ip} port {port}"))
}

/// The clock tick when a process started (proc_pid_stat(5), field 22); `None` if it has ended.
fn start_of(pid: Pid) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    // The program's name, in parentheses, may have spaces in it. The state is the first field behind it.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn only_recorded_processes_are_ended() {
        let dir = std::env::temp_dir().join(format!("xtask-servers-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let processes = Processes::of(&dir);
        let mut ours = Command::new("sleep").arg("60").spawn().unwrap();
        let mut other = Command::new("sleep").arg("60").spawn().unwrap();
        let pid_file = dir.join("pid");
        fs::write(&pid_file, format!("{}\n", ours.id())).unwrap();
        processes.record(&pid_file).unwrap();
        // The number of another process with another time of start: the number was used again.
        let mut list = OpenOptions::new().append(true).open(&processes.list).unwrap();
        writeln!(list, "{} 1", other.id()).unwrap();
        processes.end().unwrap();
        assert!(!ours.wait().unwrap().success());
        assert!(other.try_wait().unwrap().is_none());
        other.kill().unwrap();
        other.wait().unwrap();
        fs::remove_dir_all(dir).unwrap();
    }
}
