//! Conversion between the types of Gfarm's protocol and those of a store.

use hikyaku_gfarm::{Code, Handle, Stat};
use hikyaku_store::{ErrorKind, Found, Identity, Kind, Owner, Time, Version};

/// The error number of whatever has no kind of its own.
pub(crate) const EIO: i32 = 5;
/// The error number for opening a FIFO, a socket or a device.
pub(crate) const ENXIO: i32 = 6;

pub(crate) const fn kind(kind: hikyaku_gfarm::Kind) -> Kind {
    match kind {
        hikyaku_gfarm::Kind::File => Kind::File,
        hikyaku_gfarm::Kind::Dir => Kind::Dir,
        hikyaku_gfarm::Kind::Link => Kind::Link,
        hikyaku_gfarm::Kind::Other => Kind::Special,
    }
}

pub(crate) const fn time(time: Time) -> hikyaku_gfarm::Time {
    hikyaku_gfarm::Time { secs: time.secs, nanos: time.nanos }
}

/// Owners are names in Gfarm, which have no number here.
pub(crate) fn found(stat: &Stat) -> Found {
    let kind = kind(stat.kind);
    let size = if kind == Kind::Dir { 0 } else { stat.size };
    Found {
        kind,
        size,
        allocated: size,
        mode: stat.mode,
        owner: Owner::default(),
        modified: Time { secs: stat.modified.secs, nanos: stat.modified.nanos },
        identity: Identity { device: 0, number: stat.handle.inode },
        version: (kind == Kind::File).then(|| version(stat.handle)),
    }
}

/// The version of a content. A survey has it, and a node compares it with that of the file that it opens.
pub(crate) fn version(handle: Handle) -> Version {
    let mut hasher = blake3::Hasher::new();
    for number in [handle.inode, handle.generation] {
        hasher.update(&number.to_le_bytes());
    }
    Version(*hasher.finalize().as_bytes())
}

/// Up to this number Gfarm's errors have the numbers of the operating system.
const CLASSIC_MAX: i32 = 34;

pub(crate) const fn error(code: Code) -> ErrorKind {
    match code {
        Code::NOT_FOUND => ErrorKind::NotFound,
        Code::EXISTS => ErrorKind::Exists,
        Code::NOT_DIR => ErrorKind::NotDir,
        Code::IS_DIR => ErrorKind::IsDir,
        Code::NOT_EMPTY => ErrorKind::NotEmpty,
        Code::DENIED | Code::NOT_PERMITTED | Code::AUTHENTICATION => ErrorKind::Denied,
        Code::READ_ONLY => ErrorKind::ReadOnly,
        Code::NO_SPACE => ErrorKind::NoSpace,
        Code::QUOTA => ErrorKind::Quota,
        Code::TOO_LARGE => ErrorKind::TooLarge,
        Code::NAME_TOO_LONG => ErrorKind::BadName,
        // The node has no replica of this generation any more.
        Code::NO_SUCH_OBJECT | Code::MIGRATED | Code::STALE | Code::BAD_DESCRIPTOR => {
            ErrorKind::Gone
        }
        Code::NO_NODE | Code::FAILED_OVER => ErrorKind::Unreachable,
        Code(number @ 1..=CLASSIC_MAX) => ErrorKind::System(number),
        _ => ErrorKind::System(EIO),
    }
}
