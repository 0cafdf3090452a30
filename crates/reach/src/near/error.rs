//! Why a far side was not reached, and what its user can do.

use crate::bootstrap::NotInstalled;
use crate::hello::NoHello;
use crate::meet::{DoorError, MeetError};
use crate::ssh::BadRemotePath;
use crate::start::SshFailed;
use hikyaku_net::ConnectError;
use std::io;
use std::ops::RangeInclusive;

/// Why a far side was not reached.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// This end has no port.
    #[error(transparent)]
    Door(#[from] DoorError),
    /// The path of the far side's program could mean something to a shell.
    #[error(transparent)]
    Path(#[from] BadRemotePath),
    /// `ssh` cannot be started.
    #[error("cannot start {program}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// `ssh` has ended without a connection; it has printed why.
    #[error("{source}")]
    NoConnection {
        /// Where it went.
        source: SshFailed,
        /// What to try.
        remedy: String,
    },
    /// `ssh`, or the far side's shell, says nothing.
    #[error("{source}")]
    Silent {
        /// The host.
        host: String,
        /// How far `ssh` got.
        source: SshFailed,
        /// What to try.
        remedy: String,
    },
    /// The far side has no such program.
    #[error("{host}: cannot start hikyaku: {program} is not installed")]
    NotThere {
        /// The host.
        host: String,
        /// The program.
        program: String,
        /// What was heard.
        source: NoHello,
        /// What to try.
        remedy: String,
    },
    /// The far side has no program that could be used, and none could be sent.
    #[error("{why}")]
    NotDelivered {
        /// The error of the far side's own program.
        lacked: Box<Self>,
        /// Why none was sent.
        why: Box<NotInstalled>,
    },
    /// The far side admits SFTP, and starts no program.
    #[error("{host}: cannot start hikyaku: the host admits SFTP only")]
    OnlySftp {
        /// The host.
        host: String,
    },
    /// The far side has not said what it must.
    #[error("{host}: cannot start hikyaku")]
    NoHello {
        /// The host.
        host: String,
        /// What was heard.
        source: NoHello,
        /// What to try.
        remedy: String,
    },
    /// The far side listens at a port that it was not told to take.
    #[error(
        "the far side listens at port {port}, and was told to take one from {} to {}",
        .ports.start(),
        .ports.end()
    )]
    OtherPort {
        /// Where it listens.
        port: u16,
        /// What it was told.
        ports: RangeInclusive<u16>,
    },
    /// No connection came about, for another reason than silence.
    #[error("{0}")]
    Meet(MeetError),
    /// The same where the transport says why.
    #[error("{0}")]
    Connect(#[source] ConnectError),
    /// No UDP gets through, and nothing else may carry the session.
    #[error("no UDP gets through to {host} ({tried}){}", nothing_else(.only))]
    NoUdp {
        /// The host.
        host: String,
        /// The addresses that were tried.
        tried: String,
        /// The ports that each side may take.
        ports: RangeInclusive<u16>,
        /// The options of the user that exclude all other carriers; empty if the carrier itself was chosen.
        only: String,
    },
    /// No TCP connection comes about, and nothing else may carry the session.
    #[error("no TCP connection to {host} comes about ({tried})")]
    NoTcp {
        /// The host.
        host: String,
        /// The addresses that were tried.
        tried: String,
        /// The ports that the far side may take.
        ports: RangeInclusive<u16>,
    },
    /// The channel of ssh has ended.
    #[error("cannot write to ssh")]
    Channel(#[source] io::Error),
    /// No thread could be started.
    #[error("cannot start a thread")]
    Thread(#[source] io::Error),
}

/// Whether a machine runs commands, where hikyaku cannot be started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commands {
    /// A shell has said that the program is not there.
    Run,
    /// It admits SFTP only.
    Refused,
}

/// Why no other carrier is used.
fn nothing_else(only: &str) -> String {
    let text = |only| format!(", and nothing else may carry data with {only}");
    Some(only).filter(|only| !only.is_empty()).map_or_else(String::new, text)
}

impl ReachError {
    /// What is known of commands of a machine that SFTP may serve, as hikyaku cannot be started there; `None` where
    /// something else is wrong.
    pub fn no_program(&self) -> Option<Commands> {
        match self.without_delivery() {
            Self::NotThere { .. } => Some(Commands::Run),
            Self::OnlySftp { .. } => Some(Commands::Refused),
            // It has started something else in the place of the command, or nothing, and said so in words of its own.
            Self::NoHello { source: NoHello::Nothing(_) | NoHello::Chatter(_), .. } => {
                Some(Commands::Refused)
            }
            _ => None,
        }
    }

    /// Whether another hikyaku on the far side would help: there is none, or it uses another protocol.
    pub(crate) const fn lacks_hikyaku(&self) -> bool {
        matches!(
            self,
            Self::NotThere { .. } | Self::NoHello { source: NoHello::Version { .. }, .. }
        )
    }

    /// The error as it was before a program could not be sent.
    pub fn without_delivery(&self) -> &Self {
        if let Self::NotDelivered { lacked, .. } = self { lacked } else { self }
    }

    /// What the user can do, as a text that begins with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::NoConnection { remedy, .. }
            | Self::Silent { remedy, .. }
            | Self::NotThere { remedy, .. }
            | Self::NoHello { remedy, .. } => Some(remedy.clone()),
            Self::NotDelivered { why, .. } => why.remedy(),
            Self::OnlySftp { host } => Some(format!(
                "try: hikyaku cp, which copies by SFTP; all else needs hikyaku on {host}"
            )),
            Self::NoUdp { ports, only, .. } => Some(format!(
                "try: let UDP ports {} to {} through to it{}",
                ports.start(),
                ports.end(),
                if only.is_empty() { String::new() } else { format!(", or leave out {only}") }
            )),
            Self::NoTcp { ports, .. } => Some(format!(
                "try: let TCP ports {} to {} through to it, or --via ssh",
                ports.start(),
                ports.end()
            )),
            _ => None,
        }
    }
}

impl From<MeetError> for ReachError {
    fn from(error: MeetError) -> Self {
        match error {
            MeetError::Connect(error) => Self::Connect(error),
            other => Self::Meet(other),
        }
    }
}
