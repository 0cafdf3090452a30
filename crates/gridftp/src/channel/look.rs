//! Facts of files, and the entries of directories.
//!
//! A server with MLST (RFC 3659) sends the facts of a file, and a listing of them (MLSD). Of other servers the facts come by
//! SIZE and MDTM, a directory is known by its CWD, and a listing is that of LIST. Globus' server sends listings as replies as
//! well (MLSC): they need no data connection, and several of them one round trip.

use super::download::LISTING_BYTES_MAX;
use super::{Channel, Mode};
use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::facts::{self, Facts, Kind, Listed};
use crate::reply::Reply;
use crate::unix_list;

/// Whether LIST takes the option `-a`. Without it many servers leave out the names that begin with a dot.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Listing {
    #[default]
    Untried,
    All,
    Plain,
}

const UNREADABLE: FtpError = FtpError::Lie("sends a listing that cannot be read");

impl Channel {
    /// Requests the facts of `path`. `None` if the server answers that the path does not exist or is not visible.
    ///
    /// # Errors
    /// The server refuses, or its answer cannot be read.
    pub fn facts(&mut self, path: &[u8]) -> Result<Option<Facts>, FtpError> {
        if !self.has_facts() {
            return self.facts_by_size(path);
        }
        let command = self.about("MLST", path)?;
        let reply = self.control.ask(&command)?;
        told(&command, &reply)
    }

    /// Requests the facts of each of `paths`, `at_once` of them concurrently. `None` for a path that does not exist or is not
    /// visible, and for one that the server refuses or would confuse with another: using that path reports the error.
    ///
    /// # Errors
    /// The control connection is lost, or an answer cannot be read. The channel is then of no use any more.
    pub fn facts_of_each(
        &mut self,
        paths: &[Vec<u8>],
        at_once: usize,
    ) -> Result<Vec<Option<Facts>>, FtpError> {
        if !self.has_facts() {
            let one = |path: &Vec<u8>| match self.facts_by_size(path) {
                Err(error) if error.leaves_channel() => Ok(None),
                facts => facts,
            };
            return paths.iter().map(one).collect();
        }
        let mut found = Vec::with_capacity(paths.len());
        for some in paths.chunks(at_once.max(1)) {
            let commands: Vec<_> = some.iter().map(|path| self.about("MLST", path).ok()).collect();
            for command in commands.iter().flatten() {
                self.control.send(command)?;
            }
            for command in &commands {
                let Some(command) = command else {
                    found.push(None);
                    continue;
                };
                found.push(match told(command, &self.control.reply()?) {
                    Err(FtpError::Refused { code: 500.., .. }) => None,
                    told => told?,
                });
            }
        }
        Ok(found)
    }

    /// The entries of a directory.
    ///
    /// # Errors
    /// The server refuses, or what it sends is no listing.
    pub fn list(&mut self, path: &[u8]) -> Result<Vec<Listed>, FtpError> {
        if !self.has_facts() {
            return self.list_by_lines(path);
        }
        if self.lists_at_once() {
            let command = self.about("MLSC", path)?;
            self.control.send(&command)?;
            return self.listed(&command)?;
        }
        let command = self.about("MLSD", path)?;
        let text = self.text_of(command)?;
        facts::listing(&text).ok_or(UNREADABLE)
    }

    /// Whether [`list_each`](Self::list_each) takes one round trip.
    pub fn lists_at_once(&self) -> bool {
        self.features.has("MLSC")
    }

    /// The entries of each of these directories.
    ///
    /// # Errors
    /// The control connection is lost. The channel is then of no use any more.
    pub fn list_each(
        &mut self,
        paths: &[Vec<u8>],
    ) -> Result<Vec<Result<Vec<Listed>, FtpError>>, FtpError> {
        if !self.lists_at_once() {
            return Ok(paths.iter().map(|path| self.list(path)).collect());
        }
        let mut commands = Vec::with_capacity(paths.len());
        for path in paths {
            commands.push(self.about("MLSC", path));
        }
        for command in commands.iter().flatten() {
            self.control.send(command)?;
        }
        let mut all = Vec::with_capacity(paths.len());
        for command in commands {
            all.push(match command {
                Ok(command) => self.listed(&command)?,
                Err(error) => Err(error),
            });
        }
        Ok(all)
    }

    /// Reads the answer to MLSC. The entries of a large directory come in several replies, of which all but the last are
    /// preliminary.
    fn listed(&mut self, command: &Command) -> Result<Result<Vec<Listed>, FtpError>, FtpError> {
        let (mut entries, mut bytes) = (Vec::new(), 0);
        let mut add = |reply: &Reply| {
            bytes += reply.lines.iter().map(Vec::len).sum::<usize>() as u64;
            if bytes > LISTING_BYTES_MAX {
                return Err(FtpError::Lie("sends a listing of more than 16 MiB"));
            }
            entries.extend(entries_of(reply).ok_or(UNREADABLE)?);
            Ok(())
        };
        let reply = self.control.replies(&mut add)?;
        if !reply.is_done() {
            return Ok(Err(refused(command, &reply)));
        }
        add(&reply)?;
        Ok(Ok(entries))
    }

    /// The text that a server sends over a data connection for a command.
    fn text_of(&mut self, command: Command) -> Result<Vec<u8>, FtpError> {
        match self.mode {
            Mode::Extended if self.is_out_of_reach() => {
                self.in_stream_mode(|channel| channel.text_in_stream(command))
            }
            Mode::Extended => self.text_in_blocks(command),
            Mode::Stream => self.text_in_stream(command),
        }
    }

