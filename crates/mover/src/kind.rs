//! What kind of failure it is, for programs: of a server, or of a file.

#[cfg(test)]
mod tests;

use crate::census::Why;
use crate::choice::InTheWay;
use crate::fetch::FetchError;
use hikyaku_crypto::{Handshake, SettleTrust};
use hikyaku_fs::PathError;
use hikyaku_net::ConnectError;
use hikyaku_reach::daemon::NoService;
use hikyaku_reach::dial::DialError;
use hikyaku_reach::tcp::TcpError;
use hikyaku_remote::RemoteError;
use hikyaku_store::ErrorKind;
use hikyaku_transfer::FailureKind;

/// The kind of a failure of a session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// No address is known for the name of the server.
    UnknownHost,
    /// Nothing answers at the server's address, or its connection was lost.
    NoAnswer,
    /// The server has another key than the one that is expected.
    WrongKey,
    /// The server does not know this client's key.
    NotAuthorised,
    /// The server speaks no version of the protocol that this program speaks.
    OtherVersion,
    /// The server has as many clients as it may have.
    ServerFull,
    /// The server is ending.
    ServerEnds,
    /// The server does not offer files, or is no hikyaku server.
    NoFiles,
    /// The path leads out of the server's root.
    OutsideRoot,
    /// The user has stopped it.
    Stopped,
    /// A failure of a file, such as a full disk ([`FailureKind::NoSpace`]).
    File(FailureKind),
}

impl Kind {
    /// What to do about it; `None` where the text of the error says so, or nobody knows.
    pub const fn remedy(self) -> Option<&'static str> {
        match self {
            Self::UnknownHost => Some("check the name of the server, or use its IP address"),
            Self::NoAnswer => Some(
                "check that hikyaku serve runs on the host, and that no firewall drops its port",
            ),
            Self::WrongKey => Some(
                "hikyaku keys forget HOST, if the server's administrator confirms that its key has changed",
            ),
            Self::NotAuthorised => {
                Some("hikyaku keys show prints the line that the server's list of keys needs")
            }
            Self::OtherVersion => Some("the same hikyaku at both ends"),
            Self::ServerFull => {
                Some("again later, or a higher --max-clients of hikyaku serve on the host")
            }
            Self::ServerEnds => Some("again later"),
            Self::NoFiles => Some("hikyaku serve --root DIR on the host"),
            Self::OutsideRoot => Some("a path below the root that the server serves, without '..'"),
            Self::File(FailureKind::NoSpace) => {
                Some("remove files at the target, or use another one")
            }
            Self::File(FailureKind::ReadOnly) => Some(
                "a target that may be written to: a server needs --writable, and no 'ro' in the line of the client's key",
            ),
            Self::Stopped | Self::File(_) => None,
        }
    }

    /// The kind of failure of a file that comes closest.
    pub const fn as_file(self) -> FailureKind {
        match self {
            Self::File(kind) => kind,
            Self::UnknownHost | Self::NoAnswer | Self::ServerFull | Self::ServerEnds => {
                FailureKind::Busy
            }
            Self::WrongKey | Self::NotAuthorised => FailureKind::Denied,
            Self::OtherVersion | Self::NoFiles => FailureKind::Unsupported,
            Self::OutsideRoot => FailureKind::BadName,
            Self::Stopped => FailureKind::Other,
        }
    }
}

impl From<&DialError> for Kind {
    fn from(error: &DialError) -> Self {
        match error {
            DialError::Connect(error) => of_connect(error),
            DialError::Tcp(error) => of_tcp(error),
            DialError::Refused { .. } => Self::NoAnswer,
            DialError::Service(error) => match error {
                NoService::NotAuthorised(_) => Self::NotAuthorised,
                NoService::NotServed(_) => Self::File(FailureKind::Denied),
                NoService::OtherVersion(_) => Self::OtherVersion,
                NoService::Full(_) => Self::ServerFull,
                NoService::Later(_) => Self::ServerEnds,
                NoService::Refused(_) | NoService::Malformed => Self::NoFiles,
                NoService::Closed(_) | NoService::Silent(_) => Self::NoAnswer,
            },
        }
    }
}

const fn of_connect(error: &ConnectError) -> Kind {
    match error {
        ConnectError::Name(_) | ConnectError::NotFound { .. } => Kind::UnknownHost,
        ConnectError::Untrusted(_) | ConnectError::Trust(SettleTrust::Untrusted(_)) => {
            Kind::WrongKey
        }
        ConnectError::Version { .. } => Kind::OtherVersion,
        _ => Kind::NoAnswer,
    }
}

fn of_tcp(error: &TcpError) -> Kind {
    match error {
        TcpError::Name(_) => Kind::UnknownHost,
        TcpError::Handshake(Handshake::Untrusted(_))
        | TcpError::Trust(SettleTrust::Untrusted(_)) => Kind::WrongKey,
        TcpError::Other { .. } => Kind::NoFiles,
        _ => Kind::NoAnswer,
    }
}

impl From<ErrorKind> for Kind {
    fn from(kind: ErrorKind) -> Self {
        Self::File(kind.into())
    }
}

impl From<&RemoteError> for Kind {
    fn from(error: &RemoteError) -> Self {
        match error {
            RemoteError::Refused { kind, .. } => (*kind).into(),
            RemoteError::Closed(_) | RemoteError::Protocol(_) => Self::NoAnswer,
        }
    }
}

impl From<PathError> for Kind {
    fn from(error: PathError) -> Self {
        match error {
            PathError::Dots(_) => Self::OutsideRoot,
            _ => Self::File(FailureKind::BadName),
        }
    }
}

impl From<Why> for Kind {
    fn from(why: Why) -> Self {
        match why {
            Why::Server(kind) => kind.into(),
            Why::Differs => Self::File(FailureKind::Changed),
            Why::Special => Self::File(FailureKind::Special),
            Why::Circle | Why::Away => Self::File(FailureKind::Link),
            Why::BadName => Self::File(FailureKind::BadName),
            Why::Tree => Self::File(FailureKind::IsDirectory),
            Why::Sizeless => Self::File(FailureKind::Unsupported),
            Why::Taken | Why::Double => Self::File(FailureKind::Exists),
        }
    }
}

impl From<InTheWay> for Kind {
    fn from(way: InTheWay) -> Self {
        Self::File(match way {
            InTheWay::Directory => FailureKind::IsDirectory,
            InTheWay::Special => FailureKind::Special,
            InTheWay::NoDirectory => FailureKind::NotDirectory,
            InTheWay::File => FailureKind::Exists,
        })
    }
}

impl From<&FetchError> for Kind {
    fn from(error: &FetchError) -> Self {
        match error {
            FetchError::Target(error) | FetchError::Source(error) => error.kind.into(),
            FetchError::InTheWay(way) => (*way).into(),
            FetchError::Server(error) => error.into(),
            FetchError::OutOfReach | FetchError::NoTaker | FetchError::OldOneAway => Self::NoAnswer,
            FetchError::Stopped => Self::Stopped,
            FetchError::Damaged | FetchError::Unexpected => Self::File(FailureKind::Damaged),
            FetchError::TooLarge => Self::File(FailureKind::TooLarge),
            FetchError::NoTime => Self::File(FailureKind::Unsupported),
        }
    }
}
