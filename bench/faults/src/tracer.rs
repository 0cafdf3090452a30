//! Runs a program and stops it at each call that concerns its files: a [`Watch`] says what becomes of each.
//!
//! Calls that concern us happen one after the other, whatever the threads: while the kernel does one,
//! no other is let in. So the order in which they are seen is the order in which they happened.

use crate::place::Place;
use crate::tracee::{self, Seen};
use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::libc;
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// What becomes of a call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// The kernel does it.
    Do,
    /// The kernel does not see it; the program sees this error.
    Refuse(Errno),
    /// The kernel does it, and the program sees this error.
    DoAndFail(Errno),
    /// It is asked for so many bytes only.
    Shorten(u64),
    /// The program is killed before.
    Kill,
}

/// Who sees the calls.
pub(crate) trait Watch {
    /// Before the kernel does it.
    fn enter(&mut self, seen: &Seen) -> Result<Verdict>;
    /// Behind it: what the kernel said (a negative number is an error).
    fn left(&mut self, seen: &Seen, result: i64) -> Result<()>;
}

/// A program to be run.
pub(crate) struct Job<'a> {
    /// The program of these rigs, which knows `stage`.
    pub(crate) stage: &'a Path,
    /// The program and its arguments.
    pub(crate) command: Vec<OsString>,
    /// What is set in its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Where its files are.
    pub(crate) place: &'a Place,
    /// When it has hung.
    pub(crate) deadline: Duration,
}

/// How it ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum End {
    /// With this code.
    Exit(i32),
    /// By a signal.
    Signal(Signal),
    /// It did not end in time.
    Hung,
}

/// How it ended and what it said.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// How it ended.
    pub(crate) end: End,
    /// All of standard error.
    pub(crate) stderr: String,
}

const WAIT: WaitPidFlag = WaitPidFlag::__WALL.union(WaitPidFlag::__WNOTHREAD);

/// Runs it under `watch`.
pub(crate) fn run(job: &Job<'_>, watch: &mut dyn Watch) -> Result<Finished> {
    let words = words(job);
    let mut command = Command::new(job.stage);
    command.arg("stage").arg("--").args(&job.command);
    command.envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&words)?);
    let child = command.spawn().context("cannot start the rig's own stage")?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let waited = waitpid(pid, Some(WaitPidFlag::WUNTRACED | WaitPidFlag::__WNOTHREAD))?;
    if waited != WaitStatus::Stopped(pid, Signal::SIGSTOP) {
        bail!("the stage did not wait: {waited:?}");
    }
    let options = Options::PTRACE_O_TRACESYSGOOD
        | Options::PTRACE_O_TRACECLONE
        | Options::PTRACE_O_TRACEFORK
        | Options::PTRACE_O_TRACEVFORK
        | Options::PTRACE_O_TRACEEXEC
        | Options::PTRACE_O_TRACESECCOMP
        | Options::PTRACE_O_EXITKILL;
    ptrace::seize(pid, options).context("cannot trace")?;
    kill(pid, Signal::SIGCONT)?;
    let timer = Timer::start(pid, job.deadline);
    let ended = Tracer { main: pid, place: job.place, watch, end: None }.follow();
    let hung = timer.stop();
    // Whatever ended the watching, nothing of the program may go on unseen.
    let _ = kill(pid, Signal::SIGKILL);
    let end = if hung { End::Hung } else { ended? };
    let stderr = String::from_utf8_lossy(&std::fs::read(&words)?).into_owned();
    Ok(Finished { end, stderr })
}

/// The same program without being watched.
pub(crate) fn run_free(job: &Job<'_>) -> Result<Finished> {
    let words = words(job);
    let [program, arguments @ ..] = job.command.as_slice() else { bail!("no program is named") };
    let mut command = Command::new(program);
    command.args(arguments).envs(job.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&words)?);
    let child = command.spawn().with_context(|| format!("cannot start {}", program.display()))?;
    let pid = Pid::from_raw(i32::try_from(child.id())?);
    let timer = Timer::start(pid, job.deadline);
    let waited = waitpid(pid, Some(WaitPidFlag::__WNOTHREAD))?;
    let end = match waited {
        _ if timer.stop() => End::Hung,
        WaitStatus::Exited(_, code) => End::Exit(code),
        WaitStatus::Signaled(_, signal, _) => End::Signal(signal),
        other => bail!("the program is {other:?}"),
    };
    let stderr = String::from_utf8_lossy(&std::fs::read(&words)?).into_owned();
    Ok(Finished { end, stderr })
}

