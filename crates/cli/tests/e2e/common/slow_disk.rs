//! A file system with one file, which takes bytes at a set rate: a slow disk, by FUSE.

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, Generation,
    INodeNo, LockOwner, OpenFlags, ReplyAttr, ReplyEntry, ReplyWrite, Request, WriteFlags,
};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

/// The name of its file.
pub(crate) const FILE: &str = "copy.part";

/// A disk that writes so many bytes a second.
struct SlowDisk {
    bytes_per_second: f64,
    size: AtomicU64,
}

/// Mounts one at a directory. Dropping it unmounts it.
pub(crate) fn mount(at: &Path, bytes_per_second: f64) -> BackgroundSession {
    let disk = SlowDisk { bytes_per_second, size: AtomicU64::new(0) };
    fuser::spawn_mount(disk, at, &Config::default()).unwrap()
}

const ROOT: INodeNo = INodeNo(1);
const NUMBER: INodeNo = INodeNo(2);

impl SlowDisk {
    fn attributes(&self, number: INodeNo) -> FileAttr {
        let (kind, perm, size) = match number {
            ROOT => (FileType::Directory, 0o755, 0),
            _ => (FileType::RegularFile, 0o644, self.size.load(Ordering::Relaxed)),
        };
        FileAttr {
            ino: number,
            size,
            blocks: size.div_ceil(512),
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind,
            perm,
            nlink: 1,
            uid: 0,
            gid: 0,
            rdev: 0,
            blksize: 4096,
            flags: 0,
        }
    }
}

impl Filesystem for SlowDisk {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match name == FILE {
            true => reply.entry(&Duration::ZERO, &self.attributes(NUMBER), Generation(0)),
            false => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        reply.attr(&Duration::ZERO, &self.attributes(number));
    }

    fn write(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        thread::sleep(Duration::from_secs_f64(data.len() as f64 / self.bytes_per_second));
        self.size.fetch_max(offset + data.len() as u64, Ordering::Relaxed);
        reply.written(data.len() as u32);
    }
}
