//! Files that are opened and closed.

use super::GENERATION;
use crate::answer::Slot;
use crate::attributes::attributes;
use crate::core::{Access, Core, Handle, Opens, Standing, State, errno};
use crate::fetch::plan;
use crate::locks::Locking;
use crate::nodes::{Company, Node};
use fuser::{
    Errno, FileHandle, FopenFlags, INodeNo, OpenAccMode, OpenFlags, ReplyCreate, ReplyOpen,
};
use hikyaku_read_ahead::{BLOCK_BYTES, Class, Reader};
use hikyaku_store::{ErrorKind, Kind};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::{Duration, Instant};

impl Core {
    /// Opens a file.
    pub(super) fn reply_open(
        self: &Arc<Self>,
        number: INodeNo,
        flags: OpenFlags,
        reply: Slot<ReplyOpen>,
    ) {
        let core = self;
        let access = access_of(flags);
        if access == Access::Write && core.settings.access == Access::Read {
            return reply.error(Errno::EROFS);
        }
        let mut state = core.state();
        let Some(path) = state.path_of(number.0) else {
            drop(state);
            return core.open_present(number, flags, reply);
        };
        // An open file has the contents that others have closed: each open is a request, whose answer has the first bytes.
        if let Some(errno) = state.nodes.at_mut(number.0).and_then(|node| node.lost.take()) {
            state.told_of(&path);
            drop(state);
            return reply.error(errno);
        }
        drop(state);
        core.begin(number.0);
        if core.is_trusted(number.0, access) {
            return core.reply_opened((number, Company::None), flags, reply);
        }
        let found = core.clone();
        core.look_node(number.0, move |looked| match looked {
            Ok(()) => found.reply_opened((number, Company::None), flags, reply),
            // The kernel looks the name up again, and makes the file if the program has asked for that.
            Err(ErrorKind::Gone) => found.open_present(number, flags, reply),
            Err(kind) => reply.error(errno(kind)),
        });
    }

    /// Opens a file whose name has another one by now, or none.
    fn open_present(self: &Arc<Self>, number: INodeNo, flags: OpenFlags, reply: Slot<ReplyOpen>) {
        let core = self.clone();
        self.with_present(number, reply, move |company, reply| {
            core.reply_opened((number, company), flags, reply);
        });
    }

    /// The answer to a program whose file was not made.
    pub(super) fn not_created(
        &self,
        (dir, name): (INodeNo, &OsStr),
        flags: OpenFlags,
        (thread, errno): (u32, Errno),
    ) -> Errno {
        let mut state = self.state();
        let path = state.path_of(dir.0).and_then(|dir| self.path_to_make(&dir, name).ok());
        match path {
            // Another client has made the file. The kernel looks the name up again and opens that file.
            Some(path) if errno.code() == Errno::EEXIST.code() && !is_exclusive(flags) => {
                state.begin_retry(thread, &path)
            }
            _ => errno,
        }
    }

    /// Opens a file that was made, and answers the kernel with both.
    pub(super) fn reply_created(
        self: &Arc<Self>,
        number: u64,
        flags: OpenFlags,
        reply: Slot<ReplyCreate>,
    ) {
        let mut state = self.state();
        let opened = state.open(number, flags, (reply.thread, self.settings.locking));
        let node = state.nodes.at(number);
        let is_told = match (opened, node) {
            (Some((handle, opened)), Some(node)) => {
                let attributes = attributes(number, &node.shown(), self.settings.owner);
                let time = self.settings.attr_ttl;
                reply.answer(|reply| {
                    reply.created(&time, &attributes, GENERATION, FileHandle(handle), opened);
                })
            }
            _ => {
                reply.error(Errno::ESTALE);
                false
            }
        };
        if !is_told {
            state.nodes.forget(number, 1);
            drop(state);
            opened.into_iter().for_each(|(handle, _)| self.close(handle));
        }
    }

