//! A Unix socket at which a gateway tells its status, and `hikyaku proxy status`, which asks all gateways of the user.

mod show;

use crate::board::Board;
use crate::board::status::Status;
use anyhow::{Context, Result};
use hikyaku_console::{Folder, print};
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The socket of a gateway. Dropping it removes it.
pub(crate) struct Socket {
    path: PathBuf,
}

/// Whoever asks waits so long for a sample.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(3);
/// Reading and writing take at most this long. It is longer than the wait for a sample.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a status at most.
const STATUS_BYTES_MAX: u64 = 4 << 20;
const PREFIX: &str = "proxy-";
const SUFFIX: &str = ".sock";

impl Socket {
    /// Listens for those who ask. `None` if there is no folder for the socket: the gateway works without.
    pub(crate) fn open(board: Arc<Board>) -> Option<Self> {
        Self::open_in(&folder()?, board).ok()
    }

    fn open_in(folder: &Path, board: Arc<Board>) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        let path = folder.join(format!("{PREFIX}{}{SUFFIX}", std::process::id()));
        // Another process had this number before, and was killed.
        let _ = fs::remove_file(&path);
        let listener = UnixListener::bind(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        let socket = Self { path };
        thread::Builder::new().name("proxy-status".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                // Who asks and goes is not told.
                let _ = stream.and_then(|stream| tell(stream, &board));
            }
        })?;
        Ok(socket)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of sockets: that for the time of a login, or where there is none, the state folder.
fn folder() -> Option<PathBuf> {
    Folder::Runtime.of_user().or_else(|_| Folder::State.of_user()).ok()
}

fn tell(mut stream: UnixStream, board: &Board) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let status = board.look_anew(Instant::now(), SAMPLE_PATIENCE);
    stream.write_all(&serde_json::to_vec(&*status)?)
}

/// Prints the status of all gateways of this user: for people, or a line of JSON each.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) fn show(format: Format) -> Result<()> {
    let all = folder().map(|folder| ask_all(&folder)).unwrap_or_default();
    if all.is_empty() && format == Format::Text {
        return print("no gateway of this user runs\n");
    }
    for (process, status) in all {
        match format {
            Format::Text => print(show::text(process, &status))?,
            Format::Json => print(line(process, &status)?)?,
        }
    }
    Ok(())
}

/// How a status is printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// A line of JSON.
    Json,
}

fn line(process: u32, status: &Status) -> Result<String> {
    let mut value = serde_json::to_value(status).context("no JSON")?;
    value["process"] = process.into();
    Ok(format!("{value}\n"))
}

/// Asks all gateways whose sockets are in a folder. Sockets that nobody listens at are removed.
fn ask_all(folder: &Path) -> Vec<(u32, Status)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
        let Some(process) = number.and_then(|number| number.parse().ok()) else { continue };
        match ask(&path) {
            Ok(status) => all.push((process, status)),
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let _ = fs::remove_file(&path);
            }
            // A gateway that has just ended, or is stopped.
            Err(_) => {}
        }
    }
    all.sort_by_key(|(process, _)| *process);
    all
}

fn ask(path: &Path) -> io::Result<Status> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(STATUS_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gateway_tells_its_status_until_it_ends() {
        let folder = std::env::temp_dir().join(format!("hikyaku-sockets-{}", std::process::id()));
        let board = Board::new("far.example".to_owned(), Instant::now());
        // Nobody takes samples: the last one is told.
        board.end();
        let socket = Socket::open_in(&folder, board).unwrap();
        let mode = fs::metadata(&socket.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let stale = folder.join("proxy-1.sock");
        drop(UnixListener::bind(&stale).unwrap());
        let all = ask_all(&folder);
        assert_eq!(all.len(), 1);
        assert_eq!((all[0].0, all[0].1.far.as_str()), (std::process::id(), "far.example"));
        assert!(!stale.exists(), "nobody listens there");
        let json: serde_json::Value = serde_json::from_str(&line(7, &all[0].1).unwrap()).unwrap();
        assert_eq!((&json["process"], &json["far"]), (&7.into(), &"far.example".into()));
        drop(socket);
        assert!(ask_all(&folder).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
