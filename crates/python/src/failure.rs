//! Errors as exceptions.

use hikyaku_fs::Shown;
use hikyaku_mover::{Failed, Kind, SessionError};
use hikyaku_transfer::FailureKind;
use hikyaku_units::counted;
use pyo3::prelude::*;

/// The exception for an error of a session.
pub(crate) fn of_session(py: Python<'_>, error: &SessionError) -> PyErr {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    make(py, error.kind(), &text, None, &[])
}

/// The exception for files that could not be transferred; there is at least one.
pub(crate) fn of_files(py: Python<'_>, failed: &[Failed]) -> PyErr {
    let Some(first) = failed.first() else { return of_text(py, "nothing failed") };
    let path = Shown::new(&first.path).to_string();
    let text = match failed.len() {
        1 => first.text.clone(),
        count => format!("{}; {} failed too", first.text, counted(count - 1, "file")),
    };
    make(py, Some(first.kind), &text, Some(&path), failed)
}

/// The exception for something that is not of a session.
pub(crate) fn of_text(py: Python<'_>, text: &str) -> PyErr {
    make(py, None, text, None, &[])
}

fn make(
    py: Python<'_>,
    kind: Option<Kind>,
    text: &str,
    path: Option<&str>,
    failed: &[Failed],
) -> PyErr {
    let failures: Vec<(String, &str, &str)> = failed
        .iter()
        .map(|failed| {
            (Shown::new(&failed.path).to_string(), word(Some(failed.kind)), &failed.text[..])
        })
        .collect();
    let remedy = kind.and_then(Kind::remedy).map(|remedy| format!("try: {remedy}"));
    let made = py
        .import("hikyaku._errors")
        .and_then(|errors| errors.getattr("make"))
        .and_then(|make| make.call1((word(kind), text, path, remedy, failures)));
    match made {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

/// The kind as the package knows it.
const fn word(kind: Option<Kind>) -> &'static str {
    match kind {
        Some(Kind::UnknownHost) => "unknown_host",
        Some(Kind::NoAnswer) => "no_answer",
        Some(Kind::WrongKey) => "wrong_key",
        Some(Kind::NotAuthorised) => "not_authorised",
        Some(Kind::OtherVersion) => "other_version",
        Some(Kind::ServerFull) => "server_full",
        Some(Kind::ServerEnds) => "server_ends",
        Some(Kind::NoFiles) => "no_files",
        Some(Kind::OutsideRoot) => "outside_root",
        Some(Kind::Stopped) => "stopped",
        Some(Kind::File(kind)) => match kind {
            FailureKind::NotFound => "not_found",
            FailureKind::Exists => "exists",
            FailureKind::NotDirectory => "not_directory",
            FailureKind::IsDirectory => "is_directory",
            FailureKind::Denied => "denied",
            FailureKind::ReadOnly => "read_only",
            FailureKind::NoSpace => "no_space",
            FailureKind::Quota => "quota",
            FailureKind::Busy => "busy",
            FailureKind::Changed => "changed",
            FailureKind::Damaged => "damaged",
            _ => "other",
        },
        None => "other",
    }
}
