//! What the user sees while a command works: several meters, and their audience.
//!
//! A command adds a [`Meter`](MeterId) for each thing that has a progress of its own, such as a copy from one of several
//! machines. It then calls [`Board::update`] every [`UPDATE_EVERY`] with the figures so far, and [`Board::finish`] once.
//! Who reads decides what is printed: a person gets one line a meter, which is written over, a program gets events.
//!
//! The lines of a person are drawn here and not by a library: one line a meter is a few escape sequences.

mod decision;
mod document;
mod event;
mod figures;
mod meter;
mod terminal;
#[cfg(test)]
mod tests;
mod text;
mod totals;

pub use decision::decision;
pub use figures::Counts;
pub use hikyaku_transfer::{LimitedBy, PathFigures};
pub use totals::{Screen, Totals};

use crate::exit_code::Exit;
use crate::output::message;
use crate::paint::{Stream, Tone};
use document::{Gathered, OF_PROCESS};
use event::Event;
use meter::{First, Meter};
use serde::Serialize;
use serde_json::Value;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};
use terminal::Terminal;

/// How often a command should call [`Board::update`].
pub const UPDATE_EVERY: Duration = Duration::from_millis(200);
/// How often a program is told.
const EVENTS_EVERY: Duration = Duration::from_millis(500);
/// How often a line is written that is not written over.
const LINES_EVERY: Duration = Duration::from_secs(1);

/// Who reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// A person: lines that are written over, if standard error is a terminal, and otherwise errors only.
    Person,
    /// The same, and a line a second if standard error is no terminal.
    Lines,
    /// Nobody: errors only.
    Quiet,
    /// A program: events on standard output, a JSON object a line.
    Events,
    /// A program: one JSON document on standard output, at the end.
    Document,
}

impl Audience {
    /// Whether a program reads standard output.
    pub const fn is_program(self) -> bool {
        matches!(self, Self::Events | Self::Document)
    }
}

/// Identifies a meter of a [`Board`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct MeterId(u64);

/// Something that is told once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Message {
    /// Something failed, and the rest goes on.
    Failure(Failed),
    /// A remark for a person.
    Remark(String),
    /// A rehearsal says what would be written.
    Would(String),
    /// An event of the command's own, for programs only: a JSON object without a line end.
    Event(String),
}

/// A failure of a part of the work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// The line for a person.
    pub line: String,
    /// The machine, if it is another one.
    pub host: Option<String>,
    /// The path there; empty, if the failure is about none.
    pub path: String,
    /// Its kind, in the words of the events.
    pub kind: String,
    /// The cause.
    pub text: String,
}

/// How the work of a meter ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// It is done: a person is told the sums.
    Done,
    /// It failed, or was a rehearsal: nothing is told.
    Untold,
}

/// All meters of a command, and who reads them.
pub struct Board {
    renderer: Renderer,
    stats_every: Option<Duration>,
    meters: Vec<(MeterId, Meter)>,
    next_id: u64,
    streams: Streams,
}

/// How it is shown.
enum Renderer {
    Person(Terminal),
    Lines,
    Quiet,
    Events,
    Document(&'static Gathered),
}

/// Where it is shown.
struct Streams {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// The kind of `err`.
    stream: Stream,
    /// The first error of `out`. What is shown may get lost, and the work is still wanted.
    lost: Option<io::Error>,
}

impl Board {
    /// A board without meters. `stats_every` is the time between two lines of figures for each meter.
    pub fn new(audience: Audience, stats_every: Option<Duration>) -> Self {
        let is_seen = io::stderr().is_terminal();
        let renderer = match audience {
            Audience::Person | Audience::Lines if is_seen => Renderer::Person(Terminal::new(width)),
            Audience::Lines => Renderer::Lines,
            Audience::Person | Audience::Quiet => Renderer::Quiet,
            Audience::Events => Renderer::Events,
            Audience::Document => Renderer::Document(&OF_PROCESS),
        };
        let (out, err) = (Box::new(io::stdout()), Box::new(io::stderr()));
        let streams = Streams { out, err, stream: Stream::Error, lost: None };
        Self { renderer, stats_every, meters: Vec::new(), next_id: 0, streams }
    }

    /// Adds a meter. Its name stands before its lines; the only meter of a command needs none.
    pub fn add(&mut self, name: Option<String>, now: Instant) -> MeterId {
        let id = MeterId(self.next_id);
        self.next_id += 1;
        self.meters.push((id, Meter::new(name, self.stats_every, now)));
        id
    }

    /// Shows how far a meter is, and tells the messages. An id that was finished is ignored.
    pub fn update(
        &mut self,
        id: MeterId,
        (counts, path): (Counts, PathFigures),
        messages: &[Message],
        now: Instant,
    ) {
        let Some(at) = self.position(id) else { return };
        self.meters[at].1.set(counts, path, now);
        messages.iter().for_each(|message| self.tell(message));
        if let Some(line) = self.meters[at].1.stats_line(now) {
            self.line(&line);
        }
        self.show(at, now);
    }

    /// Prints a line for a person on standard error.
    pub fn remark(&mut self, text: &str) {
        self.message(Tone::Warning, text);
    }

