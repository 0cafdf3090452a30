//! The requests of the kernel over FUSE (fuse(4)), and the answers.
//!
//! A thread that reads the kernel's requests never waits for the network: if the answer is not cached, it is sent later, by
//! the thread that reads the server's messages.

mod dirs;
mod entries;
mod figures;
mod files;
mod names;
mod retries;
#[cfg(test)]
mod testing;

use crate::answer::Slot;
use crate::ask::What;
use crate::attributes::{kernel_time, store_time};
use crate::change::NewAttributes;
use crate::core::{Access, Core, errno};
use crate::locks::{Locking, wish};
use crate::write::Where;
use bytes::Bytes;
pub(crate) use dirs::OpenDir;
use figures::Own;
use files::is_append;
use fuser::{
    BsdFileFlags, Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags,
    KernelConfig, LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData,
    ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyLock, ReplyOpen, ReplyStatfs,
    ReplyWrite, ReplyXattr, Request, TimeOrNow, WriteFlags,
};
use hikyaku_remote::{Edit, Patience};
use hikyaku_store::{ErrorKind, StorePath};
pub(crate) use retries::Retries;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// The file system as the kernel sees it.
pub(crate) struct Front(pub(crate) Arc<Core>);

/// A number is given to another node only after the kernel has forgotten the first one.
const GENERATION: Generation = Generation(0);
/// Requests that the kernel may have under way for pages ahead.
const BACKGROUND_MAX: u16 = 256;
/// F_UNLCK of fcntl(2).
const UNLOCKED: i32 = 2;
/// The longest name.
const NAME_BYTES_MAX: usize = 255;

