//! Commands about many paths, sent together.

use super::Channel;
use crate::command::Command;
use crate::control::refused;
use crate::error::FtpError;

impl Channel {
    /// Makes directories that do not exist, whose parents exist, `at_once` of them concurrently. Returns the result of each.
    ///
    /// # Errors
    /// The control connection is lost, and with it the answers. The channel is then of no use any more.
    pub fn make_each(
        &mut self,
        paths: &[Vec<u8>],
        at_once: usize,
    ) -> Result<Vec<Result<(), FtpError>>, FtpError> {
        self.demand_each(paths, at_once, |_| "MKD".to_owned())
    }

    /// Sets the permission bits of each of these files or directories, `at_once` of them concurrently.
    ///
    /// # Errors
    /// As above.
    pub fn set_mode_of_each(
        &mut self,
        (paths, modes): (&[Vec<u8>], &[u32]),
        at_once: usize,
    ) -> Result<Vec<Result<(), FtpError>>, FtpError> {
        let mode = |at: usize| modes.get(at).copied().unwrap_or_default();
        self.demand_each(paths, at_once, |at| format!("SITE CHMOD {:o}", mode(at)))
    }

    fn demand_each(
        &mut self,
        paths: &[Vec<u8>],
        at_once: usize,
        words: impl Fn(usize) -> String,
    ) -> Result<Vec<Result<(), FtpError>>, FtpError> {
        let mut commands = Vec::with_capacity(paths.len());
        for (at, path) in paths.iter().enumerate() {
            // This may ask the server, so it is done before anything is under way.
            commands.push(self.about(&words(at), path));
        }
        let mut done = Vec::with_capacity(paths.len());
        for some in commands.chunks(at_once.max(1)) {
            for command in some.iter().flatten() {
                self.control.send(command)?;
            }
            for command in some {
                done.push(match command {
                    Ok(command) => self.done(command)?,
                    Err(_) => Err(FtpError::BadPath),
                });
            }
        }
        Ok(done)
    }

    /// Reads the answer to a command.
    fn done(&mut self, command: &Command) -> Result<Result<(), FtpError>, FtpError> {
        let reply = self.control.reply()?;
        Ok(if reply.is_done() { Ok(()) } else { Err(refused(command, &reply)) })
    }
}
