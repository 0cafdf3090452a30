//! A server of plain FTP in this process, for tests: stream mode only, over a directory, for anonymous clients.
//!
//! It runs as threads of the test, so that it is there on every machine, and it can be told to cut a transfer.

mod commands;
mod dates;

use anyhow::Result;
use commands::Session;
use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// The commands that a server has beyond RFC 959.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Style {
    /// MLST, MLSD, MFMT and SITE CHMOD, as pure-ftpd and ProFTPD.
    Facts,
    /// SIZE and MDTM only, as vsftpd.
    Bare,
}

/// A server. It runs until the process ends.
#[derive(Clone, Debug)]
pub struct PlainFtp {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it serves as `/`.
    pub data: PathBuf,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    commands: Vec<String>,
    /// Bytes after which the next transfer is cut.
    cut: Option<u64>,
    /// The number of clients, and the number that it takes at once.
    sessions: usize,
    sessions_max: Option<usize>,
}

impl PlainFtp {
    /// Starts a server over `data`, which is made if it is missing.
    ///
    /// # Errors
    ///
    /// The directory cannot be made, or no port is free.
    pub fn start(data: &Path, style: Style) -> Result<Self> {
        fs::create_dir_all(data)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let (address, data) = (listener.local_addr()?, data.canonicalize()?);
        let server = Self { address, data, state: Arc::default() };
        let serves = server.clone();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let serves = serves.clone();
                if !serves.comes() {
                    // The client may have gone.
                    let _ = stream.write_all(b"421 too many connections\r\n");
                    continue;
                }
                thread::spawn(move || {
                    // An error means that the client has gone.
                    let _ = Session::new(serves.clone(), style, stream).and_then(Session::run);
                    serves.state().sessions -= 1;
                });
            }
        });
        Ok(server)
    }

    /// The URL of what it serves, without a slash at its end.
    pub fn url(&self) -> String {
        format!("ftp://{}", self.address)
    }

    /// All commands that clients have sent.
    pub fn commands(&self) -> Vec<String> {
        self.state().commands.clone()
    }

    /// Lets the next transfer of a file end after so many bytes.
    pub fn cut_next(&self, bytes: u64) {
        self.state().cut = Some(bytes);
    }

    /// Refuses clients while this number is connected.
    pub fn set_sessions_max(&self, number: usize) {
        self.state().sessions_max = Some(number);
    }

    /// Counts a client, unless there are too many.
    fn comes(&self) -> bool {
        let mut state = self.state();
        let has_room = state.sessions_max.is_none_or(|most| state.sessions < most);
        state.sessions += usize::from(has_room);
        has_room
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_cut(&self) -> Option<u64> {
        self.state().cut.take()
    }

    fn heard(&self, line: &[u8]) {
        let line = String::from_utf8_lossy(line).into_owned();
        self.state().commands.push(line);
    }
}
