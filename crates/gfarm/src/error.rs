//! What may go wrong.

use std::fmt;
use std::io;

/// An error number of Gfarm's protocol.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Code(pub i32);

impl Code {
    /// The operation is forbidden.
    pub const NOT_PERMITTED: Self = Self(1);
    /// No entry has this name.
    pub const NOT_FOUND: Self = Self(2);
    /// The disk of a node could not be read.
    pub const IO: Self = Self(5);
    /// The number of an open file is not known.
    pub const BAD_DESCRIPTOR: Self = Self(9);
    /// The user may not do it.
    pub const DENIED: Self = Self(13);
    /// An entry has this name already.
    pub const EXISTS: Self = Self(17);
    /// A part of the path is not a directory.
    pub const NOT_DIR: Self = Self(20);
    /// It is a directory.
    pub const IS_DIR: Self = Self(21);
    /// An argument has no meaning.
    pub const INVALID: Self = Self(22);
    /// The process has as many files open as gfmd lets it have (`max_open_files`).
    pub const TOO_MANY_OPEN: Self = Self(24);
    /// The file would be too large.
    pub const TOO_LARGE: Self = Self(27);
    /// No space is left.
    pub const NO_SPACE: Self = Self(28);
    /// The file system cannot be written to.
    pub const READ_ONLY: Self = Self(30);
    /// The name is too long.
    pub const NAME_TOO_LONG: Self = Self(37);
    /// The directory has entries.
    pub const NOT_EMPTY: Self = Self(38);
    /// The quota is used up.
    pub const QUOTA: Self = Self(64);
    /// The open file is not the present one any more.
    pub const STALE: Self = Self(65);
    /// The user has no valid key.
    pub const AUTHENTICATION: Self = Self(69);
    /// gfmd knows no such host, file or generation.
    pub const NO_SUCH_OBJECT: Self = Self(74);
    /// The file has moved to another node.
    pub const MIGRATED: Self = Self(79);
    /// gfmd was replaced by another one.
    pub const FAILED_OVER: Self = Self(98);
    /// No node is up.
    pub const NO_NODE: Self = Self(105);
}

/// The words for error numbers.
const WORDS: &[(Code, &str)] = &[
    (Code::NOT_PERMITTED, "operation not permitted"),
    (Code::NOT_FOUND, "no such file or directory"),
    (Code::IO, "input/output error"),
    (Code::BAD_DESCRIPTOR, "the file is not open"),
    (Code::DENIED, "permission denied"),
    (Code::EXISTS, "it exists already"),
    (Code::NOT_DIR, "not a directory"),
    (Code::IS_DIR, "is a directory"),
    (Code::INVALID, "invalid argument"),
    (Code::TOO_MANY_OPEN, "too many files are open at the metadata server"),
    (Code::TOO_LARGE, "file too large"),
    (Code::NO_SPACE, "no space left"),
    (Code::READ_ONLY, "the file system is read-only"),
    (Code::NAME_TOO_LONG, "the name is too long"),
    (Code::NOT_EMPTY, "the directory is not empty"),
    (Code::QUOTA, "the quota is used up"),
    (Code::STALE, "stale file handle"),
    (Code::AUTHENTICATION, "the key is not accepted"),
    (Code::NO_SUCH_OBJECT, "no such object"),
    (Code::MIGRATED, "the file has moved to another node"),
    (Code::FAILED_OVER, "the metadata server was replaced by another one"),
    (Code::NO_NODE, "no file-system node is up"),
];

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match WORDS.iter().find(|(code, _)| code == self) {
            Some((_, words)) => f.write_str(words),
            None => write!(f, "Gfarm's error number {}", self.0),
        }
    }
}

