//! Conversion between the types of the file system and those of a store.

use hikyaku_fs::{Meta, is_sizeless, set_attribute};
use hikyaku_store::{Attribute, Doing, Found, Identity, Kind, Owner, Result, Time, Version};
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

/// A file that changed within this time may change again without a change of its times, because
/// file systems store times with limited resolution.
const CLOCK_RESOLUTION_MAX_SECS: i64 = 2;

pub(crate) const fn kind(kind: hikyaku_fs::Kind) -> Kind {
    match kind {
        hikyaku_fs::Kind::File => Kind::File,
        hikyaku_fs::Kind::Dir => Kind::Dir,
        hikyaku_fs::Kind::Link => Kind::Link,
        hikyaku_fs::Kind::Special => Kind::Special,
    }
}

pub(crate) fn found(meta: &Meta) -> Found {
    Found {
        kind: kind(meta.kind),
        size: if meta.kind == hikyaku_fs::Kind::Dir { 0 } else { meta.size },
        allocated: meta.blocks * 512,
        mode: meta.mode,
        owner: Owner { user: meta.owner.user, group: meta.owner.group },
        modified: Time { secs: meta.modified.0, nanos: meta.modified.1 },
        identity: Identity { device: meta.identity.0, number: meta.identity.1 },
        version: version(meta),
    }
}

/// The kind of a file whose size the kernel reports as zero although reads return bytes (`/proc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sizes {
    /// An empty file. A caller that reads it may find more.
    AsTold,
    /// [`Kind::Special`]: a caller that relies on the size would get an empty file.
    Known,
}

impl Sizes {
    /// The metadata for a client of the store. `beside` is the file or its directory, open.
    pub(crate) fn found(self, meta: &Meta, beside: impl AsFd) -> Found {
        match self == Self::Known && is_sizeless(meta, beside) {
            true => Found { kind: Kind::Special, ..found(meta) },
            false => found(meta),
        }
    }
}

fn version(meta: &Meta) -> Option<Version> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let youngest = meta.changed.0.max(meta.modified.0);
    // A time in the future indicates that the clock was set back, so that a later change may get
    // the same time as well.
    if now - youngest <= CLOCK_RESOLUTION_MAX_SECS {
        return None;
    }
    let mut hasher = blake3::Hasher::new();
    meta.version().iter().for_each(|number| {
        hasher.update(&number.to_le_bytes());
    });
    Some(Version(*hasher.finalize().as_bytes()))
}

/// The owner as the file system takes it.
pub(crate) const fn owner(owner: Owner) -> hikyaku_fs::Owner {
    hikyaku_fs::Owner { user: owner.user, group: owner.group }
}

/// The time as the file system takes it.
pub(crate) const fn time(time: Time) -> (i64, u32) {
    (time.secs, time.nanos)
}

/// Sets extended attributes of an open file or directory.
pub(crate) fn set_attributes(doing: Doing<'_>, file: impl AsFd, all: &[Attribute]) -> Result<()> {
    all.iter().try_for_each(|Attribute { name, value }| doing.or(set_attribute(&file, name, value)))
}
