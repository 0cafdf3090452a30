//! The two ends of a synchronization: a directory of this machine, or one of an SFTP server.

mod absent;
mod followed;
#[cfg(test)]
mod memory;
mod renamed;
mod stored;

pub(crate) use absent::Absent;
pub(crate) use followed::Followed;
#[cfg(test)]
pub(crate) use memory::Memory;
pub(crate) use renamed::Renamed;
pub(crate) use stored::Stored;

use blake3::Hash;
use hikyaku_fs::Shown;
use hikyaku_store::{Identity, Time};

/// What a name is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Dir,
    Link,
    /// A FIFO, a socket or a device.
    Special,
}

/// Metadata of a name. Links are not followed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Meta {
    pub(crate) kind: Kind,
    /// Bytes.
    pub(crate) size: u64,
    /// Permission bits (0o7777).
    pub(crate) mode: u32,
    /// When the content was changed.
    pub(crate) modified: Time,
    /// Which file of this machine it is; `None` for one of a server.
    pub(crate) identity: Option<Identity>,
}

impl Meta {
    /// Whether it is what was listed. Outside of listings a server tells times modulo 2^32 seconds.
    pub(crate) fn is_still(&self, listed: &Self) -> bool {
        let same = Self { modified: self.modified, ..*listed };
        let is_same_time =
            self.low_secs() == listed.low_secs() && self.modified.nanos == listed.modified.nanos;
        *self == same && is_same_time
    }

    /// The time in seconds as a server tells it.
    pub(crate) const fn low_secs(&self) -> u32 {
        self.modified.secs as u32
    }
}

/// A path below a root, for messages. The root itself is `.`.
pub(crate) const fn shown(path: &[u8]) -> Shown<'_> {
    Shown::new(if path.is_empty() { b"." } else { path })
}

/// An entry of a directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Item {
    /// One name of a path: not empty, no slash, neither `.` nor `..`.
    pub(crate) name: Vec<u8>,
    pub(crate) meta: Meta,
    /// What a link says; `None` for all others.
    pub(crate) link: Option<Done<Vec<u8>>>,
}

/// Why something could not be done, for the user.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Why {
    pub(crate) text: String,
    pub(crate) what: What,
}

/// What a failure means for the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// No entry has this name.
    Absent,
    /// It concerns this name only.
    Name,
    /// Nothing more can be done: the connection is lost, or the user has ended the command.
    End,
}

impl Why {
    pub(crate) fn of_name(text: impl Into<String>) -> Self {
        Self { text: text.into(), what: What::Name }
    }

    pub(crate) fn is_end(&self) -> bool {
        self.what == What::End
    }

    pub(crate) fn is_absent(&self) -> bool {
        self.what == What::Absent
    }
}

/// The result of an operation on an end.
pub(crate) type Done<T = ()> = Result<T, Why>;

/// Permission bits and time to set; what is `None` stays.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Setting {
    pub(crate) mode: Option<u32>,
    pub(crate) modified: Option<Time>,
}

impl Setting {
    pub(crate) const fn is_nothing(self) -> bool {
        self.mode.is_none() && self.modified.is_none()
    }
}

/// One end. Paths are below its root; the empty path is the root.
pub(crate) trait Side: Send + Sync {
    /// Metadata of a name.
    fn look(&self, path: &[u8]) -> Done<Meta>;
    /// One entry by its path.
    fn entry(&self, path: &[u8]) -> Done<Item>;
    /// All entries of a directory, sorted by name. Temporary files of unfinished copies are omitted.
    ///
    /// # Errors
    ///
    /// Also if only some of the entries can be told: a listing is whole, or an error.
    fn list(&self, dir: &[u8]) -> Done<Vec<Item>>;
    /// The directory that a link leads to, as a side of its own; `None` if it leads to none.
    fn below(&self, _link: &[u8]) -> Done<Option<Box<dyn Side>>> {
        Ok(None)
    }
    /// A hash of a file's content.
    fn hash(&self, path: &[u8]) -> Done<Hash>;
    /// Makes a directory with these permission bits without what the umask takes. Its owner may write to it in any case.
    /// A directory that is there stays as it is.
    fn make_dir(&self, path: &[u8], mode: u32) -> Done;
    /// Makes a link in place of one that may be there.
    fn make_link(&self, path: &[u8], text: &[u8]) -> Done;
    /// Removes a name of this kind. A directory must be empty.
    fn remove(&self, path: &[u8], kind: Kind) -> Done;
    /// Gives a file another name, and replaces what has that name.
    fn rename(&self, from: &[u8], to: &[u8]) -> Done;
    /// Sets metadata of a name of this kind, all twelve permission bits among them. A link has none to set.
    fn set(&self, path: &[u8], kind: Kind, setting: Setting) -> Done;
    /// Whether a time can be set, but by a copy.
    fn sets_time(&self, _time: Time) -> bool {
        true
    }
    /// Whether the time of a link can be set, so that a difference of it means something.
    fn keeps_times_of_links(&self) -> bool {
        true
    }
}
