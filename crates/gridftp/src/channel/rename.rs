//! Other names for files of a server.

use super::Channel;
use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::reply::Reply;
use crate::times;

/// Another name for a file.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'p> {
    /// The path that it has.
    pub from: &'p [u8],
    /// The path that it gets, in place of what has that.
    pub to: &'p [u8],
    /// The permission bits that it gets before: those of the file whose place it takes.
    pub mode: Option<u32>,
    /// The modification time that it gets before, in seconds since 1970.
    pub modified: Option<i64>,
}

impl Channel {
    /// Gives a file another name. A server that changes no modes or times gives it its own.
    ///
    /// # Errors
    /// The server refuses.
    pub fn rename(&mut self, file: &Rename<'_>) -> Result<(), FtpError> {
        let Renaming { sets, from: command, to: rename } = self.renaming(file)?;
        for command in &sets {
            let reply = self.control.ask(command)?;
            is_set(command, &reply)?;
        }
        let reply = self.control.ask(&command)?;
        if !reply.wants_more() {
            return Err(refused(&command, &reply));
        }
        self.control.demand(&rename).map(drop)
    }

    /// Renames each of these files like a single one, `at_once` of them concurrently. Returns the result of each.
    ///
    /// # Errors
    /// The control connection is lost, and with it the answers. The channel is then of no use any more.
    pub fn rename_each(
        &mut self,
        files: &[Rename<'_>],
        at_once: usize,
    ) -> Result<Vec<Result<(), FtpError>>, FtpError> {
        let mut renamed = Vec::with_capacity(files.len());
        for some in files.chunks(at_once.max(1)) {
            let mut commands = Vec::with_capacity(some.len());
            for file in some {
                commands.push(self.renaming(file));
            }
            for Renaming { sets, from, to } in commands.iter().flatten() {
                for command in sets.iter().chain([from, to]) {
                    self.control.send(command)?;
                }
            }
            for command in commands {
                renamed.push(match command {
                    Ok(renaming) => self.renamed(&renaming)?,
                    Err(error) => Err(error),
                });
            }
        }
        Ok(renamed)
    }

    fn renaming(&mut self, file: &Rename<'_>) -> Result<Renaming, FtpError> {
        let (from, to) = (self.about("RNFR", file.from)?, self.about("RNTO", file.to)?);
        let mode = file.mode.map(|mode| format!("SITE CHMOD {mode:o}"));
        let time = file.modified.and_then(times::digits).map(|time| format!("MFMT {time}"));
        let sets = mode.into_iter().chain(time).map(|words| self.about(&words, file.from));
        Ok(Renaming { sets: sets.collect::<Result<_, _>>()?, from, to })
    }

    /// Reads the answers to all commands.
    fn renamed(&mut self, renaming: &Renaming) -> Result<Result<(), FtpError>, FtpError> {
        let Renaming { sets, from, to } = renaming;
        let mut set = Ok(());
        for command in sets {
            let is_set = is_set(command, &self.control.reply()?);
            set = set.and(is_set);
        }
        let (first, second) = (self.control.reply()?, self.control.reply()?);
        Ok(match (first.wants_more(), second.is_done()) {
            (false, _) => Err(refused(from, &first)),
            (true, false) => Err(refused(to, &second)),
            (true, true) => set,
        })
    }
}

/// The commands that give a file another name.
struct Renaming {
    /// Set its mode and time.
    sets: Vec<Command>,
    from: Command,
    to: Command,
}

/// Whether a mode or time is set, or the server has no such command.
// fuzz: ftp_replies
fn is_set(command: &Command, reply: &Reply) -> Result<(), FtpError> {
    match reply.is_done() || (500..=504).contains(&reply.code) {
        true => Ok(()),
        false => Err(refused(command, reply)),
    }
}
