//! Running other programs: no shell between, output collected, time limited.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a program may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(3);

/// A program that ended within its time.
pub struct Finished {
    /// How it ended.
    pub status: ExitStatus,
    /// All it wrote to standard output.
    pub stdout: String,
    /// All it wrote to standard error.
    pub stderr: String,
}

impl Finished {
    /// Standard output, or an error with the end of standard error if the program failed.
    pub fn success(self) -> Result<String> {
        if self.status.success() {
            return Ok(self.stdout);
        }
        let lines: Vec<&str> = self.stderr.lines().collect();
        let tail = lines[lines.len().saturating_sub(15)..].join("\n");
        bail!("{}\n{tail}", self.status)
    }
}

/// Runs `command` to its end; after `limit` it is asked to stop, then killed, and an error returned.
///
/// The program stays in the caller's process group, so Ctrl-C reaches it and it can undo what it
/// set up. A grandchild that keeps the pipes open delays nobody.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    let mut running = Running::start(command)?;
    match running.wait(Instant::now() + limit)? {
        Some(finished) => Ok(finished),
        None => {
            let said = running.stop()?.stderr;
            bail!("{} did not end within {} s\n{said}", running.name, limit.as_secs_f64())
        }
    }
}

/// A program that runs beside others. Dropping it ends it.
pub struct Running {
    name: String,
    child: Child,
    stdout: Collector,
    stderr: Collector,
}

impl Running {
    /// Starts it, with nothing to read and its output collected.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let stdout = Collector::start(child.stdout.take());
        let stderr = Collector::start(child.stderr.take());
        Ok(Self { name, child, stdout, stderr })
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until it ends, or `until`.
    pub fn wait(&mut self, until: Instant) -> Result<Option<Finished>> {
        let Some(status) = wait(&mut self.child, until)? else { return Ok(None) };
        Ok(Some(self.finished(status)))
    }

    /// Waits until it ends, for so long at the most.
    pub fn wait_for(&mut self, limit: Duration) -> Result<Option<Finished>> {
        self.wait(Instant::now() + limit)
    }

    /// Kills it, without a word.
    pub fn kill(&mut self) -> Result<()> {
        Ok(self.child.kill()?)
    }

    /// Asks it to end, and kills it if it does not.
    pub fn stop(&mut self) -> Result<Finished> {
        let status = stop(&mut self.child)?;
        Ok(self.finished(status))
    }

    fn finished(&self, status: ExitStatus) -> Finished {
        let drain = Instant::now() + GRACE;
        Finished { status, stdout: self.stdout.text(drain), stderr: self.stderr.text(drain) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // What cannot be ended has ended.
        let _ = stop(&mut self.child);
    }
}

fn stop(child: &mut Child) -> Result<ExitStatus> {
    if let Some(status) = child.try_wait()? {
        return Ok(status);
    }
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended by itself in the meantime: then there is nothing to signal.
        let _ = kill_process(pid, Signal::TERM);
    }
    if let Some(status) = wait(child, Instant::now() + GRACE)? {
        return Ok(status);
    }
    child.kill()?;
    Ok(child.wait()?)
}

fn wait(child: &mut Child, until: Instant) -> Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= until {
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// A pipe being read on its own thread.
struct Collector {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: thread::JoinHandle<()>,
}

impl Collector {
    fn start(pipe: Option<impl Read + Send + 'static>) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&bytes);
        let thread = thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let mut buffer = [0; 16 * 1024];
            while let Ok(count @ 1..) = pipe.read(&mut buffer) {
                sink.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
            }
        });
        Self { bytes, thread }
    }

    /// What came until the pipe closed, or until `until` if it stays open.
    fn text(&self, until: Instant) -> String {
        while !self.thread.is_finished() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_collected() {
        let done = run(Command::new("echo").arg("so"), Duration::from_secs(5)).unwrap();
        assert_eq!(done.success().unwrap(), "so\n");
    }

    #[test]
    fn a_failure_shows_what_the_program_said() {
        let done = run(Command::new("ls").arg("/no/such/path"), Duration::from_secs(5)).unwrap();
        assert!(done.success().unwrap_err().to_string().contains("No such file"));
    }

    #[test]
    fn an_overrun_is_ended() {
        let begin = Instant::now();
        let ended = run(Command::new("sleep").arg("60"), Duration::from_millis(50));
        assert!(ended.is_err_and(|error| error.to_string().contains("did not end")));
        assert!(begin.elapsed() < GRACE);
    }
}
