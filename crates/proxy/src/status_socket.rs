//! A Unix socket at which a gateway tells its status and hears the user's switch, and the commands `hikyaku proxy status`,
//! `on`, `off` and `drain`, which ask all gateways of the user.
//!
//! Whoever asks sends one word, and ends its direction. The gateway does what the word says and answers with its status.

mod show;

use crate::board::Board;
use crate::board::status::Status;
use crate::switch::{Mode, Switch};
use anyhow::{Context, Error, Result, bail};
use hikyaku_console::{Document, ExitCode, Folder, Form, Tone, causes, print, say, with_remedy};
use serde::Serialize;
use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// The socket of a gateway. Dropping it removes it.
pub(crate) struct StatusSocket {
    path: PathBuf,
}

/// Whoever asks waits so long for a sample.
const SAMPLE_PATIENCE: Duration = Duration::from_secs(3);
/// Reading and writing take at most this long. It is longer than the wait for a sample.
const PATIENCE: Duration = Duration::from_secs(5);
/// Bytes of a status at most.
const STATUS_BYTES_MAX: u64 = 4 << 20;
/// Bytes of a word at most.
const WORD_BYTES_MAX: u64 = 16;
const PREFIX: &str = "proxy-";
const SUFFIX: &str = ".sock";

impl StatusSocket {
    /// Listens for those who ask. `None` if there is no folder for the socket: the gateway works without.
    pub(crate) fn open(board: Arc<Board>, switch: Arc<Switch>) -> Option<Self> {
        Self::open_in(&folder()?, board, switch).ok()
    }

    fn open_in(folder: &Path, board: Arc<Board>, switch: Arc<Switch>) -> io::Result<Self> {
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
                let _ =
                    stream.map_err(Error::from).and_then(|stream| tell(stream, &board, &switch));
            }
        })?;
        Ok(socket)
    }
}

impl Drop for StatusSocket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The folder of sockets: that for the time of a login, or where there is none, the state folder.
fn folder() -> Option<PathBuf> {
    Folder::Runtime.of_user().or_else(|_| Folder::State.of_user()).ok()
}

/// What a gateway is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Word {
    Status,
    Turn(Mode),
}

impl Word {
    const ALL: [(Self, &str); 4] = [
        (Self::Status, "status"),
        (Self::Turn(Mode::On), "on"),
        (Self::Turn(Mode::Off), "off"),
        (Self::Turn(Mode::Draining), "drain"),
    ];

    // fuzz: none, of a program of this user; only whole words are compared
    fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(_, word)| *word == text).map(|(word, _)| word)
    }

    fn text(self) -> &'static str {
        Self::ALL.into_iter().find(|(word, _)| *word == self).map_or("", |(_, text)| text)
    }
}

fn tell(mut stream: UnixStream, board: &Board, switch: &Switch) -> Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut word = String::new();
    (&stream).take(WORD_BYTES_MAX).read_to_string(&mut word)?;
    match Word::read(&word).context("no such word")? {
        Word::Status => {}
        Word::Turn(mode) => {
            if let Err(error) = switch.set_mode(mode) {
                say(Tone::Error, causes(&error));
            }
        }
    }
    let mut status = (*board.look_anew(Instant::now(), SAMPLE_PATIENCE)).clone();
    // The sample may be older than the word.
    let position = switch.position();
    (status.mode, status.connection) = (position.mode, position.far);
    Ok(stream.write_all(&serde_json::to_vec(&status)?)?)
}

/// Turns the switch of the gateway with this process number, or of all gateways of this user.
///
/// # Errors
///
/// There is none, or one does not do it.
pub(crate) fn turn(mode: Mode, process: Option<u32>) -> Result<()> {
    let all = folder().map(|folder| ask_all(&folder, Word::Turn(mode), process));
    let all = all.unwrap_or_default();
    if all.is_empty() {
        let (text, remedy) = match process {
            Some(number) => (
                format!("no gateway of this user has the process number {number}"),
                "hikyaku proxy status shows those that run",
            ),
            None => ("no gateway of this user runs".to_owned(), "hikyaku proxy HOST starts one"),
        };
        return Err(with_remedy(ExitCode::WillFail.error(text), Some(remedy)));
    }
    for (process, status) in all {
        print(show::text(process, &status))?;
        match status.mode {
            now if now == mode => {}
            Mode::Draining => {
                let text = format!("process {process} ends with its last connection");
                return Err(ExitCode::WillFail.error(text).context("draining is not taken back"));
            }
            Mode::On | Mode::Off => {
                bail!("process {process} has not done it, and tells why on its standard error")
            }
        }
    }
    Ok(())
}

