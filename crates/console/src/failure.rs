//! What the user sees when a command fails: what happened, why, what to try, and an exit code.
//!
//! Crates return `anyhow` chains. A message in one that begins with `try: ` is a remedy, and is printed on a line of its
//! own. [`ExitCode::of`] tells the code.

use crate::exit_code::{CodeOf, ExitCode, io_kind};
use crate::folders::NoFolder;
use crate::logging::LogError;
use crate::output::{REMEDY_PREFIX, say};
use crate::paint::Tone;
use anyhow::{Context, Error};
use hikyaku_fs::{brief, reworded};
use std::fmt::{self, Display};
use std::io::ErrorKind;

/// What is printed and returned when a command fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    causes: Vec<String>,
    remedies: Vec<String>,
    code: ExitCode,
}

impl Failure {
    /// What `error` means for the user. `known` tells the codes of the errors of other crates.
    pub fn new(error: &Error, known: &[CodeOf]) -> Self {
        // Parts of the text may come from the other end, so control characters are removed and the
        // length is limited.
        let texts = error.chain().map(|link| brief(&reworded(&link.to_string())));
        let (mut remedies, mut causes): (Vec<_>, Vec<_>) = texts.partition(|text| is_remedy(text));
        remove_repetition(&mut causes);
        if remedies.is_empty() {
            remedies.extend(default_remedy(error));
        }
        Self { causes, remedies, code: ExitCode::of(error, known) }
    }

    /// The exit code of the command.
    pub const fn code(&self) -> ExitCode {
        self.code
    }

    /// Prints it on standard error.
    pub fn print(&self) {
        say(Tone::Error, self.text());
    }

    fn text(&self) -> String {
        let remedies = self.remedies.iter().map(|remedy| format!("\n{remedy}"));
        [self.causes.join(": ")].into_iter().chain(remedies).collect()
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "hikyaku: {}", self.text())
    }
}

/// The causes of an error on one line, outermost first, without remedies.
pub fn causes(error: &Error) -> String {
    causes_of(error.as_ref())
}

/// The headline of an error of a library.
pub fn causes_of(error: &(dyn std::error::Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |error| error.source());
    let texts = chain.map(|link| reworded(&link.to_string()));
    let mut causes: Vec<String> = texts.filter(|text| !is_remedy(text)).collect();
    remove_repetition(&mut causes);
    causes.join(": ")
}

/// The cause of a port that the kernel of `host` refuses for these protocols.
pub fn no_listener(host: impl Display, protocols: &str, port: u16) -> String {
    format!("connection refused: no program listens on {host} {protocols} port {port}")
}

/// Names the place of an error.
pub trait At<T> {
    /// The error, as `PLACE: CAUSE`. A place is a path of this host, `HOST:PATH`, a URL as the user typed it, or a host.
    ///
    /// # Errors
    /// This is an error.
    fn at(self, place: impl Display) -> anyhow::Result<T>;
}

impl<T, E> At<T> for Result<T, E>
where
    Self: Context<T, E>,
{
    fn at(self, place: impl Display) -> anyhow::Result<T> {
        self.with_context(|| place.to_string())
    }
}

/// An error on one line for the other end of a connection: its causes, and then its remedies.
pub fn one_line(error: &Error) -> String {
    let remedies = error.chain().map(ToString::to_string).filter(|text| is_remedy(text));
    let parts: Vec<String> = [causes(error)].into_iter().chain(remedies).collect();
    parts.join(": ")
}

/// What happened, without causes and remedies.
pub fn headline(error: &Error) -> String {
    let mut texts = error.chain().map(|link| reworded(&link.to_string()));
    brief(&texts.find(|text| !is_remedy(text)).unwrap_or_default())
}

/// Adds what the user can do, if there is something. `remedy` is a command or a sentence; it may begin with `try: `.
pub fn with_remedy(error: Error, remedy: Option<impl Display>) -> Error {
    let Some(remedy) = remedy.map(|remedy| remedy.to_string()) else { return error };
    let remedy = match is_remedy(&remedy) {
        true => remedy,
        false => format!("{REMEDY_PREFIX}{remedy}"),
    };
    // The outermost message says what happened, so it is repeated above the remedy.
    let text = error.to_string();
    error.context(remedy).context(text)
}

fn is_remedy(text: &str) -> bool {
    text.starts_with(REMEDY_PREFIX)
}

/// Removes causes that are contained in their effect.
fn remove_repetition(causes: &mut Vec<String>) {
    causes.dedup_by(|cause, effect| effect.contains(cause.as_str()));
}

/// The most likely remedy, for errors that have none of their own.
fn default_remedy(error: &Error) -> Option<String> {
    let mut folders = error.chain().filter_map(|link| link.downcast_ref::<NoFolder>());
    if let Some(folder) = folders.next() {
        return Some(folder.remedy());
    }
    let mut logs = error.chain().filter_map(|link| link.downcast_ref::<LogError>());
    if let Some(log) = logs.next() {
        return Some(log.remedy());
    }
    let remedy = match io_kind(error)? {
        ErrorKind::PermissionDenied => "the same command as root (sudo)",
        ErrorKind::ConnectionRefused => "check the address: no program listens at that port",
        ErrorKind::AddrInUse => "another port, or stop the program that uses this one",
        _ => return None,
    };
    Some(format!("{REMEDY_PREFIX}{remedy}"))
}

#[cfg(test)]
mod tests;
