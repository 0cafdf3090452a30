//! Errors that end a copy.

use crate::failure::Fatal;
use crate::incoming::Lie;
use crate::lane::LoadError;
use crate::send::TooSoon;
use crate::session::{LostConnection, Refused};
use hikyaku_console::{Kept, causes_of};
use hikyaku_fs::FsError;
use hikyaku_job::{ClaimsFull, TooMany, kind_of_errno, kind_of_fs_error};
use hikyaku_net::{OpenError, ReadError, WriteError};
use hikyaku_reach::{ReachError, TalkError};
use hikyaku_transfer::{Beyond, FailureKind, MessageError};
use rustix::io::Errno;
use std::fmt::Display;
use std::io;

/// Why a copy has ended early.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    /// The user has stopped it.
    #[error(transparent)]
    Stopped(#[from] Kept),
    /// The connection is lost. Another attempt can continue the copy.
    #[error("the connection is lost")]
    Lost(#[from] LostConnection),
    /// The other end cannot continue, and has sent the reason.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The far side could not be reached.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// A failure of the target as a whole, or of a file where the next file would fail as well.
    #[error(transparent)]
    Fatal(#[from] Fatal),
    /// The same, from the file system.
    #[error(transparent)]
    File(#[from] FsError),
    /// Any other error of the system.
    #[error("cannot {what}")]
    System {
        /// The operation that failed.
        what: &'static str,
        /// The error.
        source: io::Error,
    },
    /// A message could not be sent or received.
    #[error(transparent)]
    Talk(#[from] TalkError),
    /// Bytes that are no message.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// An object of the transport could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// An object or a stream could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// An object or a stream could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Sources of several machines have too many names.
    #[error(transparent)]
    Claims(#[from] ClaimsFull),
    /// For this reason, which is about no file: often the other end has broken the protocol.
    #[error("{0}")]
    Ended(String),
}

impl PairError {
    /// An end for a reason that is about no file.
    pub(crate) fn ended(reason: impl Display) -> Self {
        Self::Ended(reason.to_string())
    }

    /// The remedy for the user, as a text that begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Lost(_) => {
                Some("try: the same command again; it goes on where this one stopped".to_owned())
            }
            Self::Refused(refused) => refused.remedy.clone(),
            Self::Reach(error) => error.remedy(),
            Self::Fatal(fatal) => fatal.remedy().map(str::to_owned),
            Self::Claims(_) => Some(ClaimsFull::REMEDY.to_owned()),
            Self::Stopped(_)
            | Self::File(_)
            | Self::System { .. }
            | Self::Talk(_)
            | Self::Message(_)
            | Self::Open(_)
            | Self::Read(_)
            | Self::Write(_)
            | Self::Ended(_) => None,
        }
    }

    /// The kind of the failure, if it is known.
    pub(crate) fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Fatal(fatal) => Some(fatal.kind()),
            Self::File(error) => Some(kind_of_fs_error(error)),
            other => {
                let first = other as &(dyn std::error::Error + 'static);
                std::iter::successors(Some(first), |error| error.source())
                    .filter_map(|error| error.downcast_ref::<io::Error>())
                    .find_map(of_io)
            }
        }
    }

    /// The causes and the remedy in one line, for the other end.
    pub(crate) fn one_line(&self) -> String {
        let causes = causes_of(self);
        self.remedy().map_or_else(|| causes.clone(), |remedy| format!("{causes}: {remedy}"))
    }
}

fn of_io(error: &io::Error) -> Option<FailureKind> {
    Errno::from_io_error(error).map(kind_of_errno).or_else(|| match error.kind() {
        io::ErrorKind::NotFound => Some(FailureKind::NotFound),
        io::ErrorKind::PermissionDenied => Some(FailureKind::Denied),
        _ => None,
    })
}

impl From<LoadError> for PairError {
    fn from(error: LoadError) -> Self {
        match error {
            LoadError::Talk(error) => error.into(),
            LoadError::Open(error) => error.into(),
            LoadError::Write(error) => error.into(),
            error @ (LoadError::Read(_) | LoadError::Unwanted) => Self::ended(error),
        }
    }
}

impl From<Lie> for PairError {
    fn from(lie: Lie) -> Self {
        Self::ended(lie)
    }
}

impl From<Beyond> for PairError {
    fn from(beyond: Beyond) -> Self {
        Self::ended(beyond)
    }
}

impl From<TooSoon> for PairError {
    fn from(error: TooSoon) -> Self {
        Self::ended(error)
    }
}

impl From<TooMany> for PairError {
    fn from(error: TooMany) -> Self {
        Self::ended(error)
    }
}
