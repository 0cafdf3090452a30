//! Many independent operations on names and small files in one call, so that a store behind a long path sends them together.

use crate::error::Result;
use crate::found::{Found, Kind};
use crate::path::StorePath;
use crate::store::{Change, Finish, Make, Naming, Replace, Store};
use hikyaku_transfer::Durable;

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
            let make = Make { size: Some(size), modified: put.finish.modified };
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
