//! A Unix socket that a gateway listens at. It is for this user only, and is removed at the end.

use hikyaku_forward::SocketPath;
use std::fmt;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream as StdStream};
use std::path::{Path, PathBuf};
use tokio::net::{UnixListener, UnixStream};

/// A Unix socket. Dropping it removes its file.
pub(crate) struct UnixPort {
    listener: StdOrTokio,
    path: PathBuf,
    /// The file, by its device and number: another one at the same path is left alone.
    file: (u64, u64),
}

/// A listener becomes one of the runtime when there is one.
enum StdOrTokio {
    Std(StdListener),
    Tokio(UnixListener),
}

impl UnixPort {
    /// Makes a socket, for the runtime that this is called in.
    ///
    /// # Errors
    ///
    /// There is a file of this name, other than a socket that nobody listens at; or the kernel refuses it.
    pub(crate) fn bind(path: &SocketPath) -> io::Result<Self> {
        Self::bind_early(path)?.ready()
    }

    /// Makes a socket before there is a runtime. [`UnixPort::ready`] comes next.
    ///
    /// # Errors
    ///
    /// As [`UnixPort::bind`].
    pub(crate) fn bind_early(path: &SocketPath) -> io::Result<Self> {
        let path = Path::new(path.as_str());
        remove_if_dead(path);
        let listener = StdListener::bind(path)?;
        // Who connects before this is not of this user either, and is not answered: see `accept`.
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        let meta = fs::symlink_metadata(path)?;
        let (path, file) = (path.to_owned(), (meta.dev(), meta.ino()));
        Ok(Self { listener: StdOrTokio::Std(listener), path, file })
    }

    /// Makes it one of the runtime that this is called in.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub(crate) fn ready(mut self) -> io::Result<Self> {
        if let StdOrTokio::Std(listener) = &self.listener {
            self.listener = StdOrTokio::Tokio(UnixListener::from_std(listener.try_clone()?)?);
        }
        Ok(self)
    }

    /// The next connection of a program of this user, or of root.
    pub(crate) async fn accept(&self) -> io::Result<UnixStream> {
        let StdOrTokio::Tokio(listener) = &self.listener else {
            return Err(ErrorKind::NotConnected.into());
        };
        loop {
            let (socket, _) = listener.accept().await?;
            let own = rustix::process::geteuid().as_raw();
            if socket.peer_cred().is_ok_and(|theirs| [0, own].contains(&theirs.uid())) {
                return Ok(socket);
            }
        }
    }
}

/// Removes a socket that nobody listens at: a gateway that was killed has left it.
fn remove_if_dead(path: &Path) {
    let is_socket = fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    let is_dead =
        || StdStream::connect(path).is_err_and(|e| e.kind() == ErrorKind::ConnectionRefused);
    if is_socket && is_dead() {
        // If this fails, the error of `bind` tells.
        let _ = fs::remove_file(path);
    }
}

impl fmt::Display for UnixPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.display().fmt(f)
    }
}

impl Drop for UnixPort {
    fn drop(&mut self) {
        let now = fs::symlink_metadata(&self.path).map(|meta| (meta.dev(), meta.ino()));
        if now.is_ok_and(|now| now == self.file) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_for_its_user_and_takes_the_place_of_a_dead_one_only() {
        let folder = std::env::temp_dir().join(format!("hikyaku-unix-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let file = folder.join("a.sock");
        let path = SocketPath::parse(file.to_str().unwrap()).unwrap();
        // One that a process has left.
        drop(StdListener::bind(&file).unwrap());
        let port = UnixPort::bind_early(&path).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let taken = UnixPort::bind_early(&path).err().map(|error| error.kind());
        assert_eq!(taken, Some(ErrorKind::AddrInUse));
        drop(port);
        assert!(!file.exists());
        fs::write(&file, "mine").unwrap();
        assert!(UnixPort::bind_early(&path).is_err(), "a file is not removed");
        assert_eq!(fs::read(&file).unwrap(), b"mine");
        fs::remove_dir_all(folder).unwrap();
    }
}
