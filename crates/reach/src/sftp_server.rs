//! An SFTP server of another machine, which ssh has started, and further commands over the same login.

use crate::child::ended;
use crate::destination::Destination;
use crate::shared_login::SharedLogin;
use crate::ssh::SshOptions;
use hikyaku_console::{Scope, Tone, say};
use hikyaku_sftp::{Client, Failed};
use std::io;
use std::process::{Child, Command, Stdio};

/// An SFTP server that ssh has started. Dropping it ends ssh.
pub struct SftpServer {
    client: Client,
    child: Child,
    login: Option<SharedLogin>,
}

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum NoSftp {
    /// ssh cannot be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// What was started is no server.
    #[error("{source}")]
    NoServer {
        /// What ssh ended with: 255 if it has no connection, or the far side no subsystem `sftp`.
        code: Option<i32>,
        /// What was wrong with its first message.
        source: Failed,
    },
}

/// What else goes over the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Login {
    /// Nothing.
    Alone,
    /// Commands with the options of [`SftpServer::ssh`].
    Shared,
}

impl SftpServer {
    /// Starts one at `login`.
    ///
    /// # Errors
    ///
    /// See [`NoSftp`].
    pub fn open(
        ssh: &SshOptions,
        login: &Destination,
        sharing: Login,
        scope: &Scope,
    ) -> Result<Self, NoSftp> {
        let shared = match sharing {
            Login::Alone => None,
            Login::Shared => SharedLogin::new(ssh, login),
        };
        let words =
            shared.as_ref().map_or_else(|| ssh.clone(), |shared| shared.of(ssh)).sftp(login);
        let spawn_error = |source| {
            let program = words[0].to_string_lossy().into_owned();
            NoSftp::Spawn { program, source }
        };
        let by_hand = ssh.by_hand(login);
        say(Tone::Detail, format_args!("starting an SFTP server on {}: {by_hand}", login.host));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A signal ends ssh while it logs in; later the session ends by itself.
        let (mut child, _starting) = scope.spawn(&mut command).map_err(spawn_error)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| spawn_error(io::ErrorKind::BrokenPipe.into()))?;
        match Client::start(output, input) {
            Ok(client) => Ok(Self { client, child, login: shared }),
            Err(source) => {
                let code = ended(&mut child).and_then(|status| status.code());
                Err(NoSftp::NoServer { code, source })
            }
        }
    }

    /// The client of the server.
    pub const fn client(&self) -> &Client {
        &self.client
    }

    /// The options with which ssh goes over the login of this server, if that is shared; else as they are.
    pub fn ssh(&self, ssh: &SshOptions) -> SshOptions {
        self.login.as_ref().map_or_else(|| ssh.clone(), |login| login.of(ssh))
    }
}

impl Drop for SftpServer {
    fn drop(&mut self) {
        self.client.hang_up();
        ended(&mut self.child);
    }
}
