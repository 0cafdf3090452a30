//! The user's `ssh` as a process: how it begins, and how it ends.

use crate::watch::Gone;
use hikyaku_console::{Registration, Scope};
use rustix::io::ioctl_fionread;
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// `ssh`, with the far side at its other end. Dropping it ends it.
pub(crate) struct Ssh {
    child: Arc<Mutex<Child>>,
    sharing: Sharing,
    /// Nothing more comes from the far side: its program has ended.
    is_over: Arc<AtomicBool>,
    /// A signal ends it while it gets in.
    starting: Option<Registration>,
}

/// Who uses its connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sharing {
    Alone,
    /// Other sessions may go by it (ControlMaster): it must not be ended under them.
    Others,
}

/// The exit code of `ssh` if it has no connection, or lost it, or the far side was killed (ssh(1)).
pub const NO_CONNECTION: i32 = 255;

/// When the far side has nothing more to say, `ssh` ends by itself after a round trip or two. One that does not
/// has no connection any more.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);

impl Ssh {
    /// Starts it; gives what it says, too.
    pub(crate) fn spawn(
        words: &[OsString],
        sharing: Sharing,
        scope: &Scope,
    ) -> io::Result<(Self, Output)> {
        let (program, arguments) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let (mut child, starting) = scope.spawn(&mut command)?;
        let output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
        let is_over = Arc::<AtomicBool>::default();
        let output = Output(output, is_over.clone());
        let child = Arc::new(Mutex::new(child));
        Ok((Self { child, sharing, is_over, starting: Some(starting) }, output))
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends it something for the far side.
    pub(crate) fn say(&self, bytes: &[u8]) -> io::Result<()> {
        let mut child = self.child();
        let Some(input) = &mut child.stdin else { return Err(io::ErrorKind::BrokenPipe.into()) };
        input.write_all(bytes).and_then(|()| input.flush())
    }

    /// Whether it has read all that it was sent. It begins to once it has logged in.
    pub(crate) fn has_read_all(&self) -> bool {
        self.child().stdin.as_ref().is_some_and(|input| ioctl_fionread(input).is_ok_and(|n| n == 0))
    }

    /// The far side runs: from here on a signal ends the copy, and with it `ssh`.
    pub(crate) fn has_started(&mut self) {
        self.starting = None;
    }

    /// Its input, for who sends more.
    pub(crate) fn take_input(&self) -> Option<ChildStdin> {
        self.child().stdin.take()
    }

    /// How it has ended, if it does within `patience`.
    pub(crate) fn ended(&self, patience: Duration) -> Option<ExitStatus> {
        let begin = Instant::now();
        loop {
            if let Ok(Some(status)) = self.child().try_wait() {
                return Some(status);
            }
            if begin.elapsed() >= patience {
                return None;
            }
            thread::sleep(LOOK);
        }
    }

    /// Says, once its channel has ended, what that means for the far side, which is `who`.
    pub(crate) fn why(&self, who: String) -> impl FnOnce() -> Gone + Send + 'static {
        let child = self.child.clone();
        move || {
            let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
            let code = child.try_wait().ok().flatten().and_then(|status| status.code());
            if code == Some(NO_CONNECTION) { Gone::Lost } else { Gone::Ended(who) }
        }
    }
}

impl Drop for Ssh {
    fn drop(&mut self) {
        // The far side has said its last word, or there is nobody to say it to. The end of its input says so.
        drop(self.take_input());
        if self.ended(GRACE).is_some() {
            return;
        }
        if self.sharing == Sharing::Others {
            if self.is_over.load(Ordering::Acquire) {
                // Others still use it: it ends when they do.
                return;
            }
            let id = Pid::from_child(&self.child());
            let _ = kill_process(id, Signal::TERM);
            if self.ended(GRACE).is_some() {
                return;
            }
        }
        let mut child = self.child();
        let _ = child.kill();
        let _ = child.wait();
    }
}

/// What the far side says; its end is marked.
pub(crate) struct Output(ChildStdout, Arc<AtomicBool>);

impl Read for Output {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(bytes);
        if !bytes.is_empty() && !matches!(&read, Ok(length) if *length > 0) {
            self.1.store(true, Ordering::Release);
        }
        read
    }
}
