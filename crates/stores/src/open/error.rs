//! Why a location cannot be opened.

use anyhow::Error;
use hikyaku_console::{ExitCode, causes_of, with_remedy};
use hikyaku_fs::PathError;
use hikyaku_session::SetupError;
use hikyaku_store::ErrorKind;
use hikyaku_store_gfarm::ConnectGfarm;
#[cfg(feature = "s3")]
use hikyaku_store_s3::S3Error;

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
    /// It is on a host that is reached through ssh.
    #[error("{location}: files behind ssh cannot be opened as a storage")]
    Ssh {
        /// The host.
        host: String,
        /// The location.
        location: String,
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
            Self::Path { .. } | Self::Store { .. } | Self::Setup(_) | Self::Daemons(_) => None,
            Self::Ssh { host, .. } => Some(format!(
                "hikyaku sftp {host}, or hikyaku://{host}/PATH with 'hikyaku serve' on {host}"
            )),
            Self::Gfarm(error) => error.remedy().map(str::to_owned),
            #[cfg(feature = "s3")]
            Self::S3 { error, .. } => error.remedy(),
            #[cfg(not(feature = "s3"))]
            Self::NoS3(_) => Some(NO_S3.to_owned()),
        }
    }

    fn code(&self) -> ExitCode {
        match self {
            Self::Path { .. } | Self::Ssh { .. } => ExitCode::Usage,
            Self::Store { kind, .. } => code_of(*kind),
            Self::Gfarm(error) if error.is_worth_retrying() => ExitCode::MayPass,
            Self::Gfarm(_) | Self::Setup(_) | Self::Daemons(_) => ExitCode::WillFail,
            #[cfg(feature = "s3")]
            Self::S3 { error, .. } => code_of(error.kind()),
            #[cfg(not(feature = "s3"))]
            Self::NoS3(_) => ExitCode::WillFail,
        }
    }

    /// The error of a command that needs the location, with its exit code and its remedy.
    pub fn explained(self) -> Error {
        match self {
            Self::Setup(error) => error.explained(),
            // It has its own code and remedy.
            Self::Daemons(error) => error,
            error => {
                let (code, remedy) = (error.code(), error.remedy());
                let text =
                    if let Self::Gfarm(_) = error { causes_of(&error) } else { error.to_string() };
                with_remedy(code.error(text), remedy)
            }
        }
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
