//! One login of ssh for several of its commands to a machine.

use crate::destination::Destination;
use crate::ssh::{Configuration, Form, SshOptions};
use hikyaku_console::Folder;
use hikyaku_fs::Token;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;

/// A login that commands of ssh share: the first of them logs in, and the others go over its connection as long as it runs.
/// The socket for that is in a directory of our own, which is removed when this is dropped.
pub struct SharedLogin {
    directory: PathBuf,
}

/// Bytes of a path that ssh can make a socket of. Addresses of Unix sockets have 104 bytes or more; ssh makes the socket
/// under a longer name first.
const SOCKET_PATH_BYTES_MAX: usize = 80;

impl SharedLogin {
    /// `None` where the user's ssh has a shared connection of its own, or there is no fit place for a socket: then each
    /// command logs in.
    pub fn new(ssh: &SshOptions, login: &Destination) -> Option<Self> {
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
        let shared = Self { directory };
        // An '%' would mean something to ssh.
        let socket = shared.socket();
        let is_fit = socket.as_bytes().len() <= SOCKET_PATH_BYTES_MAX
            && !socket.as_bytes().iter().any(|byte| b"%$\" \t".contains(byte));
        let made = is_fit && DirBuilder::new().mode(0o700).create(&shared.directory).is_ok();
        made.then_some(shared)
    }

    fn socket(&self) -> OsString {
        self.directory.join("s").into_os_string()
    }

    /// Options with which ssh goes over the login.
    pub fn of(&self, ssh: &SshOptions) -> SshOptions {
        SshOptions { login: Some(self.socket()), ..ssh.clone() }
    }
}

impl Drop for SharedLogin {
    fn drop(&mut self) {
        // ssh removes its socket itself, unless it was killed.
        let _ = fs::remove_dir_all(&self.directory);
    }
}
