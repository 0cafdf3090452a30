//! What went wrong: with one file, or with all of the copy.

use anyhow::Error;
use hikyaku_console::Kept;
use hikyaku_fs::FsError;
use hikyaku_job::{End, kind_of_fs_error};
use hikyaku_pair::{LostConnection, Refused};
use hikyaku_sftp::{Failed, Status};
use hikyaku_transfer::{Failure, FailureKind};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Why a file, or the copy, does not go on.
#[derive(Debug)]
pub(super) enum Trouble {
    /// One file was not copied.
    File(End, Failure),
    /// Nothing more can be copied.
    End(Error),
    /// The user has ended the copy.
    Stopped,
}

impl Trouble {
    /// A file of this kind is not copied.
    pub(super) fn of(end: End, place: &[u8], kind: FailureKind, text: &str) -> Self {
        Self::File(end, Failure { place: place.to_vec(), kind, text: text.to_owned() })
    }

    /// What ends the copy, as its caller takes it.
    pub(super) fn into_error(self) -> Error {
        match self {
            Self::File(end, Failure { place, kind, text }) => {
                Refused::of_path(end, &place, kind, &text).into()
            }
            Self::End(error) => error,
            Self::Stopped => Kept::Unrecorded.into(),
        }
    }
}

/// A request about `path` failed.
pub(super) fn there(path: &[u8]) -> impl Fn(Failed) -> Trouble + '_ {
    move |error| {
        let kind = match &error {
            Failed::Refused { status, .. } => match status {
                Status::NoSuchFile => FailureKind::NotFound,
                Status::Denied => FailureKind::Denied,
                Status::Unsupported => FailureKind::Unsupported,
                _ => FailureKind::Other,
            },
            Failed::Lost(_) => return Trouble::End(lost(&error.to_string())),
            _ => {
                let lost = io::Error::new(io::ErrorKind::ConnectionAborted, error);
                return Trouble::End(Error::new(lost));
            }
        };
        Trouble::of(End::There, path, kind, &error.to_string())
    }
}

/// The error of a copy whose connection was lost.
pub(super) fn lost(why: &str) -> Error {
    let remedy = "try: the same command again; it goes on where this one stopped";
    Error::new(LostConnection).context(remedy).context(why.to_owned())
}

/// A file of this machine cannot be used.
pub(super) fn here<'a>(what: &'static str, path: &'a Path) -> impl Fn(io::Error) -> Trouble + 'a {
    move |error| {
        let bytes = path.as_os_str().as_bytes();
        let error = FsError::io(what, bytes, &error);
        Trouble::of(End::Here, bytes, kind_of_fs_error(&error), &error.reason())
    }
}

/// What has the name of a directory is none: this is told of the directory, and not of each file in it.
pub(super) fn not_a_directory(end: End, path: &[u8]) -> Trouble {
    let error = FsError::is_no_dir(path);
    Trouble::of(end, path, kind_of_fs_error(&error), &error.reason())
}

/// A source whose name an earlier one has taken.
pub(super) fn second(end: End, path: &[u8]) -> Trouble {
    Trouble::of(end, path, FailureKind::Exists, "another source of this name was copied")
}