impl Filesystem for Front {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let locking = match self.0.settings.locking {
            Locking::Server => InitFlags::FUSE_POSIX_LOCKS | InitFlags::FUSE_FLOCK_LOCKS,
            Locking::Local => InitFlags::empty(),
        };
        for flag in [
            locking,
            InitFlags::FUSE_ASYNC_READ,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_AUTO_INVAL_DATA,
            InitFlags::FUSE_CACHE_SYMLINKS,
            InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP,
        ] {
            // A kernel that lacks one of them is slower.
            let _ = config.add_capabilities(flag);
        }
        let _ = config.set_max_background(BACKGROUND_MAX);
        Ok(())
    }

    fn lookup(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match Own::named(parent, name) {
            Some(own) => self.0.reply_own_entry(own, reply),
            None => self.0.reply_lookup((parent, name), self.0.slot(request, reply)),
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        let mut state = self.0.state();
        if let Some(content) = state.nodes.forget(number.0, times) {
            state.pages.drop_content(content);
        }
    }

    fn getattr(&self, request: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match Own::of(number) {
            Some(own) => self.0.reply_own_attributes(own, reply),
            None => self.0.reply_attributes(number, self.0.slot(request, reply)),
        }
    }

    fn readlink(&self, request: &Request, number: INodeNo, reply: ReplyData) {
        self.0.reply_link(number, self.0.slot(request, reply));
    }

    fn open(&self, request: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        match Own::of(number) {
            Some(_) => self.0.reply_own_open(reply),
            None => self.0.reply_open(number, flags, self.0.slot(request, reply)),
        }
    }

    fn read(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        if let Some(bytes) = self.0.own_bytes(handle.0, offset, size) {
            return reply.data(&bytes);
        }
        let reply = self.0.slot(request, reply);
        let on_bytes = move |bytes: Result<&[u8], Errno>| match bytes {
            Ok(bytes) => {
                reply.answer(|reply| reply.data(bytes));
            }
            Err(errno) => reply.error(errno),
        };
        self.0.read(handle.0, (offset, size), Box::new(on_bytes));
    }

    fn flush(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        reply: ReplyEmpty,
    ) {
        let reply = self.0.slot(request, reply);
        let core = self.0.clone();
        self.0.close_written(handle.0, move |closed| {
            let free = core.clone();
            core.withdraw((handle.0, reply.thread), move || {
                free.free_of_owner((number.0, owner.0), move |_| empty(reply)(closed));
            });
        });
    }

    fn getlk(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        _: i32,
        _: u32,
        reply: ReplyLock,
    ) {
        self.0.lock_against((number.0, owner.0), (start, end), move |by| match by {
            // The program is one of another machine, which has no number here.
            Ok(Some((is_exclusive, (first, last)))) => {
                reply.locked(first, last, i32::from(is_exclusive), 0);
            }
            Ok(None) => reply.locked(start, end, UNLOCKED, 0),
            Err(errno) => reply.error(errno),
        });
    }

    fn setlk(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        owner: LockOwner,
        start: u64,
        end: u64,
        kind: i32,
        _: u32,
        waits: bool,
        reply: ReplyEmpty,
    ) {
        let reply = self.0.slot(request, reply);
        let patience = if waits { Patience::Wait } else { Patience::None };
        match wish(kind, patience) {
            Some(wish) => {
                let owner = (number.0, owner.0, handle.0);
                self.0.set_lock(owner, (start, end), wish, reply);
            }
            None => reply.error(Errno::EINVAL),
        }
    }

    fn fsync(&self, request: &Request, _: INodeNo, handle: FileHandle, _: bool, reply: ReplyEmpty) {
        let reply = self.0.slot(request, reply);
        self.0.sync(handle.0, empty(reply));
    }

    fn fsyncdir(
        &self,
        request: &Request,
        number: INodeNo,
        _: FileHandle,
        _: bool,
        reply: ReplyEmpty,
    ) {
        let reply = self.0.slot(request, reply);
        match self.0.settings.access {
            Access::Write => self.0.sync_dir(number, reply),
            Access::Read => reply.ok(),
        }
    }

    fn write(
        &self,
        request: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        flags: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let reply = self.0.slot(request, reply);
        let bytes = Bytes::copy_from_slice(data);
        let where_to = match is_append(flags) && self.0.settings.locking == Locking::Server {
            true => Where::End(offset),
            false => Where::At(offset),
        };
        self.0.write(handle.0, (where_to, bytes), move |written| match written {
            Ok(length) => {
                reply.answer(|reply| reply.written(length));
            }
            Err(errno) => reply.error(errno),
        });
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let reply = self.0.slot(request, reply);
        self.0.reply_create((parent, name), mode, OpenFlags(flags), reply);
    }

    fn mkdir(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let reply = self.0.slot(request, reply);
        let edit = move |path: &StorePath| Edit::MakeDir { path: path.as_bytes().to_vec(), mode };
        self.0.make_entry((parent, name), edit, reply);
    }

    fn mknod(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: u32,
        reply: ReplyEntry,
    ) {
        let reply = self.0.slot(request, reply);
        if rustix::fs::FileType::from_raw_mode(mode) != rustix::fs::FileType::RegularFile {
            return reply.error(Errno::EPERM);
        }
        let edit = move |path: &StorePath| Edit::Create { path: path.as_bytes().to_vec(), mode };
        self.0.make_entry((parent, name), edit, reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let reply = self.0.slot(request, reply);
        let text = target.as_os_str().as_bytes().to_vec();
        let edit = move |path: &StorePath| {
            let (path, text) = (path.as_bytes().to_vec(), text.clone());
            Edit::MakeLink { path, text }
        };
        self.0.make_entry((parent, name), edit, reply);
    }

    fn unlink(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove_entry((parent, name), false, self.0.slot(request, reply));
    }

    fn rmdir(&self, request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        self.0.remove_entry((parent, name), true, self.0.slot(request, reply));
    }

    fn rename(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        new_parent: INodeNo,
        new_name: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let reply = self.0.slot(request, reply);
        let replaces = match flags {
            flags if flags.is_empty() => true,
            RenameFlags::RENAME_NOREPLACE => false,
            _ => return reply.error(Errno::EINVAL),
        };
        let (from, to) = ((parent, name.to_owned()), (new_parent, new_name.to_owned()));
        self.0.rename_entry(from, to, replaces, reply);
    }

    fn setattr(
        &self,
        request: &Request,
        number: INodeNo,
        mode: Option<u32>,
        uid: Option<u32>,
        gid: Option<u32>,
        size: Option<u64>,
        _: Option<TimeOrNow>,
        modified: Option<TimeOrNow>,
        _: Option<SystemTime>,
        _: Option<FileHandle>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<SystemTime>,
        _: Option<BsdFileFlags>,
        reply: ReplyAttr,
    ) {
        let reply = self.0.slot(request, reply);
        let modified = modified.map(|time| match time {
            TimeOrNow::SpecificTime(time) => kernel_time(time),
            TimeOrNow::Now => store_time(SystemTime::now()),
        });
        let new = NewAttributes { size, mode, modified };
        self.0.reply_set(number, new, (uid, gid), reply);
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.0.free_of_handle(number.0, handle.0);
        reply.ok();
        if self.0.state().texts.remove(&handle.0).is_none() {
            self.0.close(handle.0);
        }
    }

    fn opendir(&self, request: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        match Own::of(number) {
            Some(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            None => self.0.reply_opendir(number, self.0.slot(request, reply)),
        }
    }

    fn readdir(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectory,
    ) {
        match Own::of(number) {
            Some(_) => self.0.reply_own_names(offset, reply),
            None => {
                let reply = self.0.slot(request, reply);
                self.0.reply_names(number, (handle, offset), reply);
            }
        }
    }

    fn readdirplus(
        &self,
        request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        reply: ReplyDirectoryPlus,
    ) {
        match Own::of(number) {
            Some(_) => self.0.reply_own_entries(offset, reply),
            None => {
                let reply = self.0.slot(request, reply);
                self.0.reply_entries(number, (handle, offset), reply);
            }
        }
    }

    fn releasedir(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        reply: ReplyEmpty,
    ) {
        self.0.state().dirs.remove(&handle.0);
        reply.ok();
    }

    fn statfs(&self, request: &Request, _: INodeNo, reply: ReplyStatfs) {
        let reply = self.0.slot(request, reply);
        const UNIT: u32 = 4096;
        let done = move |space: Result<hikyaku_store::Space, ErrorKind>| match space {
            Ok(space) => {
                let [total, free] = [space.total, space.free].map(|bytes| bytes / u64::from(UNIT));
                let files = space.files.unwrap_or(0);
                let name = NAME_BYTES_MAX as u32;
                reply.answer(|reply| {
                    reply.statfs(total, free, free, files, files, UNIT, name, UNIT);
                });
            }
            Err(kind) => reply.error(errno(kind)),
        };
        self.0.ask(What::Space(Box::new(done)));
    }

    fn getxattr(
        &self,
        request: &Request,
        number: INodeNo,
        name: &OsStr,
        size: u32,
        reply: ReplyXattr,
    ) {
        self.0.reply_own_value(number, name.as_bytes(), size, self.0.slot(request, reply));
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        if size == 0 { reply.size(0) } else { reply.data(&[]) }
    }
}

/// Answers with success or an error.
fn empty(reply: Slot<ReplyEmpty>) -> impl FnOnce(Result<(), Errno>) + Send + 'static {
    move |done| match done {
        Ok(()) => reply.ok(),
        Err(errno) => reply.error(errno),
    }
}
