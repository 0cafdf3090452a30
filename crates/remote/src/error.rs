//! What goes wrong at a client.

use hikyaku_console::ExitCode;
use hikyaku_net::{CloseReason, OpenError, ReadError, WriteError};
use hikyaku_store::ErrorKind;

/// A request that was not answered as it should.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RemoteError {
    /// The server cannot do it.
    #[error("{text}")]
    Refused {
        /// Why, for programs.
        kind: ErrorKind,
        /// Why, for people.
        text: String,
    },
    /// The connection has ended.
    #[error("the connection to the server has ended")]
    Closed(Option<CloseReason>),
    /// The server says what no server of this protocol says.
    #[error("the server breaks the protocol: {0}")]
    Protocol(&'static str),
}

impl RemoteError {
    /// The exit code of a command that cannot do without the answer.
    pub const fn code(&self) -> ExitCode {
        match self {
            Self::Refused { kind, .. } => code_of(*kind),
            Self::Closed(_) => ExitCode::MayPass,
            Self::Protocol(_) => ExitCode::Failed,
        }
    }

    /// Whether the server itself is gone, so that its work has to be given to others.
    pub const fn is_of_server(&self) -> bool {
        matches!(self, Self::Closed(_) | Self::Protocol(_))
    }
}

/// The exit code of a command that needs a file of a store which fails for this reason.
pub const fn code_of(kind: ErrorKind) -> ExitCode {
    match kind {
        _ if kind.is_worth_retrying() => ExitCode::MayPass,
        ErrorKind::SPECIAL => ExitCode::WillFail,
        ErrorKind::Damaged | ErrorKind::System(_) | ErrorKind::Unexplained => ExitCode::Failed,
        _ => ExitCode::WillFail,
    }
}

impl From<OpenError> for RemoteError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Closed(reason) => Self::Closed(Some(reason)),
            _ => Self::Closed(None),
        }
    }
}

impl From<ReadError> for RemoteError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Closed(reason) => Self::Closed(Some(reason)),
            _ => Self::Closed(None),
        }
    }
}

impl From<WriteError> for RemoteError {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Closed(reason) => Self::Closed(Some(reason)),
            _ => Self::Closed(None),
        }
    }
}
