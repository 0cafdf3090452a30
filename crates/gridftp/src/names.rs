//! Whether a server takes names as they are.
//!
//! Some servers drop the bytes of a command that are not ASCII, and answer as if the rest were the name: two files become
//! one. So a session requests once (MLST) a name of such bytes alone in a directory that exists. A server that drops them
//! answers for the directory.

use crate::channel::{Channel, Mode};
use crate::command::Command;
use crate::error::FtpError;
use hikyaku_fs::Shown;

/// The result of that test, once it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Names {
    /// It has not been asked.
    #[default]
    Unknown,
    Kept,
    Lost,
}

impl Channel {
    /// Checks that the server takes a path for what it is. It is asked once, and only about a path that is not ASCII.
    ///
    /// # Errors
    /// It does not, or cannot be asked while other commands are under way.
    // fuzz: none, the user's own path; replies are read by `ftp_replies`
    pub fn check_name(&mut self, path: &[u8]) -> Result<(), FtpError> {
        if path.is_ascii() {
            return Ok(());
        }
        if self.names == Names::Unknown && self.is_in_step() {
            self.names = self.ask_names(path)?;
        }
        match self.names {
            Names::Kept => Ok(()),
            Names::Unknown | Names::Lost => {
                Err(FtpError::LosesName { path: Shown::new(path).to_string() })
            }
        }
    }

    /// A command about a path. Servers of plain FTP do not all know the sign `~`: their sessions begin in the home directory,
    /// and stay there.
    pub(crate) fn about(&mut self, words: &str, path: &[u8]) -> Result<Command, FtpError> {
        let command = match (self.mode(), path.strip_prefix(b"~/")) {
            (Mode::Stream, Some(below)) => Command::with(words, &[b"./", below].concat())?,
            _ => Command::with(words, path)?,
        };
        self.check_name(path)?;
        Ok(command)
    }

    fn ask_names(&mut self, path: &[u8]) -> Result<Names, FtpError> {
        let (folder, name) = probe(path);
        for folder in [folder, b"./"] {
            let command = Command::with("MLST", &[folder, &name].concat())?;
            let reply = self.control.ask(&command)?;
            if reply.is_done() {
                let is_kept = reply.lines.iter().any(|line| !line.is_ascii());
                return Ok(if is_kept { Names::Kept } else { Names::Lost });
            }
        }
        // There is no file of that name, as there should be none.
        Ok(Names::Kept)
    }
}

/// The directory of the first part of a path that is not ASCII, and what is not ASCII in that part.
// fuzz: none, paths of this end, and names of a listing that were checked
fn probe(path: &[u8]) -> (&[u8], Vec<u8>) {
    let first = path.iter().position(|byte| !byte.is_ascii()).unwrap_or(path.len());
    let begin = path[..first].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    let part = path[begin..].split(|&byte| byte == b'/').next().unwrap_or_default();
    let name = part.iter().copied().filter(|byte| !byte.is_ascii()).collect();
    (if begin == 0 { b"./" } else { &path[..begin] }, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_not_ascii_at_all() {
        let cases: [(&str, &str, &str); 4] = [
            ("/t/\u{e9}a.txt", "/t/", "\u{e9}"),
            ("/a/b\u{e9}c\u{e8}/d\u{e7}", "/a/", "\u{e9}\u{e8}"),
            ("\u{e9}", "./", "\u{e9}"),
            ("~/x/\u{e9}/y", "~/x/", "\u{e9}"),
        ];
        for (path, folder, name) in cases {
            assert_eq!(probe(path.as_bytes()), (folder.as_bytes(), name.into()), "{path}");
        }
    }
}
