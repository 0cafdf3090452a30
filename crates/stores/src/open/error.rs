//! Why a location cannot be opened.

use anyhow::Error;
use hikyaku_console::{ExitCode, causes_of, with_remedy};
use hikyaku_fs::PathError;
use hikyaku_gridftp::{CredentialsError, FtpError, GuardError};
use hikyaku_http::Fault;
use hikyaku_session::SetupError;
#[cfg(not(feature = "s3"))]
use hikyaku_store::Ability;
use hikyaku_store::ErrorKind;
use hikyaku_store_ftp::OpenError as FtpOpenError;
use hikyaku_store_gfarm::ConnectGfarm;
use hikyaku_store_http::OpenError as WebOpenError;
#[cfg(feature = "s3")]
use hikyaku_store_s3::S3Error;
use std::io;

/// Why a location cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its path is none below a root.
    #[error("{location}: {source}")]
    Path {
        /// The location.
        location: String,
        /// The mistake. It is part of the text.
        source: PathError,
    },
    /// The storage refuses it.
    #[error("{location}: {kind}")]
    Store {
        /// The location.
        location: String,
        /// The reason.
        kind: ErrorKind,
    },
    /// It is in another storage than the one that is open.
    #[error("{0}: is in another storage")]
    Elsewhere(String),
    /// The path begins in the home directory of another user of a host.
    #[error("{0}: the home directory of another user is unknown")]
    OtherHome(String),
    /// A host behind ssh cannot be used.
    #[error("{0:#}")]
    Host(Error),
    /// The user has no certificate.
    #[error(transparent)]
    Certificate(#[from] CredentialsError),
    /// This machine has no key for data connections.
    #[error("data connections cannot be authenticated")]
    Guard(#[from] GuardError),
    /// The GridFTP or FTP server cannot be used.
    #[error("{location}: {}", causes_of(error))]
    Ftp {
        /// The location.
        location: String,
        /// The reason.
        error: Box<FtpOpenError>,
    },
    /// The file of the web server cannot be used.
    #[error("{location}: {}", causes_of(error))]
    Web {
        /// The location.
        location: String,
        /// The reason.
        error: Box<WebOpenError>,
    },
    /// This machine cannot connect to daemons.
    #[error(transparent)]
    Setup(#[from] SetupError),
    /// No daemon can be used: the error of the first one.
    #[error("{0:#}")]
    Daemons(Error),
    /// The Gfarm file system cannot be used.
    #[error(transparent)]
    Gfarm(#[from] ConnectGfarm),
    /// The bucket cannot be used.
    #[cfg(feature = "s3")]
    #[error("{location}: {error}")]
    S3 {
        /// The location.
        location: String,
        /// The reason.
        error: S3Error,
    },
    /// This program is built without buckets.
    #[cfg(not(feature = "s3"))]
    #[error("{0}: this hikyaku was built without S3")]
    NoS3(String),
}

impl OpenError {
    /// A command or a sentence for the user.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::OtherHome(_) => Some("the whole path, which begins with '/'".to_owned()),
            Self::Certificate(error) => error.remedy(),
            Self::Ftp { error, .. } => error.remedy().map(str::to_owned),
            Self::Gfarm(error) => error.remedy().map(str::to_owned),
            #[cfg(feature = "s3")]
            Self::S3 { error, .. } => error.remedy(),
            #[cfg(not(feature = "s3"))]
            Self::NoS3(_) => Some(NO_S3.to_owned()),
            _ => None,
        }
    }

    /// The reason as that of a file, if the error is not an explained one.
    pub fn kind(&self) -> Option<ErrorKind> {
        Some(match self {
            Self::Host(_) | Self::Setup(_) | Self::Daemons(_) => return None,
            Self::Path { .. } => ErrorKind::BadName,
            Self::Elsewhere(_) | Self::OtherHome(_) => ErrorKind::NotFound,
            Self::Store { kind, .. } => *kind,
            Self::Certificate(_) | Self::Guard(_) => ErrorKind::Denied,
            Self::Ftp { error, .. } => match &**error {
                FtpOpenError::Ftp(FtpError::NoAddress { source, .. }) => {
                    source.as_ref().map_or(ErrorKind::NotFound, of_lookup)
                }
                error => error.kind(),
            },
            Self::Web { error, .. } => match &**error {
                WebOpenError::Fault(Fault::NoAddress { source, .. }) => of_lookup(source),
                error => error.kind(),
            },
            Self::Gfarm(error) if error.is_worth_retrying() => ErrorKind::Unreachable,
            Self::Gfarm(_) => ErrorKind::Denied,
            #[cfg(feature = "s3")]
            Self::S3 { error, .. } => error.kind(),
            #[cfg(not(feature = "s3"))]
            Self::NoS3(_) => ErrorKind::Unsupported(Ability::List),
        })
    }

    fn code(&self) -> ExitCode {
        match self {
            Self::Path { .. } | Self::OtherHome(_) => ExitCode::Usage,
            error => error.kind().map_or(ExitCode::WillFail, code_of),
        }
    }

    /// The error of a command that needs the location, with its exit code and its remedy.
    pub fn explained(self) -> Error {
        match self {
            Self::Setup(error) => error.explained(),
            // It has its own code and remedy.
            Self::Daemons(error) | Self::Host(error) => error,
            error => {
                let (code, remedy) = (error.code(), error.remedy());
                with_remedy(code.error(error.text()), remedy)
            }
        }
    }

    /// The error and its causes.
    pub fn text(&self) -> String {
        match self {
            // The texts of the others have their causes.
            Self::Gfarm(_) | Self::Certificate(_) | Self::Guard(_) => causes_of(self),
            error => error.to_string(),
        }
    }
}

/// A name that no host has does not exist; a name server that does not answer may answer later.
fn of_lookup(error: &io::Error) -> ErrorKind {
    match ExitCode::of_lookup(error) {
        ExitCode::MayPass => ErrorKind::Unreachable,
        _ => ErrorKind::NotFound,
    }
}

#[cfg(not(feature = "s3"))]
const NO_S3: &str = "build it with S3: cargo build --release -p hikyaku-cli --features s3";

/// The exit code of a command that failed for this reason.
pub fn code_of(kind: ErrorKind) -> ExitCode {
    match kind {
        kind if kind.is_worth_retrying() => ExitCode::MayPass,
        ErrorKind::SPECIAL => ExitCode::WillFail,
        ErrorKind::Damaged | ErrorKind::System(_) => ExitCode::Failed,
        _ => ExitCode::WillFail,
    }
}