    /// Opens a file with its known metadata, and answers the kernel. The file is closed if the program has ended meanwhile.
    /// Reads end at the known length.
    pub(super) fn reply_opened(
        self: &Arc<Self>,
        (number, company): (INodeNo, Company),
        flags: OpenFlags,
        reply: Slot<ReplyOpen>,
    ) {
        let mut state = self.state();
        // Another thread may have found the node while the server was asked.
        if let Some(path) = state.kept_from(reply.thread, number.0) {
            let errno = state.begin_retry(reply.thread, &path);
            drop(state);
            return reply.error(errno);
        }
        let opened = state.open(number.0, flags, (reply.thread, self.settings.locking));
        drop(state);
        let Some((handle, mut flags)) = opened else { return reply.error(Errno::ESTALE) };
        if company == Company::Others {
            // The pages of the kernel are those that the others have read.
            flags |= FopenFlags::FOPEN_DIRECT_IO;
        }
        self.kernel.drop_attributes(number.0);
        if !reply.opened(FileHandle(handle), flags) {
            self.close(handle);
        }
    }

    /// Whether a file may be opened as it is known.
    fn is_trusted(&self, number: u64, access: Access) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        if self.settings.opens == Opens::Trust && access == Access::Read {
            let fresh = |node: &Node| state.fresh(node, self.settings.attr_ttl, now).is_some();
            return state.nodes.at(number).is_some_and(fresh);
        }
        let is_leased =
            |state: &State| state.nodes.at(number).is_some_and(|node| state.is_leased(node, now));
        if is_leased(&state) {
            return true;
        }
        // An entry of a leased directory is as current as an answer of the server.
        let path =
            state.nodes.at(number).filter(|node| !node.is_own()).map(|node| node.path.clone());
        if let Some(path) = path
            && let Some(seen) = state.listed(&path, Duration::ZERO, now)
        {
            state.observe(&path, seen);
        }
        is_leased(&state)
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
        let fetches =
            state.nodes.at(number).map(|node| plan(number, node, &absent, Class::Ahead, portion));
        state.pace_outstanding(self.now());
        drop(state);
        fetches.into_iter().flatten().for_each(|fetch| self.fetch(fetch));
    }

    /// A handle is closed.
    pub(super) fn close(self: &Arc<Self>, handle: u64) {
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
            self.end_if_closed(number);
        }
    }
}

impl State {
    /// A handle of a node, and what the kernel is to do with its pages.
    fn open(
        &mut self,
        number: u64,
        flags: OpenFlags,
        (thread, locking): (u32, Locking),
    ) -> Option<(u64, FopenFlags)> {
        let node = self.nodes.at_mut(number)?;
        if node.found.kind != Kind::File {
            return None;
        }
        let is_cached = node.cached == Some(node.content);
        node.cached = Some(node.content);
        node.opens += 1;
        let reader = Reader::new(node.found.size);
        let handle = self.next();
        let access = access_of(flags);
        let standing = Standing::Present;
        let open = Handle { number, reader, access, thread, error: None, standing };
        self.handles.insert(handle, open);
        self.retries.end(thread);
        let mut answer = match access {
            // Locks are freed when a handle is flushed.
            Access::Read if locking == Locking::Local => FopenFlags::FOPEN_NOFLUSH,
            _ => FopenFlags::empty(),
        };
        if is_cached {
            answer |= FopenFlags::FOPEN_KEEP_CACHE;
        }
        // The kernel does not know where what is appended begins, so it keeps no pages of it.
        let is_direct = rustix::fs::OFlags::from_bits_retain(flags.0 as u32)
            .contains(rustix::fs::OFlags::DIRECT);
        if is_direct || (is_append(flags) && access == Access::Write) {
            answer |= FopenFlags::FOPEN_DIRECT_IO;
        }
        Some((handle, answer))
    }
}

fn access_of(flags: OpenFlags) -> Access {
    match flags.acc_mode() {
        OpenAccMode::O_RDONLY => Access::Read,
        _ => Access::Write,
    }
}

/// Whether a program wants a file of its own making only.
const fn is_exclusive(flags: OpenFlags) -> bool {
    rustix::fs::OFlags::from_bits_retain(flags.0 as u32).contains(rustix::fs::OFlags::EXCL)
}

/// Whether a file is open to append to it.
pub(super) const fn is_append(flags: OpenFlags) -> bool {
    rustix::fs::OFlags::from_bits_retain(flags.0 as u32).contains(rustix::fs::OFlags::APPEND)
}
