//! Many independent operations on names and small files in one call, so that a store behind a long path sends them together.

use crate::error::Result;
use crate::found::{Found, Kind};
use crate::path::StorePath;
use crate::store::{Change, Finish, Make, Naming, Replace, Store};
use hikyaku_transfer::Durable;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread;

/// One operation of a batch.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// [`Store::look`].
    Look(&'a StorePath),
    /// [`Store::read_link`].
    ReadLink(&'a StorePath),
    /// [`Store::make_dir`] with these permission bits.
    MakeDir(&'a StorePath, u32),
    /// [`Store::make_link`] with this text.
    MakeLink(&'a StorePath, &'a [u8]),
    /// [`Store::remove`].
    Remove(&'a StorePath, Kind),
    /// [`Store::rename`] of the first path to the second.
    Rename(&'a StorePath, &'a StorePath, Replace),
    /// [`Store::change`].
    Change(&'a StorePath, &'a Change),
    /// A small file, whole.
    Put(Put<'a>),
}

/// A small file that is created whole.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// Its path.
    pub path: &'a StorePath,
    /// Its content.
    pub bytes: &'a [u8],
    /// The treatment of an existing file of the name.
    pub naming: Naming,
    /// Its metadata.
    pub finish: &'a Finish,
    /// Whether the content is on the disk before the file gets its name. The name itself is durable after [`Store::sync`] of
    /// the directory, or with the file where a store has no other way.
    pub durable: Durable,
}

/// The result of one operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// The operation succeeded and has no other result.
    Done,
    /// The metadata: of [`Op::Look`] and [`Op::Put`].
    Found(Found),
    /// The target of a link.
    Text(Vec<u8>),
}

/// Does one operation by itself: what [`Store::batch`] does by default with each.
///
/// # Errors
///
/// Those of the method that the operation names.
pub fn do_one(store: &(impl Store + ?Sized), op: &Op<'_>) -> Result<Reply> {
    match *op {
        Op::Look(path) => store.look(path).map(Reply::Found),
        Op::ReadLink(path) => store.read_link(path).map(Reply::Text),
        Op::MakeDir(path, mode) => store.make_dir(path, mode).map(|()| Reply::Done),
        Op::MakeLink(path, text) => store.make_link(path, text).map(|()| Reply::Done),
        Op::Remove(path, kind) => store.remove(path, kind).map(|()| Reply::Done),
        Op::Rename(from, to, replace) => store.rename(from, to, replace).map(|()| Reply::Done),
        Op::Change(path, change) => store.change(path, change).map(|()| Reply::Done),
        Op::Put(put) => {
            let size = put.bytes.len() as u64;
            let (modified, mode) = (put.finish.modified, put.finish.made);
            let make = Make { size: Some(size), data: None, modified, mode };
            let draft = store.create(put.path, &make)?;
            if size > 0 {
                draft.write_at(0, put.bytes)?;
            }
            draft.set_len(size)?;
            if put.durable == Durable::Disk {
                draft.sync()?;
            }
            draft.name(put.naming, put.finish).map(Reply::Found)
        }
    }
}

impl<'a> Op<'a> {
    /// The paths that it reads or changes.
    fn paths(&self) -> impl Iterator<Item = &'a StorePath> {
        let (first, second) = match *self {
            Self::Look(path)
            | Self::ReadLink(path)
            | Self::MakeDir(path, _)
            | Self::MakeLink(path, _)
            | Self::Remove(path, _)
            | Self::Change(path, _) => (path, None),
            Self::Put(put) => (put.path, None),
            Self::Rename(from, to, _) => (from, Some(to)),
        };
        [Some(first), second].into_iter().flatten()
    }
}

/// Divides operations into runs, in which no path occurs twice: the operations of a run may take effect in any order.
pub fn runs(ops: &[Op<'_>]) -> Vec<Range<usize>> {
    let (mut runs, mut start, mut seen) = (Vec::new(), 0, HashSet::new());
    for (index, op) in ops.iter().enumerate() {
        if op.paths().any(|path| seen.contains(path)) {
            runs.push(start..index);
            start = index;
            seen.clear();
        }
        seen.extend(op.paths());
    }
    if start < ops.len() {
        runs.push(start..ops.len());
    }
    runs
}

/// Does each operation of a run ([`runs`]) by itself, up to `threads_max` at once: the batch of a store of which each call
/// waits for an answer. `run` has the operations with their indices.
pub fn do_at_once(
    store: &(impl Store + ?Sized),
    run: &[(usize, Op<'_>)],
    threads_max: usize,
    each: &mut dyn FnMut(usize, Result<Reply>),
) {
    let threads = threads_max.min(run.len());
    if threads <= 1 {
        return run.iter().for_each(|(index, op)| each(*index, do_one(store, op)));
    }
    let next = AtomicUsize::new(0);
    let (done, results) = channel();
    thread::scope(|scope| {
        for _ in 0..threads {
            let (done, next) = (done.clone(), &next);
            scope.spawn(move || {
                while let Some((index, op)) = run.get(next.fetch_add(1, Ordering::Relaxed)) {
                    // The receiver outlives the threads.
                    let _ = done.send((*index, do_one(store, op)));
                }
            });
        }
        drop(done);
        results.iter().for_each(|(index, result)| each(index, result));
    });
}

#[cfg(test)]
mod tests;
