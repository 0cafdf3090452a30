//! Errors of file operations: the file, the cause, and a remedy if there is one.

use crate::path::PathError;
use crate::shown::Shown;
use crate::trust::Distrust;
use crate::words::words;
use rustix::io::Errno;

/// An error of a file operation.
#[derive(Debug, thiserror::Error)]
pub enum FsError {
    /// A system call failed.
    #[error("{path}: {}", reason(.what, *.errno))]
    System {
        /// The operation, as a verb for messages ("create").
        what: &'static str,
        /// The path, escaped for a terminal.
        path: String,
        /// The kernel's error number.
        errno: Errno,
    },
    /// A symbolic link stands in the path.
    #[error("{path}: {LINK}")]
    Link {
        /// The operation, as a verb for messages.
        what: &'static str,
        /// The path, escaped for a terminal.
        path: String,
    },
    /// The file is a device, a FIFO or a socket. Renaming a new file over it would destroy it.
    #[error("{path}: {SPECIAL}")]
    Special {
        /// The path, escaped for a terminal.
        path: String,
    },
    /// Another process is writing to the file.
    #[error("{path}: {}", busy(*.by))]
    Busy {
        /// The path, escaped for a terminal.
        path: String,
        /// The id of that process, where the kernel tells it.
        by: Option<u32>,
    },
    /// The directory does not allow new files, but the existing file is writable.
    #[error("{path}: {ONLY_IN_PLACE}")]
    OnlyInPlace {
        /// The path, escaped for a terminal.
        path: String,
    },
    /// Something else has got the path since it was looked at.
    #[error("{path}: {EXCHANGED}")]
    Exchanged {
        /// The path, escaped for a terminal.
        path: String,
    },
    /// Another user can have made or changed the file, so nothing is taken from it.
    #[error("{path}: {reason}")]
    NotOurs {
        /// The path, escaped for a terminal.
        path: String,
        /// Why it is not believed.
        reason: Distrust,
    },
    /// The name or path is not allowed.
    #[error("{path}: {error}")]
    Path {
        /// The path, escaped for a terminal.
        path: String,
        /// Which rule it breaks.
        error: PathError,
    },
}

const LINK: &str = "a symbolic link is in the path, and files are never written through one";
const ONLY_IN_PLACE: &str =
    "permission denied in its directory; the file itself is writable: use --inplace";
const EXCHANGED: &str = "is exchanged for something else just now";
const SPECIAL: &str = "not a regular file; it is left unchanged";

impl FsError {
    /// The error `errno` of the operation `what` on the file at `path`. The link errors become
    /// [`Self::Link`].
    pub(crate) fn new(what: &'static str, path: &[u8], errno: Errno) -> Self {
        let path = Shown::new(path).to_string();
        match errno {
            // `O_NOFOLLOW` and `RESOLVE_NO_SYMLINKS` return `ELOOP`, and `RESOLVE_BENEATH` returns
            // `EXDEV`.
            Errno::LOOP | Errno::XDEV => Self::Link { what, path },
            _ => Self::System { what, path, errno },
        }
    }

    /// Converts an error of the standard library. One without an error number counts as `EIO`.
    pub fn io(what: &'static str, path: &[u8], error: &std::io::Error) -> Self {
        let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
        Self::new(what, path, errno)
    }

    /// The error for a directory where a regular file is to be written.
    pub fn is_dir(path: &[u8]) -> Self {
        Self::new("write", path, Errno::ISDIR)
    }

    /// The error for a file where a directory is to be made.
    pub fn is_no_dir(path: &[u8]) -> Self {
        Self::new("make the directory", path, Errno::NOTDIR)
    }

    /// The error for a device, FIFO or socket where a regular file is to be written.
    pub fn is_special(path: &[u8]) -> Self {
        Self::Special { path: Shown::new(path).to_string() }
    }

    /// The error for a path that is none.
    pub(crate) fn bad_path(path: &[u8], error: PathError) -> Self {
        Self::Path { path: Shown::new(path).to_string(), error }
    }

    /// The error for a path that has got something else since it was looked at.
    pub(crate) fn exchanged(path: &[u8]) -> Self {
        Self::Exchanged { path: Shown::new(path).to_string() }
    }

