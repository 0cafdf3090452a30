//! `.hikyaku/stats` in the mounted directory: the figures of the mount as a file, which no listing shows.
//!
//! The directory and the file are not at the server. Their numbers are the highest ones, which no node gets. The file is
//! read around the kernel's cache, and each open sees the figures of its time.

use super::GENERATION;
use crate::answer::Slot;
use crate::attributes::{NOTHING, attributes};
use crate::core::Core;
use crate::nodes::ROOT;
use crate::status::{
    ATTRIBUTE_BYTES_MAX, FLUSH_ATTRIBUTE, PID_ATTRIBUTE, STATUS_ATTRIBUTE, figures,
};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, FopenFlags, INodeNo, ReplyAttr, ReplyDirectory,
    ReplyDirectoryPlus, ReplyEntry, ReplyOpen, ReplyXattr,
};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// Nodes that exist in the mount only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Own {
    Dir,
    Stats,
}

const DIR: u64 = u64::MAX - 1;
const STATS: u64 = u64::MAX - 2;
/// The names of both.
const DIR_NAME: &str = ".hikyaku";
const STATS_NAME: &str = "stats";
/// How long the kernel may keep their metadata.
const TTL: Duration = Duration::from_secs(1);

impl Own {
    /// The node with this number.
    pub(super) const fn of(number: INodeNo) -> Option<Self> {
        match number.0 {
            DIR => Some(Self::Dir),
            STATS => Some(Self::Stats),
            _ => None,
        }
    }

    /// The node with this name in this directory.
    pub(super) fn named(parent: INodeNo, name: &OsStr) -> Option<Self> {
        match (parent.0, name.to_str()) {
            (ROOT, Some(DIR_NAME)) => Some(Self::Dir),
            (DIR, Some(STATS_NAME)) => Some(Self::Stats),
            _ => None,
        }
    }

    const fn number(self) -> u64 {
        match self {
            Self::Dir => DIR,
            Self::Stats => STATS,
        }
    }
}

impl Core {
    pub(super) fn reply_own_entry(&self, own: Own, reply: ReplyEntry) {
        reply.entry(&TTL, &self.own_attributes(own), GENERATION);
    }

    pub(super) fn reply_own_attributes(&self, own: Own, reply: ReplyAttr) {
        reply.attr(&TTL, &self.own_attributes(own));
    }

    /// Opens the figures as they are at this time.
    pub(super) fn reply_own_open(&self, reply: ReplyOpen) {
        let text = format!("{}\n", figures(self));
        let mut state = self.state();
        let handle = state.next();
        state.texts.insert(handle, text.into());
        drop(state);
        reply.opened(FileHandle(handle), FopenFlags::FOPEN_DIRECT_IO);
    }

    /// The bytes of figures that are open.
    pub(super) fn own_bytes(&self, handle: u64, offset: u64, size: u32) -> Option<bytes::Bytes> {
        let text = self.state().texts.get(&handle)?.clone();
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(text.len());
        Some(text.slice(start..text.len().min(start.saturating_add(size as usize))))
    }

    pub(super) fn reply_own_names(&self, offset: u64, mut reply: ReplyDirectory) {
        for (at, (number, name)) in (0..).zip(ENTRIES).skip(offset as usize) {
            let kind = if number == STATS { FileType::RegularFile } else { FileType::Directory };
            if reply.add(INodeNo(number), at + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    pub(super) fn reply_own_entries(&self, offset: u64, mut reply: ReplyDirectoryPlus) {
        for (at, (number, name)) in (0..).zip(ENTRIES).skip(offset as usize) {
            let own = if number == STATS { Own::Stats } else { Own::Dir };
            let attributes = self.own_attributes(own);
            if reply.add(INodeNo(number), at + 1, name, &TTL, &attributes, GENERATION) {
                break;
            }
        }
        reply.ok();
    }

    /// Sends an extended attribute of the mount itself, at its root.
    pub(super) fn reply_own_value(
        self: &Arc<Self>,
        number: INodeNo,
        name: &[u8],
        size: u32,
        reply: Slot<ReplyXattr>,
    ) {
        let value = match name {
            PID_ATTRIBUTE if number.0 == ROOT => std::process::id().to_string(),
            STATUS_ATTRIBUTE if number.0 == ROOT => figures(self).to_string(),
            FLUSH_ATTRIBUTE if number.0 == ROOT && size as usize >= ATTRIBUTE_BYTES_MAX => {
                return self.flush(reply);
            }
            [b'u', b's', b'e', b'r', b'.', ..] => return reply.error(Errno::NO_XATTR),
            // After this error ls(1) requests no further attributes. ENOSYS would end all requests for attributes, also
            // those above.
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        reply.answer(|reply| match size {
            0 => reply.size(value.len() as u32),
            room if room < value.len() as u32 => reply.error(Errno::ERANGE),
            _ => reply.data(value.as_bytes()),
        });
    }

    fn own_attributes(&self, own: Own) -> FileAttr {
        let state = self.state();
        let root = state.nodes.at(ROOT);
        let like =
            root.map_or(NOTHING, |node| attributes(ROOT, &node.shown(), self.settings.owner));
        let (kind, perm) = match own {
            Own::Dir => (FileType::Directory, 0o555),
            Own::Stats => (FileType::RegularFile, 0o444),
        };
        let (size, blocks, time) = (0, 0, UNIX_EPOCH);
        let ino = INodeNo(own.number());
        FileAttr { ino, kind, perm, nlink: 1, size, blocks, mtime: time, ..like }
    }
}

/// The entries of the directory.
const ENTRIES: [(u64, &str); 3] = [(DIR, "."), (ROOT, ".."), (STATS, STATS_NAME)];
