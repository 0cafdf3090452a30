//! What went wrong, with which file, and what can be done.

use crate::path::PathError;
use crate::shown::Shown;
use rustix::io::Errno;

/// An operation that failed.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// The system refused.
    #[error("cannot {what} {path}: {errno}{}", advice(.errno))]
    System {
        /// What was tried, as a verb.
        what: &'static str,
        /// Escaped for a terminal.
        path: String,
        /// Why not.
        errno: Errno,
    },
    /// A link, or something else that is not what its name was said to be, stands in the way.
    #[error(
        "cannot {what} {path}: a symbolic link is in the way, and nothing is written through one"
    )]
    Link {
        /// What was tried, as a verb.
        what: &'static str,
        /// Escaped for a terminal.
        path: String,
    },
    /// A device, a FIFO or a socket: a rename would put an end to it.
    #[error("{path} is no plain file, and is left alone")]
    Special {
        /// Escaped for a terminal.
        path: String,
    },
    /// A name that no file may have.
    #[error("{path}: {error}")]
    Path {
        /// Escaped for a terminal.
        path: String,
        /// What is wrong with it.
        error: PathError,
    },
}

impl FsError {
    /// The system's answer to an attempt to `what` the file at `path`.
    pub(crate) fn new(what: &'static str, path: &[u8], errno: Errno) -> Self {
        let path = Shown::new(path).to_string();
        match errno {
            // `O_NOFOLLOW` and `RESOLVE_NO_SYMLINKS` say ELOOP, `RESOLVE_BENEATH` says EXDEV.
            Errno::LOOP | Errno::XDEV => Self::Link { what, path },
            _ => Self::System { what, path, errno },
        }
    }

    /// The system's answer to an attempt to `what` the file at `path`, as the standard library tells
    /// it.
    pub fn io(what: &'static str, path: &[u8], error: &std::io::Error) -> Self {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        Self::new(what, path, errno)
    }

    /// A directory stands where a file is to be.
    pub fn is_dir(path: &[u8]) -> Self {
        Self::new("write", path, Errno::ISDIR)
    }

    /// A device, a FIFO or a socket stands where a file is to be.
    pub fn is_special(path: &[u8]) -> Self {
        Self::Special { path: Shown::new(path).to_string() }
    }

    /// Whether the next file would meet the same: there is no room, or nothing may be written.
    pub fn is_fatal(&self) -> bool {
        let all = [Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::IO];
        self.errno().is_some_and(|errno| all.contains(&errno))
    }

    /// The system's error number, if it was the system.
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { errno, .. } => Some(*errno),
            Self::Link { .. } | Self::Special { .. } | Self::Path { .. } => None,
        }
    }
}

/// A remedy, where there is one that is not in the text itself.
fn advice(errno: &Errno) -> &'static str {
    match *errno {
        Errno::NOSPC => "; free some space and run the same command again, it goes on from there",
        Errno::DQUOT => "; your quota is used up: remove something and run the same command again",
        Errno::ROFS => "; the file system is mounted read-only",
        Errno::ACCESS | Errno::PERM => "; check owner and mode with 'ls -ld'",
        Errno::NAMETOOLONG => "; this file system allows shorter names only",
        _ => "",
    }
}