    /// The error for a file that is not believed.
    pub fn not_ours(path: &[u8], reason: Distrust) -> Self {
        Self::NotOurs { path: Shown::new(path).to_string(), reason }
    }

    /// The same error with the path replaced by `name`.
    #[must_use]
    pub fn about(mut self, name: &[u8]) -> Self {
        let (Self::System { path, .. }
        | Self::Link { path, .. }
        | Self::Special { path }
        | Self::Exchanged { path }
        | Self::NotOurs { path, .. }
        | Self::OnlyInPlace { path }
        | Self::Busy { path, .. }
        | Self::Path { path, .. }) = &mut self;
        *path = Shown::new(name).to_string();
        self
    }

    /// The cause and the remedy if there is one, without the path.
    pub fn reason(&self) -> String {
        match self {
            Self::System { what, errno, .. } => reason(what, *errno),
            Self::Link { .. } => LINK.to_owned(),
            Self::Special { .. } => SPECIAL.to_owned(),
            Self::Exchanged { .. } => EXCHANGED.to_owned(),
            Self::NotOurs { reason, .. } => reason.to_string(),
            Self::OnlyInPlace { .. } => ONLY_IN_PLACE.to_owned(),
            Self::Busy { by, .. } => busy(*by),
            Self::Path { error, .. } => error.to_string(),
        }
    }

    /// Whether the next file will fail in the same way: disk or quota full, file system read-only,
    /// or no more descriptors. A copy stops at such an error.
    pub fn is_fatal(&self) -> bool {
        let all = [Errno::NOSPC, Errno::DQUOT, Errno::ROFS, Errno::MFILE, Errno::NFILE];
        self.errno().is_some_and(|errno| all.contains(&errno))
    }

    /// The kernel's error number, if a system call failed.
    pub const fn errno(&self) -> Option<Errno> {
        match self {
            Self::System { errno, .. } => Some(*errno),
            Self::Link { .. }
            | Self::Special { .. }
            | Self::Exchanged { .. }
            | Self::NotOurs { .. }
            | Self::OnlyInPlace { .. }
            | Self::Busy { .. }
            | Self::Path { .. } => None,
        }
    }
}

/// Verbs that a message leaves out, because the cause alone says which operation failed.
const VERBS_IMPLIED_BY_CAUSE: [&str; 9] = [
    "create",
    "open",
    "write",
    "read",
    "look at",
    "set the owner",
    "rename to",
    "make the directory",
    "make the link",
];

fn reason(what: &str, errno: Errno) -> String {
    let (cause, advice) = (words(&errno.into()), advice(errno));
    if VERBS_IMPLIED_BY_CAUSE.contains(&what) {
        format!("{cause}{advice}")
    } else {
        format!("cannot {what}: {cause}{advice}")
    }
}

fn busy(by: Option<u32>) -> String {
    let by = by.map_or_else(String::new, |by| format!(" (process {by})"));
    format!("another program is writing to it{by}; run the same command again when it has ended")
}

/// The remedy for an error, where its description does not suggest it.
const fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::NOSPC => "; free some space and run the same command again to resume",
        Errno::DQUOT => "; your quota is used up: remove something and run the same command again",
        Errno::ROFS => "; the file system is mounted read-only",
        Errno::ACCESS | Errno::PERM => "; check owner and mode with 'ls -ld'",
        Errno::NAMETOOLONG => "; this file system allows shorter names only",
        Errno::MFILE => {
            "; raise the limit on open files (ulimit -n) and run the same command again"
        }
        Errno::FBIG => "; the file exceeds a limit of the file system or of the shell (ulimit -f)",
        Errno::CANCELED => "; it has no reader, and the other end of the copy is gone",
        Errno::IO => "; the disk or the network storage failed",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_text_starts_in_lower_case_without_an_error_number() {
        let error = FsError::new("create", b"x", Errno::ACCESS).about(b"f1");
        let text = error.to_string();
        assert_eq!(text, "f1: permission denied; check owner and mode with 'ls -ld'");
        let error = FsError::new("sync", b"f1", Errno::IO).reason();
        assert!(error.starts_with("cannot sync: input/output error;"), "{error}");
        assert!(!error.contains("os error"), "{error}");
    }
}
