//! An SFTP server of another machine, which ssh has started, and further commands over the same login.

use crate::child::ended;
use crate::destination::Destination;
use crate::ssh::{Configuration, Form, SshOptions};
use hikyaku_console::{Folder, Scope};
use hikyaku_fs::Token;
use hikyaku_sftp::{Client, Failed};
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// An SFTP server that ssh has started. Dropping it ends ssh.
pub struct SftpServer {
    client: Client,
    child: Child,
    control: Option<Control>,
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

/// A control socket of ssh in a directory of our own, which is removed when it is dropped.
struct Control {
    directory: PathBuf,
}

/// Bytes of a path that ssh can make a socket of. Addresses of Unix sockets have 104 bytes or more; ssh makes the socket
/// under a longer name first.
const SOCKET_PATH_BYTES_MAX: usize = 80;

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
        let control = match sharing {
            Login::Alone => None,
            Login::Shared => Control::new(ssh, login),
        };
        let ssh = control.as_ref().map_or_else(|| ssh.clone(), |control| control.of(ssh, "yes"));
        let words = ssh.sftp(login);
        let spawn_error = |source| {
            let program = words[0].to_string_lossy().into_owned();
            NoSftp::Spawn { program, source }
        };
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        // A signal ends ssh while it logs in; later the session ends by itself.
        let (mut child, _starting) = scope.spawn(&mut command).map_err(spawn_error)?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (input, output) = pipes.ok_or_else(|| spawn_error(io::ErrorKind::BrokenPipe.into()))?;
        match Client::start(output, input) {
            Ok(client) => Ok(Self { client, child, control }),
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
        self.control.as_ref().map_or_else(|| ssh.clone(), |control| control.of(ssh, "no"))
    }
}

impl Drop for SftpServer {
    fn drop(&mut self) {
        self.client.hang_up();
        ended(&mut self.child);
    }
}

impl Control {
    /// `None` where the user's ssh has a shared connection of its own, or there is no fit place for a socket: then each
    /// command logs in.
    fn new(ssh: &SshOptions, login: &Destination) -> Option<Self> {
        let words = ssh.command(login, (None, &[]), Form::Searched).ok()?;
        if Configuration::ask(&words).may_be_shared() {
            return None;
        }
        let place = match Folder::Runtime.of_user() {
            Ok(own) => own.parent()?.to_path_buf(),
            Err(_) => std::env::temp_dir(),
        };
        let token = Token::random().ok()?;
        let token = String::from_utf8_lossy(token.as_bytes());
        let directory = place.join(format!("hikyaku-ssh-{token}"));
        let control = Self { directory };
        // An '%' would mean something to ssh.
        let socket = control.socket();
        let is_fit = socket.as_bytes().len() <= SOCKET_PATH_BYTES_MAX
            && !socket.as_bytes().iter().any(|byte| b"%$\" \t".contains(byte));
        let made = is_fit && DirBuilder::new().mode(0o700).create(&control.directory).is_ok();
        made.then_some(control)
    }

    fn socket(&self) -> OsString {
        self.directory.join("s").into_os_string()
    }

    /// Options with this socket, to which ssh connects, or at which it listens if it is the `master`.
    fn of(&self, ssh: &SshOptions, master: &str) -> SshOptions {
        let mut path = OsString::from("ControlPath=");
        path.push(self.socket());
        let mut ssh = ssh.clone();
        // The first setting of a kind wins.
        let own = [format!("ControlMaster={master}").into(), path, "ControlPersist=no".into()];
        ssh.options.splice(0..0, own);
        ssh
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // ssh removes its socket itself, unless it was killed.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
