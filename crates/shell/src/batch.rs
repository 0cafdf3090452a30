//! A session from its beginning to its end: lines from a terminal, a pipe or a file, and what becomes of it.

use crate::args::{SftpArgs, Strictness};
use crate::command::{Command, How, NoCommand, Transfer};
use crate::edit::Editor;
use crate::fault::{Done, Fault, told};
use crate::line::{Echo, Line, OnFailure, escaped};
use crate::link::Link;
use crate::path::absolute;
use crate::shell::{Next, Noise, Shell};
use crate::show::Shown;
use crate::target::Target;
use crate::transfer::{Flow, Meter};
use anyhow::{Error, Result};
use hikyaku_console::{At, Interrupt, Kept, Scope, Tone, misuse, printed, say};
use hikyaku_units::DataSize;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, IsTerminal, Write, stderr, stdin, stdout};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// How a session ended that had begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// All that had to succeed has.
    Done,
    /// A command of a batch failed, or the file that the command line names was not fetched.
    Failed,
}

/// A line does not end, as from a program that never writes one.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Where lines come from.
enum Lines {
    /// A person.
    Terminal(Box<Editor>),
    /// A program or a file.
    Text(Box<dyn BufRead>),
}

/// Runs a session. `memory` is what this process may take.
///
/// # Errors
///
/// No session began, or its connection is lost.
pub fn run(args: &SftpArgs, memory: DataSize, interrupt: &Interrupt) -> Result<Outcome> {
    // A batch that is not there is known before anybody is asked for a password.
    let batch = args.session.batch.as_deref().filter(|path| *path != "-");
    let batch = batch.map(|path| File::open(path).at(path.to_string_lossy()));
    let batch = batch.transpose()?;
    let scope = interrupt.scope();
    let link = Link::open(args, memory, &scope)?;
    link.notes.iter().for_each(|note| say(Tone::Note, note));
    if args.noise() == Noise::Each {
        greet(args, &link);
    }
    let stop = Arc::new(AtomicBool::new(false));
    let session = Session { args, stop: stop.clone(), interrupt, scope };
    let done = session.begin(&link).and_then(|mut shell| match session.first(&mut shell)? {
        First::Lines => session.lines(&mut shell, batch).map(Ok),
        First::Fetched => Ok(Ok(Outcome::Done)),
        First::IsFile(path) => Ok(Err(path)),
    });
    match done {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(path)) => Err(misuse(
            format!("{path} is no directory: it would be fetched, and the commands of -b left out"),
            "the batch with a command 'get', or the file without -b",
        )),
        Err(Fault::Told) => Ok(Outcome::Failed),
        Err(Fault::Stopped) => Err(Kept::InPlace.into()),
        Err(Fault::Output(error)) => printed(Err(error)).map(|()| Outcome::Done),
        Err(Fault::Lost(error)) => {
            let lost = std::io::Error::new(ErrorKind::ConnectionAborted, error.clone());
            Err(Error::new(lost).context(error.to_string()))
        }
    }
}

fn greet(args: &SftpArgs, link: &Link) {
    let text = match (&args.session.direct, &args.destination) {
        (Some(command), _) => format!("Attached to {}.", Shown::new(command.as_bytes())),
        (None, Some(destination)) => {
            let host = Target::parse(destination.as_bytes()).map(|target| target.login.host);
            format!("Connected to {}.", host.unwrap_or_default())
        }
        (None, None) => return,
    };
    // If standard error cannot be written, the user sees no greeting.
    let _ = writeln!(stderr(), "{text}");
    if let Some(advice) = link.advice() {
        let _ = writeln!(stderr(), "hikyaku: {advice}");
    }
}

/// What the path of the destination says.
enum First {
    /// Lines follow.
    Lines,
    /// A file was fetched, which is all.
    Fetched,
    /// It is a file, and there are lines: this path.
    IsFile(String),
}

/// What a session is begun with.
struct Session<'a> {
    args: &'a SftpArgs,
    /// Set by Ctrl-C, where that does not end the program.
    stop: Arc<AtomicBool>,
    interrupt: &'a Interrupt,
    scope: Scope,
}

