//! Errors in the form in which the command prints them: a chain that contains an [`io::Error`],
//! whose kind decides the exit code, and optionally a remedy.

use anyhow::Error;
use hikyaku_console::ExitCode;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};

/// An error with a kind.
pub(crate) fn of(kind: ErrorKind, text: impl Display) -> Error {
    io::Error::new(kind, text.to_string()).into()
}

/// An error with a kind and a remedy.
pub(crate) fn with_remedy(kind: ErrorKind, text: impl Display, remedy: impl Display) -> Error {
    hikyaku_console::with_remedy(of(kind, text), Some(remedy))
}

/// A usage error that the parser cannot detect, because it depends on several options.
pub(crate) fn usage(text: impl Display) -> Error {
    ExitCode::Usage.error(text.to_string())
}

/// The exit code of an error of the lab, if the lab knows it.
pub fn exit_code(error: &Error) -> Option<ExitCode> {
    let mut links = error.chain().filter_map(|link| link.downcast_ref::<CannotRun>());
    links.next().map(CannotRun::exit_code)
}

/// The command of `lab run` or `lab exec` cannot be executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct CannotRun {
    pub(crate) program: String,
    pub(crate) why: Why,
}

/// Why a command cannot be executed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
    /// There is no such command.
    NotFound,
    /// The file exists but is not executable.
    NotExecutable,
}

impl CannotRun {
    /// The exit code that shells and `env` use in this case.
    pub(crate) const fn exit_code(&self) -> ExitCode {
        match self.why {
            Why::NotFound => ExitCode::NoCommand,
            Why::NotExecutable => ExitCode::CannotExecute,
        }
    }
}

impl Display for CannotRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let program = &self.program;
        match self.why {
            Why::NotFound => write!(f, "there is no command '{program}'"),
            Why::NotExecutable => write!(f, "'{program}' cannot be executed"),
        }
    }
}

impl std::error::Error for CannotRun {}
