//! Lines that a person types: editing, history, and completion of commands and names.

mod completion;

use crate::fault::{Done, Fault};
use crate::line::Line;
use crate::tree::listed;
use completion::{Candidate, Names, Side, candidates};
use hikyaku_console::{Exit, Folder};
use hikyaku_sftp::{Client, Kind};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};
use signal_hook::consts::SIGINT;
use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write, stdout};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines that are remembered.
const HISTORY_LINES: usize = 1000;
/// How long a Tab waits for the server. What comes later serves the next Tab.
const PATIENCE: Duration = Duration::from_millis(300);

/// Reads lines from the terminal.
pub(crate) struct Editor {
    editor: rustyline::Editor<Helping, DefaultHistory>,
    history: Option<PathBuf>,
}

impl Editor {
    /// An editor of a session. From here on Ctrl-C sets `stop` while a command runs.
    pub(crate) fn new(client: &Client, stop: Arc<AtomicBool>) -> io::Result<Self> {
        // A second Ctrl-C ends the program, where the first one has not been noticed.
        let code = i32::from(Exit::of_signal(SIGINT).number());
        signal_hook::flag::register_conditional_shutdown(SIGINT, code, stop.clone())?;
        signal_hook::flag::register(SIGINT, stop)?;
        let config = Config::builder().completion_type(CompletionType::List);
        let config = config.max_history_size(HISTORY_LINES).map_err(io::Error::other)?;
        let mut editor =
            rustyline::Editor::with_config(config.build()).map_err(io::Error::other)?;
        let far = Far { client: client.clone(), dir: Vec::new(), known: Arc::default() };
        editor.set_helper(Some(Helping { far }));
        let history = history();
        if let Some(path) = &history {
            // Without the lines of earlier sessions this one works as well.
            let _ = editor.load_history(path);
        }
        Ok(Self { editor, history })
    }

    /// The next line; `None` at the end of the input. `dir` is where the user is on the server.
    pub(crate) fn line(&mut self, dir: &[u8]) -> Done<Option<Vec<u8>>> {
        if let Some(helping) = self.editor.helper_mut() {
            helping.far.dir = dir.to_vec();
            // The last command may have changed names.
            helping.far.known().clear();
        }
        stdout().flush()?;
        match self.editor.readline("sftp> ") {
            Ok(line) => {
                self.remember(&line);
                Ok(Some(line.into_bytes()))
            }
            // The line is given up, and not the session.
            Err(ReadlineError::Interrupted) => Ok(Some(Vec::new())),
            Err(ReadlineError::Eof) => Ok(None),
            Err(error) => Err(Fault::Output(io::Error::other(error))),
        }
    }

    /// Adds a line to the history, unless it is for the shell, where it may hold a secret.
    fn remember(&mut self, line: &str) {
        let text = Line::new(line.as_bytes()).text;
        if text.is_empty() || text.starts_with(b"!") {
            return;
        }
        let is_new = self.editor.add_history_entry(line).unwrap_or(false);
        if let Some(path) = self.history.as_ref().filter(|_| is_new) {
            let _ = self.editor.append_history(path);
        }
    }
}

/// The user's file of lines, readable for nobody else.
fn history() -> Option<PathBuf> {
    let folder = Folder::State.of_user().ok()?;
    fs::create_dir_all(&folder).ok()?;
    let path = folder.join("sftp_history");
    OpenOptions::new().append(true).create(true).mode(0o600).open(&path).ok()?;
    Some(path)
}

/// What the editor asks while a line is typed.
struct Helping {
    far: Far,
}

/// Names on the server, as far as they are known.
struct Far {
    client: Client,
    dir: Vec<u8>,
    known: Arc<Mutex<HashMap<Vec<u8>, Vec<Candidate>>>>,
}

impl Far {
    fn known(&self) -> MutexGuard<'_, HashMap<Vec<u8>, Vec<Candidate>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn names(&self, dir: &[u8]) -> Vec<Candidate> {
        let dir = crate::path::absolute(dir, &self.dir);
        if let Some(names) = self.known().get(&dir) {
            return names.clone();
        }
        let (tell, told) = sync_channel(1);
        let (client, known) = (self.client.clone(), self.known.clone());
        let asked = thread::Builder::new().name("sftp-names".to_owned()).spawn(move || {
            let entries = listed(&client, &dir).unwrap_or_default();
            let names: Vec<Candidate> = entries
                .into_iter()
                .filter(|entry| !matches!(&entry.name[..], b"." | b".."))
                .map(|entry| Candidate {
                    is_dir: entry.attributes.kind() == Some(Kind::Dir),
                    name: entry.name,
                })
                .collect();
            known.lock().unwrap_or_else(PoisonError::into_inner).insert(dir, names.clone());
            // The Tab may have gone on.
            let _ = tell.send(names);
        });
        if asked.is_err() {
            return Vec::new();
        }
        told.recv_timeout(PATIENCE).unwrap_or_default()
    }
}

impl Names for Far {
    fn names(&self, side: Side, dir: &[u8]) -> Vec<Candidate> {
        match side {
            Side::Remote => self.names(dir),
            Side::Local => local_names(dir),
        }
    }
}

fn local_names(dir: &[u8]) -> Vec<Candidate> {
    let dir = if dir.is_empty() { b"." } else { dir };
    let listed = fs::read_dir(crate::local::path(dir)).into_iter().flatten().flatten();
    let candidate = |entry: fs::DirEntry| Candidate {
        is_dir: fs::metadata(entry.path()).is_ok_and(|found| found.is_dir()),
        name: entry.file_name().into_vec(),
    };
    listed.map(candidate).collect()
}

impl Completer for Helping {
    type Candidate = Pair;

    fn complete(
        &self,
        line: &str,
        at: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begin, all) = candidates(&line[..at], &self.far);
        let pair = |(display, replacement)| Pair { display, replacement };
        Ok((begin, all.into_iter().map(pair).collect()))
    }
}

impl Hinter for Helping {
    type Hint = String;
}

impl Highlighter for Helping {}
impl Validator for Helping {}
impl Helper for Helping {}
