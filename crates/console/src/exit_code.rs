//! Exit codes: whether a command succeeded, and whether it is worth trying again (`docs/cli.md`).
//!
//! Commands return an [`ExitCode`]. No other module makes the number with which the process exits.

use crate::failure::with_remedy;
use crate::folders::NoFolder;
use crate::logging::LogError;
use crate::settings::SettingsError;
use anyhow::Error;
use hikyaku_fs::{FsError, Unresolved};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// How a command ended. A command that a signal ended ends by that signal, and not with a code.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum ExitCode {
    /// The command succeeded.
    Success = 0,
    /// The command line is invalid.
    Usage = 1,
    /// The command failed; whether it would fail again is unknown.
    Failed = 2,
    /// The command failed for a reason that may pass.
    MayPass = 5,
    /// The command will fail again unless something is changed.
    WillFail = 6,
    /// `sync`, as rsync: some names failed.
    Partial = 23,
    /// `sync`, as rsync: some names were removed before they were read, and nothing else failed.
    Vanished = 24,
    /// `sync`, as rsync: more names would have to be deleted than allowed.
    TooManyDeletions = 25,
    /// The command that was to be run exists, but cannot be executed.
    CannotExecute = 126,
    /// The command that was to be run does not exist.
    NoCommand = 127,
}

/// Exit codes of the program under the names `hscp` and `hsftp`: those of scp and sftp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ScpCode {
    /// Success.
    Success = 0,
    /// A failure, or a mistake of the command line.
    Failed = 1,
    /// No connection: `hscp` if ssh could not connect, `hsftp` also if the session was lost.
    NoConnection = 255,
}

/// The number with which this process exits. Only this module makes one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exit(u8);

impl Exit {
    /// The exit of a process that ran a command, as a shell reports it: the exit code of the command, or 128 plus the number of
    /// the signal that ended the command.
    pub fn of_command(status: ExitStatus) -> Self {
        let code = status.code().and_then(|code| u8::try_from(code).ok()).map(Self);
        let signal = || status.signal().map(Self::of_signal);
        code.or_else(signal).unwrap_or_else(|| ExitCode::Failed.into())
    }

    /// The exit of a process that a signal ended, as a shell reports it.
    pub fn of_signal(signal: i32) -> Self {
        u8::try_from(SIGNALLED.saturating_add(signal))
            .map_or_else(|_| ExitCode::Failed.into(), Self)
    }

    /// The number.
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// A shell adds this to the number of the signal that ended a command.
const SIGNALLED: i32 = 128;

impl From<ExitCode> for Exit {
    fn from(code: ExitCode) -> Self {
        Self(code.number())
    }
}

impl From<ScpCode> for Exit {
    fn from(code: ScpCode) -> Self {
        Self(code as u8)
    }
}

/// The error of a command line that asks for what is not possible, and what is possible. Nothing was done.
pub fn misuse(text: impl Into<String>, remedy: impl Display) -> Error {
    with_remedy(ExitCode::Usage.error(text), Some(remedy))
}

/// Refuses the first of these options that is given: they are about ssh, and what the command reaches is not started through
/// it.
///
/// # Errors
///
/// One of them is given.
pub fn refuse_without_ssh(options: &[(&str, bool)], instead: impl Display) -> Result<(), Error> {
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let text = format!("{option} is for a server that is started through ssh");
            Err(misuse(text, instead))
        }
        None => Ok(()),
    }
}

/// Tells the code of the errors that a crate knows; `None` for all others. A program asks the functions of all its crates
/// one after the other ([`ExitCode::of`]).
pub type CodeOf = fn(&Error) -> Option<ExitCode>;

impl ExitCode {
    /// The code of a command that ended with `error`: what its author said ([`ExitCode::error`]), otherwise
    /// what the first of `known` says that knows the error, otherwise by the first [`FsError`] or else the first
    /// [`io::Error`] in it, otherwise [`Failed`](Self::Failed).
    pub fn of(error: &Error, known: &[CodeOf]) -> Self {
        if let Some(coded) = error.chain().find_map(|link| link.downcast_ref::<Coded>()) {
            return coded.code;
        }
        let mut told = known.iter().filter_map(|code_of| code_of(error));
        told.next()
            .or_else(|| of_console(error))
            .or_else(|| of_file(error))
            .or_else(|| of_io(error))
            .unwrap_or(Self::Failed)
    }

