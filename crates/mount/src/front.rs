//! What the kernel asks, as FUSE sends it (fuse(4)), and the answers.
//!
//! A thread that reads the kernel's requests never waits for the network: an answer that is not here is sent later, by
//! the thread that hears the server.

use crate::ask::What;
use crate::attributes::{attributes, file_type};
use crate::core::{Core, Handle, errno};
use crate::nodes::{Node, ROOT, rest};
use crate::status::{PID_ATTRIBUTE, STATUS_ATTRIBUTE, status};
use fuser::{
    Errno, FileHandle, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenAccMode, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus,
    ReplyEmpty, ReplyEntry, ReplyOpen, ReplyStatfs, ReplyXattr, Request,
};
use hikyaku_fs::Name;
use hikyaku_read_ahead::{BLOCK_BYTES, Class, Reader};
use hikyaku_store::{ErrorKind, Kind, StorePath};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The file system as the kernel sees it.
pub(crate) struct Front(pub(crate) Arc<Core>);

/// The kernel does not use a number twice while it knows the first one.
const GENERATION: Generation = Generation(0);
/// Requests that the kernel may have under way for pages ahead.
const BACKGROUND_MAX: u16 = 256;
/// The number of an entry of which only the name is told.
const UNKNOWN: INodeNo = INodeNo(0xffff_ffff);
/// The longest name.
const NAME_BYTES_MAX: usize = 255;

impl Filesystem for Front {
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        for flag in [
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

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let core = &self.0;
        let dir = core.state().nodes.at(parent.0).map(|node| node.path.clone());
        let Some(dir) = dir else { return reply.error(Errno::ESTALE) };
        if name.len() > NAME_BYTES_MAX {
            return reply.error(Errno::ENAMETOOLONG);
        }
        let path = Name::new(name.as_bytes()).ok().and_then(|name| dir.join(&name).ok());
        let Some(path) = path else { return reply.error(Errno::ENOENT) };
        match core.known(&path) {
            Some(Known::There(number)) => core.reply_entry(number, reply),
            Some(Known::Absent(time)) => negative(reply, time),
            None => {
                core.list_once(&dir);
                let found = core.clone();
                core.look(path.clone(), move |seen| match seen {
                    Ok(seen) => {
                        let number = found.state().observe(&path, seen);
                        found.reply_entry(number, reply);
                    }
                    Err(ErrorKind::NotFound) => {
                        found.state().observe_absent(&path);
                        negative(reply, found.settings.attr_ttl);
                    }
                    Err(kind) => reply.error(errno(kind)),
                });
            }
        }
    }

    fn forget(&self, _: &Request, number: INodeNo, times: u64) {
        let mut state = self.0.state();
        if let Some(content) = state.nodes.forget(number.0, times) {
            state.pages.drop_content(content);
        }
    }

    fn getattr(&self, _: &Request, number: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        let (core, now) = (&self.0, Instant::now());
        let Some(path) = core.usable(number.0) else { return reply.error(Errno::ESTALE) };
        let mut state = core.state();
        let is_fresh = |node: &Node| node.fresh(core.settings.attr_ttl, now).is_some();
        if !state.nodes.at(number.0).is_some_and(is_fresh)
            && let Some(seen) = state.listed(&path, core.settings.attr_ttl, now)
        {
            state.observe(&path, seen);
        }
        let answer = |node: &Node, reply: ReplyAttr, time: Duration| {
            reply.attr(&time, &attributes(number.0, &node.found, core.settings.owner));
        };
        match state.nodes.at(number.0).map(|node| (node, node.fresh(core.settings.attr_ttl, now))) {
            Some((node, Some(time))) => answer(node, reply, time),
            _ => {
                drop(state);
                let found = core.clone();
                core.look(path.clone(), move |seen| {
                    let (core, number) = (found, number.0);
                    match seen {
                        Ok(seen) => {
                            let mut state = core.state();
                            let is_same = state.observe(&path, seen) == number;
                            match state.nodes.at(number).filter(|_| is_same) {
                                Some(node) => {
                                    let owner = core.settings.owner;
                                    let attributes = attributes(number, &node.found, owner);
                                    reply.attr(&core.settings.attr_ttl, &attributes);
                                }
                                None => reply.error(Errno::ESTALE),
                            }
                        }
                        Err(ErrorKind::NotFound) => {
                            core.state().observe_absent(&path);
                            reply.error(Errno::ESTALE);
                        }
                        Err(kind) => reply.error(errno(kind)),
                    }
                });
            }
        }
    }