/// Prints the status of all gateways of this user.
///
/// # Errors
///
/// Standard output cannot be written.
pub(crate) fn show(form: Form) -> Result<()> {
    let all = folder().map(|folder| ask_all(&folder, Word::Status, None));
    let all = all.unwrap_or_default();
    let numbered = all.iter().map(|(process, status)| Numbered { process: *process, status });
    print(match form {
        Form::Words if all.is_empty() => "no gateway of this user runs\n".to_owned(),
        Form::Words => all.iter().map(|(process, status)| show::text(*process, status)).collect(),
        Form::Document => Document::new(Gateways { gateways: numbered.collect() }).line(),
        Form::Lines => numbered.map(Numbered::line).collect::<Result<String>>()?,
    })
}

/// The content of the document.
#[derive(Serialize)]
struct Gateways<'a> {
    gateways: Vec<Numbered<'a>>,
}

/// The status of a process.
#[derive(Serialize)]
struct Numbered<'a> {
    process: u32,
    #[serde(flatten)]
    status: &'a Status,
}

impl Numbered<'_> {
    fn line(self) -> Result<String> {
        Ok(serde_json::to_string(&self).context("no JSON")? + "\n")
    }
}

/// Asks the gateway with this process number, or all gateways, whose sockets are in a folder. Sockets that nobody listens at are removed.
fn ask_all(folder: &Path, word: Word, only: Option<u32>) -> Vec<(u32, Status)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut all = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.strip_prefix(PREFIX).and_then(|name| name.strip_suffix(SUFFIX));
        let Some(process) = number.and_then(|number| number.parse().ok()) else { continue };
        if only.is_some_and(|only| only != process) {
            continue;
        }
        match ask(&path, word) {
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

fn ask(path: &Path, word: Word) -> io::Result<Status> {
    let mut stream = UnixStream::connect(path)?;
    stream.write_all(word.text().as_bytes())?;
    stream.shutdown(Shutdown::Write)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = Vec::new();
    stream.take(STATUS_BYTES_MAX).read_to_end(&mut text)?;
    Ok(serde_json::from_slice(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::WhenDown;

    #[test]
    fn a_gateway_tells_its_status_until_it_ends() {
        let folder = std::env::temp_dir().join(format!("hikyaku-sockets-{}", std::process::id()));
        let board = Board::new("far.example".to_owned(), Instant::now());
        // Nobody takes samples: the last one is told.
        board.end();
        let switch = Switch::new(WhenDown::Refuse, None);
        let socket = StatusSocket::open_in(&folder, board, switch.clone()).unwrap();
        let mode = fs::metadata(&socket.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let stale = folder.join("proxy-1.sock");
        drop(UnixListener::bind(&stale).unwrap());
        let ask = |word| ask_all(&folder, word, None);
        let all = ask(Word::Status);
        assert_eq!(all.len(), 1);
        for mode in [Mode::Off, Mode::On] {
            assert_eq!(ask(Word::Turn(mode))[0].1.mode, mode);
            assert_eq!(switch.position().mode, mode);
        }
        assert!(ask_all(&folder, Word::Status, Some(1)).is_empty(), "another process");
        assert_eq!((all[0].0, all[0].1.far.as_str()), (std::process::id(), "far.example"));
        assert!(!stale.exists(), "nobody listens there");
        let line = Numbered { process: 7, status: &all[0].1 }.line().unwrap();
        let json: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&json["process"], &json["far"]), (&7.into(), &"far.example".into()));
        drop(socket);
        assert!(ask(Word::Status).is_empty());
        fs::remove_dir_all(folder).unwrap();
    }
}
