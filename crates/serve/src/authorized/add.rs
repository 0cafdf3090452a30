//! A key is added to a list, also while a daemon reads it.

use super::{Keys, line};
use hikyaku_fs::{Distrust, Others, Owners, trust};
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// When a key came into a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Added {
    /// By this call.
    Now,
    /// It was in the list before.
    Before,
}

/// Why a key was not added to a list.
#[derive(Debug, thiserror::Error)]
pub enum NotAdded {
    /// The line has a mistake.
    #[error("{0}")]
    Line(String),
    /// The user may not change the list.
    #[error("permission denied: {}", .0.display())]
    Denied(PathBuf),
    /// The list is a symbolic link, whose end another user may have chosen.
    #[error("{} is a symbolic link", .0.display())]
    Link(PathBuf),
    /// Another user could have changed the list.
    #[error("the list of keys {} is not used: {reason}", list.display())]
    Distrust {
        /// The list.
        list: PathBuf,
        /// Why.
        reason: Distrust,
    },
    /// A line of the list has a mistake.
    #[error("{}:{number}: {text}", list.display())]
    List {
        /// The list.
        list: PathBuf,
        /// The line, from 1.
        number: usize,
        /// The mistake.
        text: String,
    },
    /// The key is in the list with other options. Only the owner of the list can choose between them.
    #[error("{} has this key with other options", .0.display())]
    OtherOptions(PathBuf),
    /// The list cannot be read or written.
    #[error("cannot change {}", list.display())]
    Io {
        /// The list.
        list: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// The longest line: options with many targets, a key and a comment.
const LINE_BYTES_MAX: usize = 4096;
/// The largest list: ten thousand long lines.
const LIST_BYTES_MAX: u64 = 16 << 20;

/// Checks a line `OPTIONS KEY COMMENT` before it is added to a list anywhere.
///
/// # Errors
///
/// The text names the mistake.
pub fn check_line(text: &str) -> Result<(), String> {
    if text.len() > LINE_BYTES_MAX {
        return Err(format!("the line of the key is longer than {LINE_BYTES_MAX} bytes"));
    }
    if text.contains(char::is_control) {
        return Err("the line of the key has a control character".to_owned());
    }
    line::parse(text).map(drop)
}

/// Adds a line `OPTIONS KEY COMMENT` to a list, unless the list has the key. The list and its folder are made if they do not
/// exist. The line is appended by one write(2) under a lock, so that neither a daemon that reads the list nor another process
/// that adds a key sees a part of it.
///
/// # Errors
///
/// See [`NotAdded`]. The list is unchanged.
pub fn add_key(list: &Path, new: &str) -> Result<Added, NotAdded> {
    check_line(new).map_err(NotAdded::Line)?;
    match open(list, Access::Write).and_then(|file| append(file, list, new)) {
        // The key may have been added by the owner of the list.
        Err(denied @ NotAdded::Denied(_)) => match open(list, Access::Read) {
            Ok(mut file) => look(&read(&mut file, list)?, list, new)?.ok_or(denied),
            Err(_) => Err(denied),
        },
        done => done,
    }
}

fn append(mut file: File, list: &Path, new: &str) -> Result<Added, NotAdded> {
    let failed = |source| NotAdded::Io { list: list.to_owned(), source };
    flock(&file, FlockOperation::LockExclusive).map_err(|error| failed(error.into()))?;
    let text = read(&mut file, list)?;
    if let Some(before) = look(&text, list, new)? {
        return Ok(before);
    }
    // An editor may have left the last line without its end.
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let bytes = format!("{end}{new}\n");
    match file.write(bytes.as_bytes()) {
        Ok(written) if written == bytes.len() => {}
        written => {
            // A part of a line would keep the daemon from starting.
            let _ = file.set_len(text.len() as u64);
            return Err(failed(written.err().unwrap_or_else(|| ErrorKind::StorageFull.into())));
        }
    }
    file.sync_all().map_err(failed)?;
    Ok(Added::Now)
}

/// Whether the list has the key of the line `new`.
fn look(text: &str, list: &Path, new: &str) -> Result<Option<Added>, NotAdded> {
    let keys = Keys::parse(text).map_err(|(number, text)| NotAdded::List {
        list: list.to_owned(),
        number,
        text,
    })?;
    let (key, permit) = line::parse(new).map_err(NotAdded::Line)?;
    match keys.0.get(&key) {
        None => Ok(None),
        // A request without options leaves those of the list, which its owner has chosen.
        Some(before) if *before == permit || !line::has_options(new) => Ok(Some(Added::Before)),
        Some(_) => Err(NotAdded::OtherOptions(list.to_owned())),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Access {
    Read,
    Write,
}

/// Opens a list that only its owner or root can have changed. Another than the last component of its path may be a symbolic
/// link.
fn open(list: &Path, access: Access) -> Result<File, NotAdded> {
    let failed = |source: io::Error| match Errno::from_io_error(&source) {
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => NotAdded::Denied(list.to_owned()),
        Some(Errno::LOOP) => NotAdded::Link(list.to_owned()),
        _ => NotAdded::Io { list: list.to_owned(), source },
    };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits().cast_signed());
    if access == Access::Write {
        options.append(true).create(true).mode(0o600);
        let folder = list.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
        }
    }
    let file = options.open(list).map_err(failed)?;
    let distrust = |reason| NotAdded::Distrust { list: list.to_owned(), reason };
    trust(&file, Owners::UserOrRoot, Others::Read).map_err(distrust)?;
    Ok(file)
}

fn read(file: &mut File, list: &Path) -> Result<String, NotAdded> {
    let failed = |source| NotAdded::Io { list: list.to_owned(), source };
    let mut text = String::new();
    file.take(LIST_BYTES_MAX + 1).read_to_string(&mut text).map_err(failed)?;
    match text.len() as u64 > LIST_BYTES_MAX {
        true => Err(failed(ErrorKind::FileTooLarge.into())),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests;