impl Session<'_> {
    fn begin(&self, link: &Link) -> Done<Shell> {
        let flow = Flow::new(&link.client, link.carrier, self.args.requests(), link.limit)?;
        let mut shell = Shell::new(link.client.clone(), flow, self.stop.clone())?;
        shell.noise = self.args.noise();
        shell.how = self.args.how();
        let is_metered = shell.noise == Noise::Each && stderr().is_terminal();
        shell.meter = if is_metered { Meter::Shown } else { Meter::Hidden };
        Ok(shell)
    }

    /// From here on a signal ends a transfer, and the session with it.
    fn listen(&self, shell: &mut Shell) -> Done {
        self.interrupt
            .listen()
            .map_err(|error| told(format!("cannot listen for signals: {error}")))?;
        shell.scope = Some(self.scope.clone());
        Ok(())
    }

    /// Does what the path of the destination says: goes there, or fetches it, which is all then. A directory is fetched if
    /// it is to have a name here, as by OpenSSH's sftp.
    fn first(&self, shell: &mut Shell) -> Done<First> {
        let destination = self.args.destination.as_deref().map(OsStrExt::as_bytes);
        let target = destination.and_then(|text| Target::parse(text).ok());
        let Some(path) = target.and_then(|target| target.path) else { return Ok(First::Lines) };
        // A pattern is one here too, as in OpenSSH's sftp.
        let from = absolute(&path, &escaped(&shell.dir));
        let path = absolute(&path, &shell.dir);
        if self.args.local.is_none() && shell.is_dir(&path)? {
            shell.note(format_args!("Changing to: {}", Shown::new(&path)))?;
            shell.obey(&Command::ChangeDir(Some(path)))?;
            return Ok(First::Lines);
        }
        if self.args.session.batch.is_some() {
            return Ok(First::IsFile(Shown::new(&path).to_string()));
        }
        let to = self.args.local.as_deref().map(|to| to.as_bytes().to_vec());
        self.listen(shell)?;
        shell.obey(&Command::Get(Transfer { from, to, how: How::default() }))?;
        Ok(First::Fetched)
    }

    fn lines(&self, shell: &mut Shell, batch: Option<File>) -> Done<Outcome> {
        let is_batch = self.args.session.batch.is_some();
        let mut lines = match batch {
            Some(file) => Lines::Text(Box::new(BufReader::new(file))),
            None if !is_batch && stdin().is_terminal() => {
                let editor = Editor::new(&shell.client, self.stop.clone());
                Lines::Terminal(Box::new(editor.map_err(|error| told(error.to_string()))?))
            }
            None => Lines::Text(Box::new(BufReader::new(stdin()))),
        };
        if matches!(lines, Lines::Text(_)) {
            self.listen(shell)?;
        }
        loop {
            let line = match &mut lines {
                Lines::Terminal(editor) => editor.line(&shell.dir),
                Lines::Text(text) => next_line(text.as_mut()),
            };
            let Some(text) = line? else { return Ok(Outcome::Done) };
            let is_echoed = matches!(lines, Lines::Text(_));
            let line = Line::new(&text);
            shell.on_failure = match self.args.strictness() {
                Strictness::Strict if is_echoed => line.on_failure,
                _ => OnFailure::GoesOn,
            };
            let echo = if is_echoed { line.echo } else { Echo::Silent };
            match obey_line(shell, (&text, &line), echo) {
                Ok(Next::Line) => {}
                Ok(Next::End) => return Ok(Outcome::Done),
                Err(Fault::Stopped) if shell.scope.is_some() => return Err(Fault::Stopped),
                Err(Fault::Told | Fault::Stopped) => {
                    if shell.on_failure == OnFailure::Ends {
                        return Ok(Outcome::Failed);
                    }
                }
                Err(fault) => return Err(fault),
            }
        }
    }
}

/// Does what a line says.
fn obey_line(shell: &mut Shell, (text, line): (&[u8], &Line<'_>), echo: Echo) -> Done<Next> {
    let command = if line.text.is_empty() { None } else { Some(Command::parse(line.text)) };
    if echo == Echo::Shown {
        writeln!(stdout(), "sftp> {}", Shown::new(text))?;
    }
    match command {
        None => Ok(Next::Line),
        Some(Ok(command)) => shell.obey(&command),
        Some(Err(NoCommand(text))) => Err(told(text)),
    }
}

/// The next line without its end; `None` at the end of the text.
fn next_line(text: &mut dyn BufRead) -> Done<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let limit = LINE_BYTES_MAX as u64 + 1;
    std::io::Read::take(&mut *text, limit).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.len() > LINE_BYTES_MAX {
        return Err(told("a line of more than a mebibyte is no command"));
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    }
    Ok(Some(line))
}
