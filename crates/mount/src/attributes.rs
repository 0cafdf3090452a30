//! Metadata as the kernel wants them.

use fuser::{FileAttr, FileType, INodeNo};
use hikyaku_store::{Found, Kind, Time};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Programs that ask for the best size of a read get this many bytes.
const READ_BYTES: u32 = 128 << 10;
/// The unit of the allocated size (stat(2)).
const UNIT_BYTES: u64 = 512;

/// No such name.
pub(crate) const NOTHING: FileAttr = FileAttr {
    ino: INodeNo(0),
    size: 0,
    blocks: 0,
    atime: UNIX_EPOCH,
    mtime: UNIX_EPOCH,
    ctime: UNIX_EPOCH,
    crtime: UNIX_EPOCH,
    kind: FileType::RegularFile,
    perm: 0,
    nlink: 0,
    uid: 0,
    gid: 0,
    rdev: 0,
    blksize: READ_BYTES,
    flags: 0,
};

/// The metadata of a node, with the owner that it seems to have, or that of the server.
pub(crate) fn attributes(number: u64, found: &Found, owner: Option<(u32, u32)>) -> FileAttr {
    let time = system_time(found.modified);
    let (uid, gid) = owner.unwrap_or((found.owner.user, found.owner.group));
    FileAttr {
        ino: INodeNo(number),
        size: found.size,
        blocks: found.allocated.div_ceil(UNIT_BYTES),
        atime: time,
        mtime: time,
        ctime: time,
        crtime: time,
        kind: file_type(found.kind),
        perm: (found.mode & 0o7777) as u16,
        nlink: 1,
        uid,
        gid,
        rdev: 0,
        blksize: READ_BYTES,
        flags: 0,
    }
}

/// The kind as the kernel knows it. All kinds but files, directories and links are shown as sockets: open(2) of a
/// socket fails at once (ENXIO), that of a FIFO would wait.
pub(crate) const fn file_type(kind: Kind) -> FileType {
    match kind {
        Kind::File => FileType::RegularFile,
        Kind::Dir => FileType::Directory,
        Kind::Link => FileType::Symlink,
        Kind::Special => FileType::Socket,
    }
}

fn system_time(time: Time) -> SystemTime {
    let whole = Duration::from_secs(time.secs.unsigned_abs());
    let nanos = Duration::from_nanos(u64::from(time.nanos.min(999_999_999)));
    let found = match time.secs {
        0.. => UNIX_EPOCH.checked_add(whole),
        _ => UNIX_EPOCH.checked_sub(whole),
    };
    found.and_then(|found| found.checked_add(nanos)).unwrap_or(UNIX_EPOCH)
}

/// A time as a store has it.
pub(crate) fn store_time(time: SystemTime) -> Time {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => Time { secs: since.as_secs() as i64, nanos: since.subsec_nanos() },
        Err(before) => {
            let before = before.duration();
            let secs = -(before.as_secs() as i64);
            match before.subsec_nanos() {
                0 => Time { secs, nanos: 0 },
                nanos => Time { secs: secs - 1, nanos: 1_000_000_000 - nanos },
            }
        }
    }
}

/// A time that the kernel has sent, as its library has read it: it has taken the fraction of a second away from the seconds
/// before 1970, where the kernel means that it is added to them, as a store does.
pub(crate) fn kernel_time(read: SystemTime) -> Time {
    match read.duration_since(UNIX_EPOCH) {
        Ok(_) => store_time(read),
        Err(before) => {
            let before = before.duration();
            let secs = 0i64.saturating_sub_unsigned(before.as_secs());
            Time { secs, nanos: before.subsec_nanos() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_before_1970_and_absurd_ones_are_shown() {
        let at = |secs, nanos| system_time(Time { secs, nanos });
        assert_eq!(at(5, 7), UNIX_EPOCH + Duration::new(5, 7));
        assert_eq!(at(-2, 500_000_000), UNIX_EPOCH - Duration::from_millis(1500));
        assert_eq!(at(0, u32::MAX), UNIX_EPOCH + Duration::from_nanos(999_999_999));
        for time in [Time { secs: 5, nanos: 7 }, Time { secs: -2, nanos: 500_000_000 }] {
            assert_eq!(store_time(system_time(time)), time);
        }
        at(i64::MAX, 0);
        at(i64::MIN, 0);
    }

    #[test]
    fn a_time_of_the_kernel_is_what_a_program_has_set() {
        // As the library reads seconds and nanoseconds.
        let read = |secs: i64, nanos| match secs {
            0.. => UNIX_EPOCH + Duration::new(secs as u64, nanos),
            _ => UNIX_EPOCH - Duration::new(secs.unsigned_abs(), nanos),
        };
        for (secs, nanos) in [(5, 7), (0, 1), (-1, 999_999_999), (-2, 0), (i64::MIN, 0)] {
            assert_eq!(kernel_time(read(secs, nanos)), Time { secs, nanos });
        }
    }
}
