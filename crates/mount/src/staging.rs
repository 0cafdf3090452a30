//! Writes of a mount with `--stage`: a program goes on when this machine has them, and the server gets them later.

use crate::ask::What;
use crate::core::{Core, errno};
use crate::refused::{may_pass, words};
use crate::stage::{Confirmed, Stage, Target};
use crate::unconfirmed::{Sent, Write};
use bytes::Bytes;
use fuser::Errno;
use hikyaku_remote::{Edit, SMALL_BYTES_MAX};
use hikyaku_store::{ErrorKind, StorePath};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Instant;

impl Core {
    /// Puts a write into the journal, and among those that are sent.
    pub(crate) fn write_staged(
        self: &Arc<Self>,
        stage: &Stage,
        handle: u64,
        (offset, bytes): (u64, Bytes),
    ) -> Result<u32, Errno> {
        let _order = stage.order();
        let mut state = self.state();
        let number = state.writable(handle)?;
        let node = state.nodes.at(number).ok_or(Errno::ESTALE)?;
        let found = &node.found;
        let target = Target {
            file: number,
            path: node.path.as_bytes().to_vec(),
            identity: found.identity,
            base: (!node.is_own()).then_some((found.size, found.modified)),
            size: found.size,
        };
        drop(state);
        let mut places = Vec::new();
        for from in (0..bytes.len()).step_by(SMALL_BYTES_MAX as usize) {
            let part = &bytes[from..bytes.len().min(from + SMALL_BYTES_MAX as usize)];
            let at = offset + from as u64;
            match stage.append(&target, at, part) {
                Ok(place) => places.push((at, place)),
                // The part in the journal counts as written: write(2) may write a part.
                Err(_) if !places.is_empty() => break,
                Err(error) => return Err(told(&error)),
            }
        }
        let length: u32 = places.iter().map(|(_, place)| place.length).sum();
        let mut state = self.state();
        let end = offset.saturating_add(length.into());
        if let Some(old) = state.nodes.write(number, end, crate::write::now()) {
            state.pages.drop_content(old);
        }
        let mut ids = Vec::new();
        for (at, place) in places {
            let id = state.next();
            state.writes.insert(id, Write { node: number, sent: Sent::Staged { at, place } });
            if let Some(node) = state.nodes.at_mut(number) {
                node.unconfirmed += 1;
                node.staged += 1;
                node.journaled += 1;
            }
            ids.push(id);
        }
        state.totals.written_bytes += u64::from(length);
        self.outbox.put(ids);
        let forgotten = state.forgotten(Some(number));
        drop(state);
        self.take_up(forgotten);
        Ok(length)
    }

    /// Whether the journal has all that was written through a handle and the server has not confirmed. The error is one that
    /// no call through the handle has returned.
    pub(crate) fn is_staged(&self, handle: u64) -> Option<Result<StorePath, Errno>> {
        self.stage.as_ref()?;
        let mut state = self.state();
        let open = state.handles.get_mut(&handle)?;
        let (number, error) = (open.number, open.error);
        let node = state.nodes.at(number).filter(|node| node.unconfirmed == node.staged)?;
        let path = node.path.clone();
        match error {
            None => Some(Ok(path)),
            Some(error) => {
                state.handles.get_mut(&handle)?.error = None;
                Some(Err(error))
            }
        }
    }

    /// Calls `done` when nothing of these paths is in the journal.
    pub(crate) fn after_staged(
        self: &Arc<Self>,
        paths: &[&StorePath],
        done: impl FnOnce(Result<(), Errno>) + Send + 'static,
    ) {
        let Some(stage) = &self.stage else { return done(Ok(())) };
        let refused = self.state().refused_because();
        if let Some(kind) = refused
            && paths.iter().any(|path| stage.has(path))
        {
            return done(Err(errno(kind)));
        }
        stage.after(paths.iter().map(|&path| path.clone()).collect(), done);
        self.tend_stage();
    }

    /// A write is confirmed, or refused: then its bytes are kept aside.
    pub(crate) fn on_staged(
        self: &Arc<Self>,
        path: Option<&StorePath>,
        write: Confirmed,
        error: Option<Errno>,
    ) {
        let Some(stage) = &self.stage else { return };
        let Some(error) = error else {
            stage.confirmed(write);
            return self.tend_stage();
        };
        if let Some(path) = path {
            let why = words(error);
            let kept = stage.read(write.place).and_then(|bytes| {
                let mut aside = stage.aside();
                aside.keep(path, &why, (write.at, &bytes))?;
                aside.sync()
            });
            // The segment stays, so that the next mount tries again.
            if kept.is_err() {
                return;
            }
        }
        stage.kept_aside(write.place);
        self.left_journal(&[write]);
        self.tend_stage();
    }