    fn readlink(&self, _: &Request, number: INodeNo, reply: ReplyData) {
        let core = &self.0;
        let state = core.state();
        let Some(node) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        if let Some(text) = &node.link {
            return reply.data(text);
        }
        let path = node.path.clone();
        drop(state);
        let found = core.clone();
        let done = move |text: Result<Vec<u8>, ErrorKind>| match text {
            Ok(text) => {
                reply.data(&text);
                if let Some(node) = found.state().nodes.at_mut(number.0) {
                    node.link = Some(text);
                }
            }
            Err(kind) => reply.error(errno(kind)),
        };
        core.ask(What::ReadLink(path, Box::new(done)));
    }

    fn open(&self, _: &Request, number: INodeNo, flags: OpenFlags, reply: ReplyOpen) {
        let core = &self.0;
        if flags.acc_mode() != OpenAccMode::O_RDONLY {
            return reply.error(Errno::EROFS);
        }
        let Some(path) = core.usable(number.0) else { return reply.error(Errno::ESTALE) };
        // Whoever opens sees what others have closed: the server is asked at each open, and the first bytes come along.
        core.begin(number.0);
        let found = core.clone();
        core.look(path.clone(), move |seen| {
            let core = found;
            match seen {
                Ok(seen) => {
                    let is_same = core.state().observe(&path, seen) == number.0;
                    match is_same.then(|| core.open(number.0, flags)).flatten() {
                        Some((handle, flags)) => reply.opened(FileHandle(handle), flags),
                        // The kernel looks the name up again.
                        None => reply.error(Errno::ESTALE),
                    }
                }
                Err(ErrorKind::NotFound) => {
                    core.state().observe_absent(&path);
                    reply.error(Errno::ENOENT);
                }
                Err(kind) => reply.error(errno(kind)),
            }
        });
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let on_bytes = move |bytes: Result<&[u8], Errno>| match bytes {
            Ok(bytes) => reply.data(bytes),
            Err(errno) => reply.error(errno),
        };
        self.0.read(handle.0, (offset, size), Box::new(on_bytes));
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn release(
        &self,
        _: &Request,
        _: INodeNo,
        handle: FileHandle,
        _: OpenFlags,
        _: Option<LockOwner>,
        _: bool,
        reply: ReplyEmpty,
    ) {
        reply.ok();
        self.0.close(handle.0);
    }

    fn opendir(&self, _: &Request, number: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        let core = &self.0;
        let path = core.state().nodes.at(number.0).map(|node| node.path.clone());
        let Some(path) = path else { return reply.error(Errno::ESTALE) };
        core.list_siblings(&path);
        let found = core.clone();
        core.list(&path, move |listing| match listing {
            Ok(listing) => {
                let mut state = found.state();
                let handle = state.next();
                state.dirs.insert(handle, listing);
                drop(state);
                reply.opened(FileHandle(handle), FopenFlags::empty());
            }
            Err(kind) => reply.error(errno(kind)),
        });
    }

    fn readdir(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        let listing = self.0.state().dirs.get(&handle.0).cloned();
        let Some(listing) = listing else { return reply.error(Errno::EBADF) };
        for (at, name) in [(0, "."), (1, "..")] {
            if offset <= at && reply.add(number, at + 1, fuser::FileType::Directory, name) {
                return reply.ok();
            }
        }
        let from = offset.saturating_sub(2) as usize;
        for (at, item) in listing.entries().iter().enumerate().skip(from) {
            let kind = file_type(item.found.kind);
            if reply.add(UNKNOWN, at as u64 + 3, kind, item.name.as_os_str()) {
                break;
            }
        }
        reply.ok();
    }

    fn readdirplus(
        &self,
        _: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let (core, now) = (&self.0, Instant::now());
        let mut state = core.state();
        let Some(listing) = state.dirs.get(&handle.0).cloned() else {
            return reply.error(Errno::EBADF);
        };
        let Some(dir) = state.nodes.at(number.0) else { return reply.error(Errno::ESTALE) };
        let (path, found, owner) = (dir.path.clone(), dir.found, core.settings.owner);
        let time = rest(listing.asked, core.settings.attr_ttl, now).unwrap_or_default();
        for (at, name) in [(0, "."), (1, "..")] {
            let itself = attributes(number.0, &found, owner);
            if offset <= at && reply.add(number, at + 1, name, &time, &itself, GENERATION) {
                drop(state);
                return reply.ok();
            }
        }
        let from = offset.saturating_sub(2) as usize;
        for (at, item) in listing.entries().iter().enumerate().skip(from) {
            let Ok(path) = path.join(&item.name) else { continue };
            let child = state.observe(&path, item.seen(listing.asked));
            let Some(node) = state.nodes.at(child) else { continue };
            let attributes = attributes(child, &node.found, owner);
            let name = item.name.as_os_str();
            if reply.add(INodeNo(child), at as u64 + 3, name, &time, &attributes, GENERATION) {
                state.nodes.prune(child);
                break;
            }
            state.nodes.look_up(child);
        }
        drop(state);
        reply.ok();
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

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        const UNIT: u32 = 4096;
        let done = move |space: Result<hikyaku_store::Space, ErrorKind>| match space {
            Ok(space) => {
                let [total, free] = [space.total, space.free].map(|bytes| bytes / u64::from(UNIT));
                let files = space.files.unwrap_or(0);
                let name = NAME_BYTES_MAX as u32;
                reply.statfs(total, free, free, files, files, UNIT, name, UNIT);
            }
            Err(kind) => reply.error(errno(kind)),
        };
        self.0.ask(What::Space(Box::new(done)));
    }

    fn getxattr(&self, _: &Request, number: INodeNo, name: &OsStr, size: u32, reply: ReplyXattr) {
        let value = match name.as_bytes() {
            PID_ATTRIBUTE if number.0 == ROOT => std::process::id().to_string(),
            STATUS_ATTRIBUTE if number.0 == ROOT => status(&self.0),
            [b'u', b's', b'e', b'r', b'.', ..] => return reply.error(Errno::NO_XATTR),
            // ls(1) asks for those of each file, unless it hears this once. ENOSYS would end all such questions, those
            // above as well.
            _ => return reply.error(Errno::EOPNOTSUPP),
        };
        match size {
            0 => reply.size(value.len() as u32),
            room if room < value.len() as u32 => reply.error(Errno::ERANGE),
            _ => reply.data(value.as_bytes()),
        }
    }

    fn listxattr(&self, _: &Request, _: INodeNo, size: u32, reply: ReplyXattr) {
        if size == 0 { reply.size(0) } else { reply.data(&[]) }
    }
}

/// What is known of a name without a question to the server.
enum Known {
    There(u64),
    Absent(Duration),
}

impl Core {
    /// What may still be used of what is known of a path.
    fn known(&self, path: &StorePath) -> Option<Known> {
        let (limit, now) = (self.settings.attr_ttl, Instant::now());
        let mut state = self.state();
        match state.nodes.of_path(path) {
            Some((number, node)) if node.fresh(limit, now).is_some() => {
                return Some(Known::There(number));
            }
            Some((_, node)) if node.is_doubted => return None,
            _ => {}
        }
        let (dir, name) = path.split()?;
        let listing = state.listings.of(&dir)?.clone();
        let time = listing.fresh(limit, now)?;
        match listing.find(name.as_bytes()) {
            Some(item) => Some(Known::There(state.observe(path, item.seen(listing.asked)))),
            None => Some(Known::Absent(time)),
        }
    }

