//! The numbers of the requests, and their arguments.

use crate::code::Writer;
use crate::process::Process;

/// What is asked of gfmd.
pub(crate) mod gfmd {
    pub(crate) const HOST_INFO_GET_ALL: i32 = 0;
    pub(crate) const COMPOUND_BEGIN: i32 = 64;
    pub(crate) const COMPOUND_END: i32 = 65;
    pub(crate) const PUT_FD: i32 = 67;
    pub(crate) const GET_FD: i32 = 68;
    pub(crate) const SAVE_FD: i32 = 69;
    pub(crate) const OPEN_ROOT: i32 = 80;
    pub(crate) const OPEN: i32 = 82;
    pub(crate) const CREATE: i32 = 83;
    pub(crate) const CLOSE: i32 = 84;
    pub(crate) const FSTAT: i32 = 96;
    pub(crate) const FUTIMES: i32 = 97;
    pub(crate) const FCHMOD: i32 = 98;
    pub(crate) const SCHEDULE_FILE: i32 = 102;
    pub(crate) const REMOVE: i32 = 112;
    pub(crate) const RENAME: i32 = 113;
    pub(crate) const FLINK: i32 = 114;
    pub(crate) const MKDIR: i32 = 115;
    pub(crate) const SYMLINK: i32 = 116;
    pub(crate) const READLINK: i32 = 117;
    pub(crate) const GETDIRENTSPLUS: i32 = 121;
    pub(crate) const STATFS: i32 = 178;
    pub(crate) const REPLICA_INFO_GET: i32 = 196;
    pub(crate) const PROCESS_ALLOC: i32 = 224;
}

/// What is asked of gfsd.
pub(crate) mod gfsd {
    pub(crate) const PROCESS_SET: i32 = 0;
    pub(crate) const OPEN_LOCAL: i32 = 1;
    pub(crate) const OPEN: i32 = 2;
    pub(crate) const CLOSE: i32 = 3;
    pub(crate) const PREAD: i32 = 4;
    pub(crate) const FTRUNCATE: i32 = 6;
    pub(crate) const FSYNC: i32 = 7;
    pub(crate) const BULKREAD: i32 = 27;
    pub(crate) const BULKWRITE: i32 = 28;
}

/// The largest block of one [`gfsd::PREAD`].
pub(crate) const BLOCK_BYTES_MAX: usize = 1 << 20;
/// The kind of the key of a process.
pub(crate) const PROCESS_KEY_KIND: i32 = 1;
/// All replicas, with those that are not whole and those on hosts that are down.
pub(crate) const REPLICAS_ALL: i32 = 7;

/// A file that is made is empty and opened for reading and writing.
pub(crate) const CREATE_FLAGS: i32 = 0x400 | 2;
/// [`gfsd::FSYNC`] of the bytes and the metadata.
pub(crate) const SYNC_ALL: i32 = 1;

/// How a name is opened at gfmd.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Access {
    /// For reading.
    Read,
    /// For reading and writing.
    Write,
    /// For metadata only. A symbolic link is opened itself.
    Look,
}

impl Access {
    const fn flags(self) -> i32 {
        match self {
            Self::Read => 0,
            Self::Write => 2,
            Self::Look => 3,
        }
    }
}

impl Writer {
    /// Opens a path, name by name: gfmd has no request for paths. Names are separated by slashes, and the empty path is
    /// the root. The replies are those of [`names`] requests.
    pub(crate) fn open(&mut self, path: &[u8], access: Access) -> &mut Self {
        let names: Vec<&[u8]> = names(path).collect();
        let of = |at: usize| if at == names.len() { access } else { Access::Look };
        self.int(gfmd::OPEN_ROOT).int(of(0).flags());
        for (name, at) in names.iter().zip(1..) {
            self.int(gfmd::OPEN).string(name).int(of(at).flags());
        }
        self
    }

    /// Announces a process to gfsd.
    pub(crate) fn process(&mut self, process: &Process) -> &mut Self {
        let begun = self.int(gfsd::PROCESS_SET).int(PROCESS_KEY_KIND);
        begun.string(&process.key).long(process.id)
    }
}

/// The names of a path.
pub(crate) fn names(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    path.split(|&byte| byte == b'/').filter(|name| !name.is_empty())
}
