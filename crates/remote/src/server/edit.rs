//! Changes of the store.

use super::requests::store_path;
use super::{Session, Writes};
use crate::message::{Edit, Reply, SMALL_BYTES_MAX};
use hikyaku_store::{
    Access, Change, ErrorKind, Finish, Identity, Kind, Make, Naming, Replace, Result, StoreError,
    StorePath, SyncScope,
};
use std::sync::{Mutex, PoisonError};

/// Makes one change. `bytes` are those behind the message.
// spec: store-write-1
pub(super) fn edit(session: &Session, edit: &Edit, bytes: &[u8]) -> Result<Reply> {
    let store = &*session.store;
    let path = |path: &[u8]| {
        let path = store_path(path)?;
        writable(session, &path).map(|()| path)
    };
    let looked = |path: &StorePath| session.look(path).map(Reply::Looked);
    match edit {
        Edit::Write { path: at_path, identity, at, .. } => {
            let path = path(at_path)?;
            let error = |kind| StoreError::new("write", &path, kind);
            // spec: store-write-2
            if bytes.len() as u64 > SMALL_BYTES_MAX {
                return Err(error(ErrorKind::System(22)));
            }
            let open = session.open(&path, Access::Update)?;
            if open.found()?.identity != *identity {
                return Err(error(ErrorKind::Changed));
            }
            open.write_at(*at, bytes)?;
            Ok(Reply::Done)
        }
        Edit::Append { path: at_path, identity, .. } => {
            append(session, &path(at_path)?, *identity, bytes)
        }
        Edit::Create { path: at, mode } => {
            let path = path(at)?;
            let draft = store.create(&path, &Make::default())?;
            let finish = Finish { mode: Some(mode & MODE), ..Finish::default() };
            draft.name(Naming::IfAbsent, &finish).map(Reply::Looked)
        }
        Edit::SetLength { path: at, size } => {
            let path = path(at)?;
            session.open(&path, Access::Update)?.set_len(*size)?;
            looked(&path)
        }
        Edit::Change { path: at, mode, modified } => {
            let path = path(at)?;
            let mode = mode.map(|mode| mode & MODE);
            store.change(&path, &Change { mode, modified: *modified, ..Change::default() })?;
            looked(&path)
        }
        Edit::MakeDir { path: at, mode } => {
            let path = path(at)?;
            store.make_dir(&path, mode & MODE)?;
            looked(&path)
        }
        Edit::MakeLink { path: at, text } => {
            let path = path(at)?;
            store.make_link(&path, text)?;
            looked(&path)
        }
        Edit::Remove { path: at, kind } => {
            let path = path(at)?;
            match session.withdrawn.end(&path) {
                true => Ok(Reply::Done),
                false => store.remove(&path, *kind).map(|()| Reply::Done),
            }
        }
        Edit::Rename { from, to, replaces } => {
            let replace = if *replaces { Replace::Allowed } else { Replace::Never };
            let (from, to) = (path(from)?, path(to)?);
            store.rename(&from, &to, replace)?;
            session.withdrawn.moved(&from, &to);
            Ok(Reply::Done)
        }
        Edit::Sync { path: at } => sync(session, &path(at)?).map(|()| Reply::Done),
        Edit::Withdraw { path: at } => session.withdraw(&path(at)?).map(|()| Reply::Done),
    }
}

/// Refuses a change of a store that the client may only read.
pub(super) fn writable(session: &Session, path: &StorePath) -> Result<()> {
    match session.limits.writes {
        Writes::Allowed => Ok(()),
        Writes::Refused => Err(StoreError::new("change", path, ErrorKind::ReadOnly)),
    }
}

/// Permission bits that a client may set: no set-id bits, which would grant rights of others.
const MODE: u32 = 0o1777;

/// Writes behind the end of a file. One append at a time, so that none lands on another.
// spec: store-append-1
fn append(session: &Session, path: &StorePath, identity: Identity, bytes: &[u8]) -> Result<Reply> {
    static ONE: Mutex<()> = Mutex::new(());
    let error = |kind| StoreError::new("write", path, kind);
    if bytes.len() as u64 > SMALL_BYTES_MAX {
        return Err(error(ErrorKind::System(22)));
    }
    let open = session.open(path, Access::Update)?;
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let found = open.found()?;
    if found.identity != identity {
        return Err(error(ErrorKind::Changed));
    }
    open.write_at(found.size, bytes)?;
    open.found().map(Reply::Looked)
}

// spec: store-write-3
fn sync(session: &Session, path: &StorePath) -> Result<()> {
    match session.look(path)?.kind {
        Kind::File => session.open(path, Access::Update)?.sync(SyncScope::All)?,
        Kind::Dir => session.store.sync(std::slice::from_ref(path))?,
        Kind::Link | Kind::Special => {}
    }
    match path.split().filter(|_| !session.withdrawn.has(path)) {
        Some((dir, _)) => session.store.sync(&[dir]),
        None => Ok(()),
    }
}
