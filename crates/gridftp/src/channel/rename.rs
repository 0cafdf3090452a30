//! Other names for files of a server.

use super::Channel;
use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;
use crate::reply::Reply;

/// Another name for a file.
#[derive(Clone, Copy, Debug)]
pub struct Rename<'p> {
    /// The path that it has.
    pub from: &'p [u8],
    /// The path that it gets, in place of what has that.
    pub to: &'p [u8],
    /// The permission bits that it gets before: those of the file whose place it takes.
    pub mode: Option<u32>,
}

impl Channel {
    /// Gives a file another name. A server that changes no modes gives it its own mode.
    ///
    /// # Errors
    /// The server refuses.
    pub fn rename(&mut self, file: &Rename<'_>) -> Result<(), FtpError> {
        let Renaming { mode, from: command, to: rename } = self.renaming(file)?;
        if let Some(command) = mode {
            let reply = self.control.ask(&command)?;
            is_set(&command, &reply)?;
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
            for Renaming { mode, from, to } in commands.iter().flatten() {
                for command in mode.iter().chain([from, to]) {
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
        let mode = file.mode.map(|mode| self.about(&format!("SITE CHMOD {mode:o}"), file.from));
        Ok(Renaming { mode: mode.transpose()?, from, to })
    }

    /// Reads the answers to all commands.
    fn renamed(&mut self, renaming: &Renaming) -> Result<Result<(), FtpError>, FtpError> {
        let Renaming { mode, from, to } = renaming;
        let set = match mode {
            Some(command) => is_set(command, &self.control.reply()?),
            None => Ok(()),
        };
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
    mode: Option<Command>,
    from: Command,
    to: Command,
}

/// Whether a mode is set, or the server does not know how.
// fuzz: ftp_replies
fn is_set(command: &Command, reply: &Reply) -> Result<(), FtpError> {
    match reply.is_done() || (500..=504).contains(&reply.code) {
        true => Ok(()),
        false => Err(refused(command, reply)),
    }
}
