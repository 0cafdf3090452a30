//! Copies where the far side has no hikyaku: by SFTP, which nearly every sshd offers.
//!
//! Files get their names when they are complete, as in a copy by the transport: a file is written under a temporary
//! name and then renamed. The server is a store, and the mover carries files out of it and into it. A copy by
//! SFTP is weaker than one by the transport: the far side computes no hashes, times are whole seconds, owners and
//! extended attributes are not kept, and the rate is that of one TCP connection with the window of ssh's channel (2 MiB
//! in OpenSSH).

mod far_sync;
mod get;
mod moved;
mod put;
mod remote;
#[cfg(test)]
mod tests;

use crate::outcome::failed;
use anyhow::{Error, Result};
use hikyaku_console::Scope;
use hikyaku_job::Meter;
use hikyaku_pair::Options;
use hikyaku_reach::{
    Commands, Destination, Login, NO_CONNECTION, NoSftp, ReachError, SftpServer, SshFailed,
    SshOptions,
};
use hikyaku_sftp::Client;
use hikyaku_store_sftp::SyncDirs;
use hikyaku_transfer::{Durable, FailureKind};
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

    /// What syncs many files of the far side at once, if it may run commands. Nobody is asked for a password a second time.
    fn sync_dirs(&self, (ssh, login): (&SshOptions, &Destination)) -> Option<SyncDirs> {
        let ssh = SshOptions { batch: true, quiet: true, verbose: 0, ..self.ssh(ssh) };
        let is_due = self.commands == Commands::Run;
        is_due.then(|| far_sync::by_shell(|script| ssh.run(login, script)))
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
    /// The host as the user wrote it.
    pub(crate) host: &'a str,
    /// How ssh reaches the host; `None` if nothing but the server is to be used.
    pub(crate) ssh: Option<(&'a SshOptions, &'a Destination)>,
    /// Ends the copy when it is stopped.
    pub(crate) scope: &'a Scope,
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

    /// What syncs many files of the server at once, if files are to be on the disk.
    fn sync_dirs(&self) -> Option<SyncDirs> {
        let is_due = self.options.rules.durable == Durable::Disk;
        self.server.sync_dirs(self.ssh.filter(|_| is_due)?)
    }
}
