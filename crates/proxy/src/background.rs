//! `-f`: the gateway goes to the background when it is ready.
//!
//! The program starts itself once more, with the same words, and shows what that one prints until it is ready. The second one
//! has the terminal until then, so that ssh can ask for a password.

use crate::near::Ready;
use crate::output::tell_listeners;
use anyhow::{Context, Result};
use hikyaku_console::{Exit, ExitCode, announce};
use rustix::stdio::{dup2_stderr, dup2_stdout};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// The variable that tells the second program what it is.
const MARK: &str = "HIKYAKU_PROXY_BACKGROUND";
/// What it prints last.
const READY: &str = "in the background: process ";

/// Which of the two programs this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// The one that the user has started. It ends when the other one is ready.
    First,
    /// The one that goes on.
    Second,
}

impl Part {
    /// Which one this is.
    pub(crate) fn of_this() -> Self {
        if std::env::var_os(MARK).is_some() { Self::Second } else { Self::First }
    }
}

/// Starts the second program, and returns when it is ready. If it ends before, its exit is returned: it has printed the
/// reason.
///
/// # Errors
///
/// It cannot be started.
pub(crate) fn start() -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut child = Command::new(program)
        .args(std::env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("cannot start the program in the background")?;
    let output = child.stdout.take().context("the program has no output")?;
    for line in BufReader::new(output).lines() {
        let line = line.context("cannot read what the program prints")?;
        announce(format!("{line}\n"))?;
        if line.starts_with(READY) {
            return Ok(ExitCode::Success.into());
        }
    }
    child.wait().context("cannot wait for the program").map(Exit::of_command)
}

/// Tells where the gateway listens, and leaves the terminal: a session of its own, and no output.
pub(crate) async fn leave(ready: &Ready) -> Result<()> {
    tell_listeners(ready)?;
    announce(format!("{READY}{}\n", std::process::id()))?;
    // This fails only for the first of a group of processes, which is not of a shell's job then either.
    let _ = rustix::process::setsid();
    let nothing = File::options().read(true).write(true).open("/dev/null");
    let nothing = nothing.context("cannot open /dev/null")?;
    dup2_stdout(&nothing).context("cannot leave the terminal")?;
    dup2_stderr(&nothing).context("cannot leave the terminal")?;
    std::future::pending().await
}