    /// Whether the server has MLST and MLSD. One in extended block mode is asked without having announced them.
    fn has_facts(&self) -> bool {
        self.mode == Mode::Extended || self.features.has("MLST")
    }

    /// The facts of a path at a server without MLST.
    fn facts_by_size(&mut self, path: &[u8]) -> Result<Option<Facts>, FtpError> {
        let command = self.about("SIZE", path)?;
        let reply = self.control.ask(&command)?;
        if reply.is_done() {
            let size = reply.text().trim().parse();
            let size = size.map_err(|_| FtpError::Lie("answers SIZE without a number"))?;
            let modified = self.time_of(path)?;
            return Ok(Some(Facts { size: Some(size), modified, ..Facts::of(Kind::File) }));
        }
        match self.is_dir(path)? {
            true => Ok(Some(Facts::of(Kind::Directory))),
            // Files of unknown size cannot be copied, and must not be taken for missing ones.
            false if reply.code != 550 => Err(refused(&command, &reply)),
            false => Ok(None),
        }
    }

    /// The modification time of a file, in digits, UTC. `None` if the server has none.
    fn time_of(&mut self, path: &[u8]) -> Result<Option<String>, FtpError> {
        let command = self.about("MDTM", path)?;
        let reply = self.control.ask(&command)?;
        let text = reply.text().trim().to_owned();
        let is_time = text.len() >= 14 && text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        Ok((reply.is_done() && is_time).then_some(text))
    }

    /// Whether a path is a directory: the server changes into it, and back.
    fn is_dir(&mut self, path: &[u8]) -> Result<bool, FtpError> {
        let pwd = Command::new("PWD");
        let reply = self.control.demand(&pwd)?;
        let back = quoted(&reply).ok_or(FtpError::Lie("answers PWD without a path"))?;
        let command = self.about("CWD", path)?;
        if !self.control.ask(&command)?.is_done() {
            return Ok(false);
        }
        self.control.demand(&Command::with("CWD", &back)?)?;
        Ok(true)
    }

    /// The entries of a directory of a server without MLSD. The times of files come by MDTM: those of LIST have no zone.
    fn list_by_lines(&mut self, path: &[u8]) -> Result<Vec<Listed>, FtpError> {
        let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
        let text = self.lines_of(path)?;
        let mut entries = unix_list::listing(&text);
        // An empty text is what some servers send for a path that is no directory.
        if entries.is_empty() && !self.is_dir(path)? {
            let command = self.about("LIST", path)?;
            let text = "no such directory".to_owned();
            return Err(FtpError::Refused { command: command.verb(), code: 550, text });
        }
        for entry in entries.iter_mut().filter(|entry| entry.facts.kind == Kind::File) {
            if let Ok(name) = &entry.name {
                entry.facts.modified = self.time_of(&[path, slash, name.as_bytes()].concat())?;
            }
        }
        Ok(entries)
    }

    fn lines_of(&mut self, path: &[u8]) -> Result<Vec<u8>, FtpError> {
        if self.listing != Listing::Plain {
            let command = self.about("LIST -a", path)?;
            match self.text_of(command) {
                Ok(text) if self.listing == Listing::All || unix_list::has_itself(&text) => {
                    self.listing = Listing::All;
                    return Ok(text);
                }
                Err(error) if !(error.leaves_channel() && self.is_in_step()) => return Err(error),
                // The server may have taken the option for a part of the path.
                _ => {}
            }
        }
        let command = self.about("LIST", path)?;
        let text = self.text_of(command)?;
        if self.listing == Listing::Untried && !text.is_empty() {
            self.listing = Listing::Plain;
        }
        Ok(text)
    }
}

/// The facts in an answer to MLST.
// fuzz: ftp_replies
fn told(command: &Command, reply: &Reply) -> Result<Option<Facts>, FtpError> {
    match reply.code {
        550 => return Ok(None),
        // The answer of Globus' striped servers for a path that does not exist.
        500 if reply.text().contains("PATH_NOT_FOUND") => return Ok(None),
        _ if !reply.is_done() => return Err(refused(command, reply)),
        _ => {}
    }
    let facts = |line: &Vec<u8>| facts::parse(line.trim_ascii_start()).map(|(facts, _)| facts);
    let of_middle = reply.lines.get(1).and_then(facts);
    of_middle.map(Some).ok_or(FtpError::Lie("answers MLST without facts"))
}

/// The entries in an answer to MLSC: the lines that begin with a space.
// fuzz: ftp_replies
pub(crate) fn entries_of(reply: &Reply) -> Option<Vec<Listed>> {
    let end = reply.lines.len().saturating_sub(1);
    let lines = reply.lines.get(1..end).unwrap_or_default().iter();
    let lines: Vec<&[u8]> = lines.filter_map(|line| line.strip_prefix(b" ")).collect();
    facts::listing(&lines.join(&b'\n'))
}

/// The path in a reply to PWD: in quotes, with those in it doubled (RFC 959, appendix II).
// fuzz: ftp_replies
pub(crate) fn quoted(reply: &Reply) -> Option<Vec<u8>> {
    let mut rest = reply.lines.first()?.strip_prefix(b"\"")?.iter().copied().peekable();
    let mut path = Vec::new();
    while let Some(byte) = rest.next() {
        if byte == b'"' && rest.next_if_eq(&b'"').is_none() {
            return Some(path);
        }
        path.push(byte);
    }
    None
}