    /// The path of a node, unless it has another file by now.
    fn usable(&self, number: u64) -> Option<StorePath> {
        let mut state = self.state();
        let node = state.nodes.at(number)?;
        let (path, is_stale) = (node.path.clone(), node.is_stale);
        if is_stale {
            state.nodes.doubt(&path);
            return None;
        }
        Some(path)
    }

    /// Tells the kernel of a node.
    fn reply_entry(&self, number: u64, reply: ReplyEntry) {
        let mut state = self.state();
        state.nodes.look_up(number);
        let Some(node) = state.nodes.at(number) else { return reply.error(Errno::ESTALE) };
        let time = node.fresh(self.settings.attr_ttl, Instant::now()).unwrap_or_default();
        reply.entry(&time, &attributes(number, &node.found, self.settings.owner), GENERATION);
    }

    /// Asks for the first bytes of a file that is being opened.
    fn begin(self: &Arc<Self>, number: u64) {
        let mut state = self.state();
        let portion = state.pace.window().portion;
        let Some((content, size)) =
            state.nodes.at(number).map(|node| (node.content, node.found.size))
        else {
            return;
        };
        let blocks = 0..size.div_ceil(BLOCK_BYTES).min(2);
        let absent = state.pages.ask(content, blocks, Class::Ahead);
        let fetches = state
            .nodes
            .at(number)
            .map(|node| crate::fetch::plan(number, node, &absent, Class::Ahead, portion));
        state.pace_outstanding(self.now());
        drop(state);
        fetches.into_iter().flatten().for_each(|fetch| self.fetch(fetch));
    }

