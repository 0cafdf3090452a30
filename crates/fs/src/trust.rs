//! Whether an open file or folder could have been made or changed by another user of this machine.
//!
//! State is believed only if the answer is no: a journal, an unfinished file, a list of keys, a folder of programs. In a
//! folder of several users anybody may have made a file of the name that a program looks for. The question is asked of the
//! open descriptor, so that the file that is looked at is the one that is used.

use rustix::fs::{FileType, Stat, fstat};
use rustix::io::Errno;
use rustix::process::geteuid;
use std::os::fd::AsFd;
use std::path::Path;

/// Who may own a file that is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owners {
    /// The user that this process runs as (its effective user).
    User,
    /// That user, or the administrator, as sshd(8) has it for `authorized_keys`.
    UserOrRoot,
}

/// What the group and all others may do with a file that is believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Others {
    /// They may read it, and not change it.
    Read,
    /// Nothing: it is a secret.
    Nothing,
}

/// Why a file or folder is not believed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Distrust {
    /// It is of another kind, such as a device.
    #[error("it is of the wrong kind, such as a device")]
    Kind,
    /// It belongs to another user.
    #[error("it belongs to another user (uid {0})")]
    Owner(u32),
    /// The group or others may write to it.
    #[error("other users may change it (mode {0:04o})")]
    Writable(u32),
    /// It is to be a secret, and the group or others may read it.
    #[error("other users may read it (mode {0:04o})")]
    Readable(u32),
    /// It is a file with several names (hard links), of which another user may have made one.
    #[error("it has {0} names (hard links)")]
    Names(u64),
    /// fstat(2) failed.
    #[error("it cannot be looked at: {0}")]
    Unknown(Errno),
}

const OTHERS_WRITE_BITS: u32 = 0o022;
const OTHERS_BITS: u32 = 0o077;

/// Tells why an open file or folder is not believed; `Ok` if nobody but its owners can have made or changed it.
///
/// A POSIX access control list that lets another user write shows in the bits of the group (acl(5)), so it is seen. On a
/// file system without owners and modes each file shows what the mount has set.
///
/// # Errors
///
/// The first reason that is found.
pub fn trust(file: impl AsFd, owners: Owners, others: Others) -> Result<(), Distrust> {
    let stat = fstat(file).map_err(Distrust::Unknown)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Directory => judge(&stat, owners, others),
        _ => Err(Distrust::Kind),
    }
}

/// The same of a list of who may enter. It may also be a pipe, which is judged as a file is, and the null device, which nobody
/// can put anything into: an empty list.
///
/// # Errors
///
/// The first reason that is found.
pub fn trust_list(list: impl AsFd) -> Result<(), Distrust> {
    let stat = fstat(list).map_err(Distrust::Unknown)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice if is_null_device(&stat) => Ok(()),
        FileType::RegularFile | FileType::Fifo => judge(&stat, Owners::UserOrRoot, Others::Read),
        _ => Err(Distrust::Kind),
    }
}

fn is_null_device(stat: &Stat) -> bool {
    rustix::fs::stat("/dev/null").is_ok_and(|null| {
        FileType::from_raw_mode(null.st_mode) == FileType::CharacterDevice
            && null.st_rdev == stat.st_rdev
    })
}

// The types of these fields differ between systems.
#[allow(clippy::useless_conversion)]
fn judge(stat: &Stat, owners: Owners, others: Others) -> Result<(), Distrust> {
    let owner = stat.st_uid;
    let is_roots = owner == 0 && owners == Owners::UserOrRoot;
    if owner != geteuid().as_raw() && !is_roots {
        return Err(Distrust::Owner(owner));
    }
    let mode = u32::from(stat.st_mode) & 0o7777;
    if mode & OTHERS_WRITE_BITS != 0 {
        return Err(Distrust::Writable(mode));
    }
    if others == Others::Nothing && mode & OTHERS_BITS != 0 {
        return Err(Distrust::Readable(mode));
    }
    // The links of a directory are its subdirectories.
    let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    match u64::from(stat.st_nlink) {
        names if !is_dir && names > 1 => Err(Distrust::Names(names)),
        _ => Ok(()),
    }
}

impl Distrust {
    /// A command with which the owner of `path` makes it trusted, for a message after `try: `; `None` if there is none.
    pub fn remedy(&self, path: &Path) -> Option<String> {
        let bits = match self {
            Self::Writable(_) => "go-w",
            Self::Readable(_) => "go-rwx",
            Self::Kind | Self::Owner(_) | Self::Names(_) | Self::Unknown(_) => return None,
        };
        Some(format!("chmod {bits} {}", path.display()))
    }
}

#[cfg(test)]
mod tests;
