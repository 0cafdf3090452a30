//! Metadata of a name in a walk, and the reason why an operation on a name failed.

use super::Kind;
use hikyaku_fs::Shown;
use hikyaku_store::{ErrorKind, Identity, StoreError, Time};

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
    /// Which file of this machine or of a store it is; `None` for one of an SFTP server.
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

/// The reason of a store.
pub(crate) fn why(error: &StoreError) -> Why {
    let what = match error.kind {
        ErrorKind::NotFound => What::Absent,
        ErrorKind::Unreachable | ErrorKind::PROTOCOL => What::End,
        _ => What::Name,
    };
    Why { text: error.kind.to_string(), what }
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