    /// Removes a meter.
    pub fn finish(&mut self, id: MeterId, ending: Ending, now: Instant) {
        let Some(at) = self.position(id) else { return };
        let (_, meter) = self.meters.remove(at);
        self.clear();
        if ending == Ending::Done && matches!(self.renderer, Renderer::Person(_) | Renderer::Lines)
        {
            self.streams.error(&format!("{}\n", meter.summary(now)));
        }
    }

    /// Clears the lines of the meters until the next update, so that something else may print meanwhile.
    pub fn pause(&mut self) {
        self.clear();
    }

    /// The first error of standard output, if there was one.
    pub fn into_lost(self) -> Option<io::Error> {
        self.streams.lost
    }

    fn position(&self, id: MeterId) -> Option<usize> {
        self.meters.iter().position(|(other, _)| *other == id)
    }

    fn tell(&mut self, message: &Message) {
        match message {
            Message::Failure(failed) => {
                self.message(Tone::Error, &failed.line);
                self.event(&Event::failure(failed));
            }
            Message::Remark(text) => self.remark(text),
            Message::Event(line) => match self.renderer {
                Renderer::Events => self.streams.print(line),
                Renderer::Document(gathered) => {
                    gathered.add(serde_json::from_str::<Value>(line).ok());
                }
                Renderer::Person(_) | Renderer::Lines | Renderer::Quiet => {}
            },
            Message::Would(path) => {
                self.clear();
                match self.renderer {
                    Renderer::Events | Renderer::Document(_) => self.event(&Event::Would { path }),
                    Renderer::Person(_) | Renderer::Lines | Renderer::Quiet => {
                        self.streams.print(path);
                    }
                }
            }
        }
    }

    fn show(&mut self, at: usize, now: Instant) {
        let (_, meter) = &mut self.meters[at];
        match &mut self.renderer {
            Renderer::Quiet | Renderer::Document(_) => {}
            Renderer::Person(terminal) => {
                let lines = self.meters.iter().map(|(_, meter)| meter.line(now));
                let drawn = terminal.draw(&lines.collect::<Vec<_>>());
                self.streams.error(&drawn);
            }
            Renderer::Lines => {
                if meter.is_due(LINES_EVERY, now, First::AfterPeriod) {
                    let line = meter.line(now);
                    self.streams.error(&format!("{line}\n"));
                }
            }
            Renderer::Events => {
                if meter.is_due(EVENTS_EVERY, now, First::AtOnce) {
                    let line = Event::progress(meter, now).line();
                    self.streams.print(&line);
                }
            }
        }
    }

    fn event(&mut self, event: &Event<'_>) {
        match self.renderer {
            Renderer::Events => self.streams.print(&event.line()),
            Renderer::Document(gathered) => gathered.add(event),
            Renderer::Person(_) | Renderer::Lines | Renderer::Quiet => {}
        }
    }

    /// Prints a line on standard error, where the lines of the meters are.
    fn line(&mut self, text: &str) {
        self.clear();
        self.streams.error(&format!("{text}\n"));
    }

    /// Prints a message of the program there.
    fn message(&mut self, tone: Tone, text: &str) {
        self.clear();
        self.streams.error(&message(self.streams.stream, tone, text));
    }

    fn clear(&mut self) {
        if let Renderer::Person(terminal) = &mut self.renderer {
            let cleared = terminal.clear();
            self.streams.error(&cleared);
        }
    }
}

impl Streams {
    fn print(&mut self, line: &str) {
        if let Err(error) = writeln!(self.out, "{line}").and_then(|()| self.out.flush()) {
            self.lost.get_or_insert(error);
        }
    }

    /// There is nowhere to report that standard error cannot be written.
    fn error(&mut self, text: &str) {
        let _ = self.err.write_all(text.as_bytes()).and_then(|()| self.err.flush());
    }
}

/// Reports an event of a command that has no board to a program: it is printed, or stands in the document.
///
/// # Errors
/// Standard output cannot be written.
pub fn print_event(audience: Audience, event: &impl Serialize) -> io::Result<()> {
    match audience {
        Audience::Events => {
            let line = serde_json::to_string(event).unwrap_or_default();
            writeln!(io::stdout(), "{line}")
        }
        Audience::Document => {
            OF_PROCESS.add(event);
            Ok(())
        }
        Audience::Person | Audience::Lines | Audience::Quiet => Ok(()),
    }
}

/// Prints the last event of a command, or its document, on standard output. A program gets it however the command ended.
/// `exit` is that of this process ([`Interrupt::exit`](crate::Interrupt::exit)).
///
/// # Errors
/// Standard output cannot be written.
pub fn print_end(
    audience: Audience,
    (counts, took): (&Counts, Duration),
    exit: Exit,
    error: Option<&str>,
) -> io::Result<()> {
    let end = Event::end(counts, took, exit, error);
    match audience {
        Audience::Events => writeln!(io::stdout(), "{}", end.line()),
        Audience::Document => {
            io::stdout().write_all(OF_PROCESS.document(end).unwrap_or_default().as_bytes())
        }
        Audience::Person | Audience::Lines | Audience::Quiet => Ok(()),
    }
}

/// Columns of the terminal; 80, if it does not tell.
fn width() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.ok().map(|size| usize::from(size.ws_col)).filter(|&width| width > 0).unwrap_or(80)
}
