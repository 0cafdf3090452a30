//! Errors in the form in which the command prints them: a chain that contains an [`io::Error`],
//! whose kind decides the exit code, and optionally a remedy.

use anyhow::Error;
use std::fmt::{self, Display};
use std::io::{self, ErrorKind};

/// An error with a kind.
pub(crate) fn of(kind: ErrorKind, text: impl Display) -> Error {
    io::Error::new(kind, text.to_string()).into()
}

/// An error with a kind and a remedy.
pub(crate) fn with_remedy(kind: ErrorKind, text: impl Display, remedy: impl Display) -> Error {
    let text = text.to_string();
    of(kind, &text).context(format!("try: {remedy}")).context(text)
}

/// A usage error that the parser cannot detect, because it depends on several options.
pub(crate) fn usage(text: impl Display) -> Error {
    clap::Error::raw(clap::error::ErrorKind::ValueValidation, format!("{text}\n")).into()
}

/// The command of `lab run` or `lab exec` cannot be executed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CannotRun {
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
    pub fn exit_code(&self) -> u8 {
        match self.why {
            Why::NotFound => 127,
            Why::NotExecutable => 126,
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
