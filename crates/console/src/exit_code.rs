//! Exit codes: whether a command succeeded, and whether it is worth trying again (`docs/cli.md`).

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
    /// The command that was to be run exists, but cannot be executed.
    CannotExecute = 126,
    /// The command that was to be run does not exist.
    NoCommand = 127,
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
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Success,
        Self::Usage,
        Self::Failed,
        Self::MayPass,
        Self::WillFail,
        Self::CannotExecute,
        Self::NoCommand,
    ];

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

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(code.number())
    }
}

/// Ends this process at once with the exit code `code`: exit handlers of libraries are not run. AWS-LC's handler takes
/// its random generators down, and a thread that begins to use one at that moment aborts the process.
pub fn leave(code: u8) -> ! {
    // If standard output cannot be written, the command has said so already.
    let _ = io::stdout().flush();
    signal_hook::low_level::exit(i32::from(code))
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