/// Why a request failed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallError {
    /// The server refuses it. The connection goes on.
    #[error("{0}")]
    Refused(Code),
    /// The connection has ended, or the server did not answer in time.
    #[error("{}", lost(*.0))]
    Lost(io::ErrorKind),
    /// The same of the session with the metadata server, by which all nodes are used.
    #[error("the metadata server {server}: {}", lost(*.kind))]
    MetadataLost {
        /// Its host and port.
        server: String,
        /// Why.
        kind: io::ErrorKind,
    },
    /// The server says what no server of this protocol says.
    #[error("the server breaks Gfarm's protocol: {0}")]
    Protocol(&'static str),
    /// The node has fewer bytes of the file than gfmd told.
    #[error("the file is shorter than it was")]
    Short,
}

impl From<io::Error> for CallError {
    fn from(error: io::Error) -> Self {
        Self::Lost(match error.kind() {
            // A socket with a time limit says so (socket(7), SO_RCVTIMEO).
            io::ErrorKind::WouldBlock => io::ErrorKind::TimedOut,
            kind => kind,
        })
    }
}

fn lost(kind: io::ErrorKind) -> String {
    match kind {
        io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        kind => format!("the connection has ended ({kind})"),
    }
}

impl CallError {
    /// The error number, if the server has answered with one.
    pub const fn code(&self) -> Option<Code> {
        match self {
            Self::Refused(code) => Some(*code),
            _ => None,
        }
    }
}

/// Why there is no session with a server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host's name has no address.
    #[error("{host}: its name has no address")]
    Name {
        /// The host.
        host: String,
    },
    /// No connection can be made.
    #[error("{server}: cannot connect ({kind})")]
    Connect {
        /// Host and port.
        server: String,
        /// Why, in the words of the operating system.
        kind: io::ErrorKind,
    },
    /// The server accepts no method that this client has.
    #[error("{server}: the server accepts no login by a shared key")]
    NoMethod {
        /// Host and port.
        server: String,
    },
    /// The server does not accept the user or the key.
    #[error("{server}: the server does not accept the shared key of '{user}' ({why})")]
    Denied {
        /// Host and port.
        server: String,
        /// The user at the server.
        user: String,
        /// The server's reason.
        why: &'static str,
    },
    /// The session failed while it began.
    #[error("{server}: {error}")]
    Call {
        /// Host and port.
        server: String,
        /// Why.
        error: CallError,
    },
}

impl ConnectError {
    /// What the user can do about it.
    pub const fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Denied { .. } => Some(
                "copy ~/.gfarm_shared_key of your account at the Gfarm servers to this machine, or renew it at the servers by gfkey -f",
            ),
            Self::NoMethod { .. } => Some(
                "mount the file system with gfarm2fs, which has Gfarm's other methods, and copy from the mount",
            ),
            Self::Name { .. } | Self::Connect { .. } => {
                Some("look at metadb_server_host and metadb_server_port in gfarm2.conf")
            }
            Self::Call { .. } => None,
        }
    }

    /// Whether a later attempt may succeed without a change.
    pub const fn is_worth_retrying(&self) -> bool {
        matches!(self, Self::Connect { .. } | Self::Call { error: CallError::Lost(_), .. })
    }

    /// The reason without the server, for messages that begin with it.
    pub fn reason(&self) -> String {
        let text = self.to_string();
        let (Self::Name { host: server }
        | Self::Connect { server, .. }
        | Self::NoMethod { server }
        | Self::Denied { server, .. }
        | Self::Call { server, .. }) = self;
        let reason = text.strip_prefix(server.as_str()).and_then(|rest| rest.strip_prefix(": "));
        reason.map_or_else(|| text.clone(), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_named_once_and_one_that_is_silent_has_not_hung_up() {
        let timeout = CallError::from(io::Error::from(io::ErrorKind::WouldBlock));
        let error = ConnectError::Call { server: "n:1".to_owned(), error: timeout };
        assert_eq!(error.to_string(), "n:1: no answer in time");
        assert_eq!(error.reason(), "no answer in time");
        let ended = CallError::from(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(ended.to_string(), "the connection has ended (connection reset)");
    }
}
