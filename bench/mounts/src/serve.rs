//! The kernel's questions, answered from the store.

use crate::faults::Refused;
use crate::node::{Content, Dir, Kind, Node, Owner};
use crate::store::Store;
use fuser::{
    BsdFileFlags, Errno, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    LockOwner, OpenFlags, RenameFlags, ReplyAttr, ReplyCreate, ReplyData, ReplyDirectory,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyWrite, ReplyXattr, Request, TimeOrNow,
    WriteFlags,
};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

/// The store as the kernel sees it.
#[derive(Clone)]
pub(crate) struct Serve {
    store: Arc<Mutex<Store>>,
    /// Held by whom a slow file system serves.
    turn: Arc<Mutex<()>>,
}

/// Nothing is cached: faults begin and end while it is mounted.
const TTL: Duration = Duration::ZERO;
const BLOCK: u32 = 4096;
const NAME_MAX: u32 = 255;

impl Serve {
    pub(crate) fn new(owner: Owner) -> Self {
        Self { store: Arc::new(Mutex::new(Store::new(owner))), turn: Arc::default() }
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the time that so many bytes take.
    fn take_time(&self, bytes: usize) {
        let Some(rate) = self.store().faults.rate else { return };
        let turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        thread::sleep(Duration::from_secs_f64(bytes as f64 / f64::from(rate)));
        drop(turn);
    }

    fn made(&self, parent: INodeNo, name: &OsStr, node: Node, reply: ReplyEntry) {
        let mut store = self.store();
        match store.make(parent.0, name, node) {
            Ok(number) => answer_entry(&store, number, reply),
            Err(error) => reply.error(error),
        }
    }
}

fn answer_entry(store: &Store, number: u64, reply: ReplyEntry) {
    match store.node(number) {
        Ok(node) => reply.entry(&TTL, &node.attr(number), Generation(0)),
        Err(error) => reply.error(error),
    }
}

fn answer(done: Result<(), Errno>, reply: ReplyEmpty) {
    match done {
        Ok(()) => reply.ok(),
        Err(error) => reply.error(error),
    }
}

fn answer_attribute(value: &[u8], size: u32, reply: ReplyXattr) {
    let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
    match size {
        0 => reply.size(length),
        _ if size < length => reply.error(Errno::ERANGE),
        _ => reply.data(value),
    }
}

fn owner(request: &Request) -> Owner {
    Owner { user: request.uid(), group: request.gid() }
}

/// Permission bits of a mode, which the kernel has cut by the umask already.
#[allow(clippy::cast_possible_truncation, reason = "the mask leaves twelve bits")]
const fn perm(mode: u32) -> u16 {
    (mode & 0o7777) as u16
}

impl Filesystem for Serve {
    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let store = self.store();
        match store.lookup(parent.0, name) {
            Ok(number) => answer_entry(&store, number, reply),
            Err(error) => reply.error(error),
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.store().node(number.0) {
            Ok(node) => reply.attr(&TTL, &node.attr(number.0)),
            Err(error) => reply.error(error),
        }
    }

    fn setattr(
        &self,
        _: &Request,
        number: INodeNo,
        mode: Option<u32>,
        user: Option<u32>,
        group: Option<u32>,
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
        let mut store = self.store();
        let may = || {
            store.faults.check_change(None)?;
            mode.map_or(Ok(()), |_| store.faults.check(Refused::Chmod))?;
            modified.map_or(Ok(()), |_| store.faults.check(Refused::Times))
        };
        let done = may();
        let done = done.and_then(|()| {
            size.map_or(Ok(()), |size| store.set_length(number.0, size))?;
            let node = store.node_mut(number.0)?;
            node.perm = mode.map_or(node.perm, perm);
            node.owner.user = user.unwrap_or(node.owner.user);
            node.owner.group = group.unwrap_or(node.owner.group);
            node.changed = SystemTime::now();
            match modified {
                Some(TimeOrNow::SpecificTime(time)) => node.modified = time,
                Some(TimeOrNow::Now) => node.modified = node.changed,
                None => {}
            }
            Ok(node.attr(number.0))
        });
        match done {
            Ok(attr) => reply.attr(&TTL, &attr),
            Err(error) => reply.error(error),
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        match self.store().node(number.0).map(|node| &node.kind) {
            Ok(Kind::Link(text)) => reply.data(text),
            Ok(_) => reply.error(Errno::EINVAL),
            Err(error) => reply.error(error),
        }
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
        let kind = match mode & 0o170_000 {
            0o010_000 => Kind::Special(FileType::NamedPipe),
            0o140_000 => Kind::Special(FileType::Socket),
            0 | 0o100_000 => Kind::File(Content::default()),
            _ => return reply.error(Errno::EPERM),
        };
        self.made(parent, name, Node::new(kind, perm(mode), owner(request)), reply);
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
        let node = Node::new(Kind::Dir(Dir::default()), perm(mode), owner(request));
        self.made(parent, name, node, reply);
    }

    fn unlink(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.store().unlink(parent.0, name), reply);
    }

