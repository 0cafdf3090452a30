//! Copies where the far side has no hikyaku: by SFTP, which nearly every sshd offers.
//!
//! Files get their names when they are complete, as in a copy by the transport: a file is written under a temporary
//! name and then renamed. The mover fetches files of the server (`sftp/get.rs`). For files that go to the server this
//! end sends the requests itself, and records its progress ([`Journal`]), so that the same command goes on. A copy by
//! SFTP is weaker than one by the transport: the far side computes no hashes, times are whole seconds, owners and
//! extended attributes are not kept, and the rate is that of one TCP connection with the window of ssh's channel (2 MiB
//! in OpenSSH).

mod above;
mod crew;
mod fault;
mod file;
mod get;
mod journal;
mod links;
mod present;
mod put;
mod remote;
mod resume;
mod settle;
mod small;
#[cfg(test)]
mod tests;
mod upload;

pub(crate) use journal::Journal;
pub(crate) use settle::Settling;

use crate::outcome::failed;
use anyhow::{Error, Result};
use fault::Trouble;
use hikyaku_console::Scope;
use hikyaku_job::Meter;
use hikyaku_pair::Options;
use hikyaku_reach::{
    Commands, Destination, Login, NO_CONNECTION, NoSftp, ReachError, SftpServer, SshFailed,
    SshOptions,
};
use hikyaku_sftp::Client;
use hikyaku_transfer::FailureKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Whether ssh has logged in to the machine before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LoggedIn {
    /// It has: if no server starts, there is none.
    Before,
    /// It has not: if no server starts, the login may have failed.
    NotYet,
}

/// An SFTP server. Dropping it ends ssh, which has started it.
pub(crate) struct Server {
    client: Client,
    /// ssh; `None` if it is another's.
    process: Option<SftpServer>,
    commands: Commands,
}

/// A session with the SFTP server of a far side where hikyaku cannot be started, which somebody else has.
#[derive(Clone, Copy)]
pub struct OpenSftp<'a> {
    /// The client of the server.
    pub client: &'a Client,
    /// Whether the far side runs commands.
    pub commands: Commands,
}

/// What is known of commands, if a far side was not reached because it has no hikyaku, or admits SFTP only.
pub(crate) fn commands(error: &Error) -> Option<Commands> {
    error.chain().find_map(|link| link.downcast_ref::<ReachError>()?.no_program())
}

impl From<SftpServer> for Server {
    fn from(process: SftpServer) -> Self {
        let (client, commands) = (process.client().clone(), Commands::Refused);
        Self { client, process: Some(process), commands }
    }
}

impl Server {
    /// Starts it on the machine at `login`, to which ssh has `logged_in` before or has not. Further commands may go over
    /// the same login if it is shared.
    pub(crate) fn open(
        (ssh, login): (&SshOptions, &Destination),
        (logged_in, sharing): (LoggedIn, Login),
        scope: &Scope,
    ) -> Result<Self> {
        let opened = SftpServer::open(ssh, login, sharing, scope).map_err(|error| match error {
            NoSftp::Spawn { program, source } => {
                Error::new(source).context(format!("cannot start {program}"))
            }
            NoSftp::NoServer { code, source } => {
                let host = login.host.clone();
                // ssh ends so without a subsystem too.
                if code == Some(NO_CONNECTION) && logged_in == LoggedIn::NotYet {
                    let remedy = format!("try: {}", ssh.by_hand(login));
                    return Error::new(SshFailed::Ended { host }).context(remedy);
                }
                let text = format!("{host} has neither hikyaku nor SFTP: {source}");
                let remedy = format!("try: install hikyaku on {host}");
                failed(FailureKind::Unsupported, text.clone()).context(remedy).context(text)
            }
        })?;
        Ok(Self::from(opened))
    }

    /// The server of a session that is another's, and stays open.
    pub(crate) fn of(open: OpenSftp<'_>) -> Self {
        Self { client: open.client.clone(), process: None, commands: open.commands }
    }

    /// The client, unless the session is another's.
    fn own_client(&self) -> Option<&Client> {
        self.process.as_ref().map(|_| &self.client)
    }

    /// The same, as more is known of the far side.
    pub(crate) fn with_commands(self, commands: Commands) -> Self {
        Self { commands, ..self }
    }

    /// What lets many files wait for the disk of the far side together, if it may run commands. Nobody is asked for a
    /// password a second time.
    pub(crate) fn settling(&self, (ssh, login): (&SshOptions, &Destination)) -> Option<Settling> {
        let ssh = SshOptions { batch: true, quiet: true, verbose: 0, ..self.ssh(ssh) };
        let is_due = self.commands == Commands::Run;
        is_due.then(|| Settling::new(|script| ssh.run(login, script)))
    }

    /// The options with which ssh goes over the login of the server, if that is shared.
    pub(crate) fn ssh(&self, ssh: &SshOptions) -> SshOptions {
        self.process.as_ref().map_or_else(|| ssh.clone(), |process| process.ssh(ssh))
    }
}

/// A copy by SFTP.
#[derive(Clone, Copy)]
pub(crate) struct Run<'a> {
    pub(crate) server: &'a Server,
    pub(crate) options: &'a Options,
    pub(crate) meter: &'a Arc<Meter>,
    /// The address that distinguishes the sources of the server from other sources.
    pub(crate) origin: &'a str,
    /// Ends the copy when it is stopped.
    pub(crate) scope: &'a Scope,
    /// What earlier attempts have done; `None` if that is not known, and not to be.
    pub(crate) journal: Option<&'a Journal>,
    /// What syncs many files of the server at once.
    pub(crate) settling: Option<&'a Settling>,
}

impl Run<'_> {
    /// Copies `sources` of this machine to `target` on the server.
    pub(crate) fn put(&self, sources: &[PathBuf], target: &[u8]) -> Result<()> {
        put::put(self, sources, target)
    }

    /// Copies `sources` of the server to `target` on this machine.
    pub(crate) fn get(&self, sources: &[Vec<u8>], target: &Path) -> Result<()> {
        get::get(self, sources, target)
    }

    /// Whether the user has ended the copy.
    fn is_stopped(&self) -> bool {
        self.scope.stop_cause().is_some()
    }

    /// Fails if the user has ended the copy.
    fn go_on(&self) -> Result<(), Trouble> {
        if self.is_stopped() { Err(Trouble::Stopped) } else { Ok(()) }
    }

    /// Counts the failure of a file. Anything else ends the copy.
    fn told(&self, done: Result<(), Trouble>) -> Result<(), Trouble> {
        match done {
            Err(Trouble::File(end, failure)) => {
                self.meter.add_failure(end, &failure);
                Ok(())
            }
            other => other,
        }
    }
}