/// Where standard error goes: beside the areas, so that nothing of it is seen.
fn words(job: &Job<'_>) -> PathBuf {
    job.place.root().join("stderr")
}

/// Kills a program that has hung.
struct Timer {
    over: Sender<()>,
    fired: Arc<AtomicBool>,
}

impl Timer {
    fn start(pid: Pid, deadline: Duration) -> Self {
        let (over, is_over) = channel();
        let fired = Arc::new(AtomicBool::new(false));
        let mark = fired.clone();
        thread::spawn(move || {
            if is_over.recv_timeout(deadline) == Err(RecvTimeoutError::Timeout) {
                mark.store(true, Ordering::SeqCst);
                // It may have ended in this very moment.
                let _ = kill(pid, Signal::SIGKILL);
            }
        });
        Self { over, fired }
    }

    fn stop(&self) -> bool {
        // The timer may have gone off.
        let _ = self.over.send(());
        self.fired.load(Ordering::SeqCst)
    }
}

struct Tracer<'a> {
    main: Pid,
    place: &'a Place,
    watch: &'a mut dyn Watch,
    end: Option<End>,
}

impl Tracer<'_> {
    /// Until the program has ended.
    fn follow(mut self) -> Result<End> {
        loop {
            let status = match waitpid(None, Some(WAIT)) {
                Ok(status) => status,
                Err(Errno::ECHILD) => break,
                Err(Errno::EINTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            match self.handle(status) {
                // It was killed meanwhile: its end is seen next.
                Err(error) if error.downcast_ref::<Errno>() == Some(&Errno::ESRCH) => {}
                handled => handled?,
            }
        }
        self.end.context("the program vanished")
    }

    fn handle(&mut self, status: WaitStatus) -> Result<()> {
        match status {
            WaitStatus::Exited(pid, code) if pid == self.main => self.end = Some(End::Exit(code)),
            WaitStatus::Signaled(pid, signal, _) if pid == self.main => {
                self.end = Some(End::Signal(signal));
            }
            WaitStatus::PtraceEvent(pid, _, libc::PTRACE_EVENT_SECCOMP) => self.call(pid)?,
            WaitStatus::PtraceEvent(pid, ..) | WaitStatus::PtraceSyscall(pid) => {
                ptrace::cont(pid, None)?;
            }
            WaitStatus::Stopped(pid, signal) => ptrace::cont(pid, signal)?,
            _ => {}
        }
        Ok(())
    }

    fn call(&mut self, thread: Pid) -> Result<()> {
        let regs = ptrace::getregs(thread)?;
        if regs.orig_rax as i64 == libc::SYS_prctl {
            tracee::skip(thread, &regs, 0)?;
            return Ok(ptrace::cont(thread, None)?);
        }
        let Some(seen) = Seen::look(thread, &regs, self.place) else {
            return Ok(ptrace::cont(thread, None)?);
        };
        let verdict = self.watch.enter(&seen)?;
        match verdict {
            Verdict::Refuse(errno) => {
                tracee::skip(thread, &regs, -i64::from(errno as i32))?;
                return Ok(ptrace::cont(thread, None)?);
            }
            Verdict::Kill => {
                kill(self.main, Signal::SIGKILL)?;
                return Ok(());
            }
            Verdict::Shorten(length) => tracee::shorten(thread, &regs, length)?,
            Verdict::Do | Verdict::DoAndFail(_) => {}
        }
        ptrace::syscall(thread, None)?;
        let status = waitpid(thread, Some(WAIT))?;
        if status != WaitStatus::PtraceSyscall(thread) {
            // Killed within the call.
            return self.handle(status);
        }
        let result = tracee::result(thread, &regs)?;
        self.watch.left(&seen, result)?;
        if let Verdict::DoAndFail(errno) = verdict {
            tracee::answer(thread, -i64::from(errno as i32))?;
        }
        Ok(ptrace::cont(thread, None)?)
    }
}