    fn rmdir(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEmpty) {
        answer(self.store().remove_dir(parent.0, name), reply);
    }

    fn symlink(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        target: &Path,
        reply: ReplyEntry,
    ) {
        let text = target.as_os_str().as_bytes().to_vec();
        self.made(parent, name, Node::new(Kind::Link(text), 0o777, owner(request)), reply);
    }

    fn rename(
        &self,
        _: &Request,
        parent: INodeNo,
        name: &OsStr,
        to: INodeNo,
        new: &OsStr,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        answer(self.store().rename((parent.0, name), (to.0, new), flags), reply);
    }

    fn link(&self, _: &Request, number: INodeNo, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let mut store = self.store();
        match store.link(number.0, parent.0, name) {
            Ok(()) => answer_entry(&store, number.0, reply),
            Err(error) => reply.error(error),
        }
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let store = self.store();
        let is_read = flags.acc_mode() == fuser::OpenAccMode::O_RDONLY;
        let may = if is_read { Ok(()) } else { store.faults.check_change(None) };
        match may.and_then(|()| store.node(number.0)) {
            Ok(_) => reply.opened(FileHandle(0), FopenFlags::empty()),
            Err(error) => reply.error(error),
        }
    }

    fn create(
        &self,
        request: &Request,
        parent: INodeNo,
        name: &OsStr,
        mode: u32,
        _: u32,
        _: i32,
        reply: ReplyCreate,
    ) {
        let node = Node::new(Kind::File(Content::default()), perm(mode), owner(request));
        let mut store = self.store();
        let made = store.make(parent.0, name, node);
        match made.and_then(|number| Ok(store.node(number)?.attr(number))) {
            Ok(attr) => {
                reply.created(&TTL, &attr, Generation(0), FileHandle(0), FopenFlags::empty());
            }
            Err(error) => reply.error(error),
        }
    }

    fn read(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.take_time(size as usize);
        match self.store().content(number.0) {
            Ok(content) => {
                let rest = usize::try_from(offset).ok().and_then(|at| content.now.get(at..));
                let rest = rest.unwrap_or_default();
                reply.data(&rest[..rest.len().min(size as usize)]);
            }
            Err(error) => reply.error(error),
        }
    }

    fn write(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        self.take_time(data.len());
        match self.store().write(number.0, offset, data) {
            // The kernel sends a megabyte at most.
            Ok(()) => reply.written(u32::try_from(data.len()).unwrap_or(0)),
            Err(error) => reply.error(error),
        }
    }

    fn flush(&self, _: &Request, number: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        answer(self.store().close(number.0), reply);
    }

    fn release(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        self.store().release(number.0);
        reply.ok();
    }

    fn fsync(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(self.store().sync(number.0), reply);
    }

    fn opendir(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let entries = match self.store().list(number.0) {
            Ok(entries) => entries,
            Err(error) => return reply.error(error),
        };
        let begin = usize::try_from(offset).unwrap_or(usize::MAX);
        for (index, (number, kind, name)) in entries.into_iter().enumerate().skip(begin) {
            if reply.add(INodeNo(number), index as u64 + 1, kind, name) {
                break;
            }
        }
        reply.ok();
    }

    fn fsyncdir(&self, _: &Request, number: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        answer(self.store().sync_dir(number.0), reply);
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        let blocks = 1 << 24;
        reply.statfs(blocks, blocks, blocks, blocks, blocks, BLOCK, NAME_MAX, BLOCK);
    }

    fn setxattr(
        &self,
        _: &Request,
        number: INodeNo,
        name: &OsStr,
        value: &[u8],
        _: i32,
        _: u32,
        reply: ReplyEmpty,
    ) {
        let mut store = self.store();
        let may = store.faults.check(Refused::Attributes);
        let done = may.and_then(|()| store.faults.check_change(None)).and_then(|()| {
            let node = store.node_mut(number.0)?;
            node.attributes.insert(name.to_owned(), value.to_vec());
            Ok(())
        });
        answer(done, reply);
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let store = self.store();
        let may = store.faults.check(Refused::Attributes);
        let value =
            may.and_then(|()| store.node(number.0)?.attributes.get(name).ok_or(Errno::NO_XATTR));
        match value {
            Ok(value) => answer_attribute(value, size, reply),
            Err(error) => reply.error(error),
        }
    }

    fn listxattr(&self, _: &Request, number: INodeNo, size: u32, reply: ReplyXattr) {
        let store = self.store();
        let may = store.faults.check(Refused::Attributes);
        match may.and_then(|()| store.node(number.0)) {
            Ok(node) => {
                let names = node.attributes.keys().flat_map(|name| [name.as_bytes(), b"\0"]);
                answer_attribute(&names.collect::<Vec<_>>().concat(), size, reply);
            }
            Err(error) => reply.error(error),
        }
    }
}
