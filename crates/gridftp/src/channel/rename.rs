//! Other names for files of a server.

use super::Channel;
use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;

impl Channel {
    /// Gives a file another name, in place of what has that name.
    ///
    /// # Errors
    /// The server refuses.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), FtpError> {
        let (command, rename) = (self.about("RNFR", from)?, self.about("RNTO", to)?);
        let reply = self.control.ask(&command)?;
        if !reply.wants_more() {
            return Err(refused(&command, &reply));
        }
        self.control.demand(&rename).map(drop)
    }

    /// Gives each of these files another name, in the same way, so many at once. Returns what became of each.
    ///
    /// # Errors
    /// The control connection is lost, and with it the answers. The channel is then of no use any more.
    pub fn rename_each(
        &mut self,
        files: &[(&[u8], &[u8])],
        at_once: usize,
    ) -> Result<Vec<Result<(), FtpError>>, FtpError> {
        let mut renamed = Vec::with_capacity(files.len());
        for some in files.chunks(at_once.max(1)) {
            let mut commands = Vec::with_capacity(some.len());
            for (from, to) in some {
                commands.push(self.renaming(from, to));
            }
            for (from, to) in commands.iter().flatten() {
                self.control.send(from)?;
                self.control.send(to)?;
            }
            for command in commands {
                renamed.push(match command {
                    Ok((from, to)) => self.renamed(&from, &to)?,
                    Err(error) => Err(error),
                });
            }
        }
        Ok(renamed)
    }

    fn renaming(&mut self, from: &[u8], to: &[u8]) -> Result<(Command, Command), FtpError> {
        Ok((self.about("RNFR", from)?, self.about("RNTO", to)?))
    }

    /// Hears the answers to both commands.
    fn renamed(&mut self, from: &Command, to: &Command) -> Result<Result<(), FtpError>, FtpError> {
        let (first, second) = (self.control.reply()?, self.control.reply()?);
        Ok(match (first.wants_more(), second.is_done()) {
            (false, _) => Err(refused(from, &first)),
            (true, false) => Err(refused(to, &second)),
            (true, true) => Ok(()),
        })
    }
}