    /// A new connection exists. Writes that the server has confirmed over the previous one are sent once more, unless they are
    /// on the server's disk.
    pub(crate) fn doubt_staged(&self) {
        let Some(stage) = &self.stage else { return };
        // No write goes into the journal between.
        let _order = stage.order();
        let doubted = stage.doubt();
        let mut state = self.state();
        for Confirmed { id, node, at, place } in doubted {
            state.writes.insert(id, Write { node, sent: Sent::Staged { at, place } });
            if let Some(node) = state.nodes.at_mut(node) {
                node.unconfirmed += 1;
                node.staged += 1;
            }
        }
    }

    /// Writes are not in the journal any more.
    fn left_journal(&self, writes: &[Confirmed]) {
        let mut state = self.state();
        for write in writes {
            let Some(node) = state.nodes.at_mut(write.node) else { continue };
            node.journaled -= 1;
            if let Some(content) = state.nodes.prune_left(write.node) {
                state.pages.drop_content(content);
            }
        }
    }

    /// Has the server sync the files of the oldest segment, if it has all of its writes, and removes the segment then.
    pub(crate) fn tend_stage(self: &Arc<Self>) {
        let Some(stage) = &self.stage else { return };
        let Some((segment, paths)) = stage.ready() else { return };
        let release = Arc::new(Release {
            core: self.clone(),
            segment,
            left: AtomicUsize::new(paths.len().max(1)),
            is_late: AtomicBool::new(false),
        });
        if paths.is_empty() {
            return release.synced(Ok(()));
        }
        for path in paths {
            let (release, synced) = (release.clone(), path.clone());
            let synced = move |answer: Result<_, ErrorKind>| {
                release.synced(answer.map(drop).map_err(|kind| (synced, kind)));
            };
            let edit = Edit::Sync { path: path.as_bytes().to_vec() };
            self.ask(What::Edit(edit, Box::new(synced)));
        }
    }

    /// Ends the waits for a server that is lost for too long.
    pub(crate) fn expire_stage(&self, now: Instant) {
        let Some(stage) = &self.stage else { return };
        let down = self.state().down;
        if down.is_some_and(|since| now.saturating_duration_since(since) >= self.settings.timeout) {
            stage.give_up(Errno::EIO);
        }
    }
}

/// A segment whose files are synced by the server.
struct Release {
    core: Arc<Core>,
    segment: u64,
    /// Files that are not synced.
    left: AtomicUsize,
    /// Whether the server was not there.
    is_late: AtomicBool,
}

impl Release {
    /// A file is synced, or cannot be.
    fn synced(&self, answer: Result<(), (StorePath, ErrorKind)>) {
        match answer {
            // A file that is gone has no bytes to sync.
            Ok(()) | Err((_, ErrorKind::NotFound)) => {}
            Err((_, ErrorKind::TimedOut | ErrorKind::Unreachable)) => {
                self.is_late.store(true, Ordering::Relaxed);
            }
            // Bytes in the server's memory may be lost, and are sent again.
            Err((_, kind)) if may_pass(kind) => {
                self.is_late.store(true, Ordering::Relaxed);
                self.core.hold_back(kind);
            }
            // Bytes in the server's memory may be lost.
            Err((path, kind)) => {
                let stage = self.core.stage.as_ref();
                let kept =
                    stage.map(|stage| stage.keep_aside(self.segment, &path, &kind.to_string()));
                if kept.is_none_or(|kept| kept.is_err()) {
                    self.is_late.store(true, Ordering::Relaxed);
                }
            }
        }
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        let Some(stage) = &self.core.stage else { return };
        if self.is_late.load(Ordering::Relaxed) {
            return stage.not_released(self.segment);
        }
        let (writes, calls) = stage.released(self.segment);
        self.core.left_journal(&writes);
        calls.into_iter().for_each(|call| call());
        self.core.tend_stage();
    }
}

/// The error number for an error of a disk of this machine.
fn told(error: &io::Error) -> Errno {
    error.raw_os_error().map_or(Errno::EIO, Errno::from_i32)
}