    /// The code of a name without an address: a name server that does not answer may answer later.
    pub fn of_lookup(error: &io::Error) -> Self {
        match Unresolved::of(error) {
            Some(Unresolved::NoAnswer) => Self::MayPass,
            Some(Unresolved::Unknown) | None => Self::WillFail,
        }
    }

    /// The code of a command of which several pieces failed with these codes: theirs if they are equal, otherwise
    /// [`Failed`](Self::Failed).
    pub fn of_pieces(codes: impl IntoIterator<Item = Self>) -> Self {
        let codes: BTreeSet<Self> = codes.into_iter().collect();
        match codes.into_iter().collect::<Vec<_>>().as_slice() {
            [code] => *code,
            _ => Self::Failed,
        }
    }

    /// An error whose code its author knows, with this text.
    pub fn error(self, text: impl Into<String>) -> Error {
        Coded { code: self, text: text.into() }.into()
    }

    /// Its number.
    pub const fn number(self) -> u8 {
        self as u8
    }
}

/// An error whose code its author knows.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
struct Coded {
    code: ExitCode,
    text: String,
}

/// Ends this process at once: exit handlers of libraries are not run. AWS-LC's handler takes
/// its random generators down, and a thread that begins to use one at that moment aborts the process.
pub fn leave(exit: impl Into<Exit>) -> ! {
    // If standard output cannot be written, the command has said so already.
    let _ = io::stdout().flush();
    signal_hook::low_level::exit(i32::from(exit.into().number()))
}

/// The code of an error of this crate.
fn of_console(error: &Error) -> Option<ExitCode> {
    // A mistake in the settings file lasts until the file is changed.
    let is_mistake = |error: &SettingsError| matches!(error, SettingsError::Invalid { .. });
    let is_lasting = |link: &(dyn std::error::Error + 'static)| {
        link.is::<NoFolder>()
            || link.is::<LogError>()
            || link.downcast_ref::<SettingsError>().is_some_and(is_mistake)
    };
    error.chain().any(is_lasting).then_some(ExitCode::WillFail)
}

/// All errors of a chain. What an [`io::Error`] was made of is no link of it, and its own cause is; here both are.
fn links(error: &Error) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    error.chain().flat_map(|link| {
        let made_of = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        [Some(link), made_of.map(|made_of| made_of as &(dyn std::error::Error + 'static))]
            .into_iter()
            .flatten()
    })
}

/// The code of an error of a file of this machine.
fn of_file(error: &Error) -> Option<ExitCode> {
    let error = links(error).find_map(|link| link.downcast_ref::<FsError>())?;
    Some(match (error, error.errno()) {
        (FsError::Busy { .. }, _) => ExitCode::MayPass,
        (FsError::System { .. }, Some(Errno::IO)) => ExitCode::Failed,
        _ => ExitCode::WillFail,
    })
}

fn of_io(error: &Error) -> Option<ExitCode> {
    io_kind(error).map(of_kind)
}

/// The kind of the first [`io::Error`] in an error.
pub(crate) fn io_kind(error: &Error) -> Option<ErrorKind> {
    let mut links = error.chain().filter_map(|link| link.downcast_ref::<io::Error>());
    links.next().map(io::Error::kind)
}

fn of_kind(kind: ErrorKind) -> ExitCode {
    match kind {
        ErrorKind::ConnectionRefused
        | ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::HostUnreachable
        | ErrorKind::NetworkUnreachable
        | ErrorKind::NetworkDown
        | ErrorKind::TimedOut
        | ErrorKind::ResourceBusy
        | ErrorKind::AddrInUse => ExitCode::MayPass,
        ErrorKind::PermissionDenied
        | ErrorKind::NotFound
        | ErrorKind::NotADirectory
        | ErrorKind::IsADirectory
        | ErrorKind::ReadOnlyFilesystem
        | ErrorKind::AddrNotAvailable
        | ErrorKind::Unsupported
        | ErrorKind::InvalidInput => ExitCode::WillFail,
        _ => ExitCode::Failed,
    }
}

#[cfg(test)]
mod tests;