    /// A handle of a node, and what the kernel is to do with its pages.
    fn open(&self, number: u64, flags: OpenFlags) -> Option<(u64, FopenFlags)> {
        let mut state = self.state();
        let node = state.nodes.at_mut(number)?;
        if node.found.kind != Kind::File {
            return None;
        }
        let is_cached = node.cached == Some(node.content);
        node.cached = Some(node.content);
        node.opens += 1;
        let reader = Reader::new(node.found.size);
        let handle = state.next();
        state.handles.insert(handle, Handle { number, reader });
        let mut answer = FopenFlags::FOPEN_NOFLUSH;
        if is_cached {
            answer |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        if rustix::fs::OFlags::from_bits_retain(flags.0 as u32).contains(rustix::fs::OFlags::DIRECT)
        {
            answer |= FopenFlags::FOPEN_DIRECT_IO;
        }
        Some((handle, answer))
    }

    /// A handle is closed.
    fn close(&self, handle: u64) {
        let mut state = self.state();
        let Some(Handle { number, .. }) = state.handles.remove(&handle) else { return };
        let Some(node) = state.nodes.at_mut(number) else { return };
        node.opens -= 1;
        let (is_last, content) = (node.opens == 0, node.content);
        if let Some(content) = state.nodes.prune(number) {
            state.pages.drop_content(content);
        }
        drop(state);
        if is_last {
            self.abandon(content);
        }
    }

    /// A name in a directory is looked up: all of them may be wanted soon.
    fn list_once(self: &Arc<Self>, dir: &StorePath) {
        /// A directory with more entries is not listed for one name.
        const ENTRIES_MAX: usize = 20_000;
        let state = self.state();
        let is_large = state.listings.of(dir).is_some_and(|old| old.entries().len() > ENTRIES_MAX);
        drop(state);
        if !is_large {
            self.list_ahead(dir);
        }
    }

    /// Asks for the listings of the directories that a program which lists a tree opens next.
    fn list_siblings(self: &Arc<Self>, dir: &StorePath) {
        let times = (self.settings.attr_ttl, Instant::now());
        let ahead = {
            let mut state = self.state();
            let state = &mut *state;
            let lists = &state.lists;
            state.listings.open(dir, times, |path| lists.contains(path))
        };
        ahead.iter().for_each(|path| self.list_ahead(path));
    }
}

/// There is no such name, and the kernel may remember that for `time`.
fn negative(reply: ReplyEntry, time: Duration) {
    reply.entry(&time, &crate::attributes::NOTHING, GENERATION);
}
