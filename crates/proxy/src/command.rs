//! `--for-command`: the command whose connections are carried. It runs as long as it wants, also where the gateway ends
//! before it because the user drains it.

use crate::transparent::Cgroup;
use anyhow::{Context, Result};
use hikyaku_console::{Exit, Registration, Scope};
use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A command that runs. The scope ends it, whoever stops that.
pub(crate) struct Running {
    waits: JoinHandle<io::Result<ExitStatus>>,
    _registration: Registration,
}

impl Running {
    /// Starts the command in a control group. The receiver is told of its end.
    ///
    /// # Errors
    ///
    /// The shell that starts it cannot be started.
    pub(crate) fn start(
        words: &[OsString],
        cgroup: &Cgroup,
        scope: &Scope,
    ) -> Result<(Self, oneshot::Receiver<()>)> {
        let spawned = scope.spawn(&mut cgroup.command(words));
        let (mut child, registration) = spawned.context("cannot start /bin/sh")?;
        let (over, end) = oneshot::channel();
        let wait = move || {
            let status = child.wait();
            // The gateway may have ended before.
            let _ = over.send(());
            status
        };
        let waits = thread::Builder::new().name("proxy-command".to_owned()).spawn(wait);
        let waits = waits.context("cannot start a thread")?;
        Ok((Self { waits, _registration: registration }, end))
    }

    /// Waits for its end. Returns its exit, as a shell reports it.
    ///
    /// # Errors
    ///
    /// It cannot be waited for.
    pub(crate) fn exit(self) -> Result<Exit> {
        let status = self.waits.join().ok().context("the thread of the command has failed")?;
        status.context("cannot wait for the command").map(Exit::of_command)
    }
}
