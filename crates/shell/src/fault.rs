//! Why a command did not succeed.

use crate::glob::Unfound;
use crate::show::Shown;
use hikyaku_sftp::{Failed, Status};
use std::io;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Fault {
    /// It failed, and the user has been told.
    Told,
    /// The user has ended it by Ctrl-C.
    Stopped,
    /// The connection is lost: no further command can succeed.
    Lost(Failed),
    /// Standard output cannot be written.
    Output(io::Error),
}

/// What comes of a command.
pub(crate) type Done<T = ()> = Result<T, Fault>;

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

/// Tells the user what went wrong.
pub(crate) fn told(text: impl AsRef<str>) -> Fault {
    eprintln!("{}", text.as_ref());
    Fault::Told
}

/// A request failed: tells what it was for, as `what: reason`.
pub(crate) fn failed(what: String) -> impl FnOnce(Failed) -> Fault {
    move |error| match &error {
        Failed::Refused { status, .. } => told(format!("{what}: {}", reason(*status))),
        _ => Fault::Lost(error),
    }
}

/// A status in the words of OpenSSH's sftp, which scripts look for.
pub(crate) fn reason(status: Status) -> String {
    match status {
        Status::Ok => "No error".to_owned(),
        Status::End => "End of file".to_owned(),
        Status::NoSuchFile => "No such file or directory".to_owned(),
        Status::Denied => "Permission denied".to_owned(),
        Status::Failure => "Failure".to_owned(),
        Status::Unsupported => "Operation unsupported".to_owned(),
        Status::Other(5) => "Bad message".to_owned(),
        Status::Other(number) => format!("Unknown status {number}"),
    }
}

/// A pattern could not be looked for.
pub(crate) fn unfound(pattern: &[u8]) -> impl FnOnce(Unfound<Failed>) -> Fault + '_ {
    move |error| match error {
        Unfound::TooMany => told(format!("Too many matches for \"{}\".", Shown::new(pattern))),
        Unfound::End(error) => Fault::Lost(error),
    }
}

/// An error of this machine, without its number.
pub(crate) fn system(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
