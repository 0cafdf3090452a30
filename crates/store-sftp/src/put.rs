//! Small files, whole: the files of a group are opened together, then written, then named.

use crate::convert::{found, identity};
use crate::draft::{DRAFT_MODE, draft_mode, lent, metadata};
use crate::settle::Reached;
use crate::store::Sftp;
use hikyaku_sftp::{Answer, Asked, Attributes, Extension, Failed, Handle, Request};
use hikyaku_store::{
    ErrorKind, Found, Kind, Naming, Op, Owner, Put, Replace, Reply, Result, Time, do_one, doing,
};
use hikyaku_transfer::Durable;

/// A file whose draft is to be made.
#[derive(Clone)]
struct Ready<'a> {
    index: usize,
    put: Put<'a>,
    /// The server's paths of the draft and of the file.
    at: Vec<u8>,
    to: Vec<u8>,
    owner: Option<Attributes>,
    rest: Attributes,
    replace: Replace,
    look: Look,
    sync: Sync,
}

/// How a file is brought to the disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sync {
    /// It is not waited for.
    No,
    /// By a request of its own.
    Alone,
    /// With others, when it was written.
    Together,
}

/// Whether the server is asked for the metadata of the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    Due,
    /// They are known: the file belongs to the owner of other new files.
    Known,
}

type Done<T> = std::result::Result<T, ErrorKind>;

/// Creates files, and calls `each` for each of them.
pub(crate) fn put(
    store: &Sftp,
    puts: Vec<(usize, Put<'_>)>,
    each: &mut dyn FnMut(usize, Result<Reply>),
) {
    let is_lent = |(_, put): &(usize, Put<'_>)| lent(put.finish).is_some();
    let (alone, puts): (Vec<_>, Vec<_>) = puts.into_iter().partition(is_lent);
    for (index, put) in alone {
        each(index, do_one(store, &Op::Put(put)));
    }
    let (mut ready, owner) = (Vec::new(), &store.inner.owner);
    // Other groups wait until the first one has learnt the owner of new files.
    let first = owner.get().is_none().then(|| store.inner.first.lock());
    let _first = first.filter(|_| owner.get().is_none());
    for (index, put) in puts {
        // The owner of new files is asked for with the first one.
        let is_owner_known = owner.get().is_some() || !ready.is_empty();
        match Ready::new(store, index, put, is_owner_known) {
            Ok(one) => ready.push(one),
            Err(kind) => each(index, doing("create", put.path).fail(kind)),
        }
    }
    let mut open = Vec::new();
    for (one, handle) in opened(store, ready) {
        match handle {
            Ok(handle) => open.push((one, handle)),
            Err(kind) => each(one.index, doing("create", one.put.path).fail(kind)),
        }
    }
    let mut written_files = Vec::new();
    for (one, found) in written(store, open) {
        match found {
            Ok(found) => written_files.push((one, found)),
            Err(kind) => {
                one.remove(store);
                each(one.index, doing("write", one.put.path).fail(kind));
            }
        }
    }
    let written_files = settled(store, written_files, each);
    let client = &store.inner.client;
    let renames: Vec<_> = written_files
        .iter()
        .map(|(one, _)| store.renaming(&one.at, &one.to, one.replace))
        .collect();
    let answers = client.all(&renames);
    for ((one, found), renamed) in written_files.iter().zip(answers) {
        let named = renamed.done().map_err(|failed| {
            let why = store.why_not_named(one.put.path, Some(Kind::File), one.replace, &failed);
            one.remove(store);
            why
        });
        let reply = named.map(|()| Reply::Found(*found));
        each(one.index, doing("name", one.put.path).or(reply));
    }
}

/// Waits until the files are on the disk that are synced together. Returns those that can get their names.
fn settled<'a>(
    store: &Sftp,
    files: Vec<(Ready<'a>, Found)>,
    each: &mut dyn FnMut(usize, Result<Reply>),
) -> Vec<(Ready<'a>, Found)> {
    let is_due = |(one, _): &(Ready<'_>, Found)| one.sync == Sync::Together;
    let (due, mut kept): (Vec<_>, Vec<_>) = files.into_iter().partition(is_due);
    let dirs = due.iter().map(|(one, _)| dir_of(&one.to));
    let settling = store.settling(std::iter::empty()).filter(|_| !due.is_empty());
    if settling.is_none_or(|settling| settling.settle(dirs) == Reached::Disk) {
        kept.extend(due);
        return kept;
    }
    let paths: Vec<&[u8]> = due.iter().map(|(one, _)| &one.at[..]).collect();
    for ((one, found), synced) in due.iter().zip(synced(store, &paths)) {
        if let Err(failed) = synced {
            one.remove(store);
            let kind = store.why_not_written(&failed);
            each(one.index, doing("sync", one.put.path).fail(kind));
        } else {
            kept.push((one.clone(), *found));
        }
    }
    kept
}

/// Has the server sync files by their paths.
pub(crate) fn synced(store: &Sftp, paths: &[&[u8]]) -> Vec<Asked<()>> {
    let client = &store.inner.client;
    if !client.version().has(Extension::Sync) {
        return paths.iter().map(|_| Ok(())).collect();
    }
    let attributes = Attributes::default();
    let opens = paths.iter().map(|path| Request::Open { path, flags: Request::READ, attributes });
    let opened = client.all(&opens.collect::<Vec<_>>());
    let opened: Vec<Asked<Handle>> = opened.into_iter().map(Answer::handle).collect();
    let handles = opened.iter().filter_map(|handle| handle.as_ref().ok());
    let requests =
        handles.flat_map(|handle| [Request::Sync(handle.bytes()), Request::Close(handle.bytes())]);
    let mut answers = client.all(&requests.collect::<Vec<_>>()).into_iter().map(Answer::done);
    let mut next = || answers.next().unwrap_or(Err(Failed::Odd));
    let done = |handle: &Asked<Handle>| {
        handle.as_ref().map_err(Clone::clone)?;
        let (synced, closed) = (next(), next());
        synced.and(closed)
    };
    opened.iter().map(done).collect()
}

/// The directory of a path of the server.
pub(crate) fn dir_of(path: &[u8]) -> Vec<u8> {
    let end = path.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    path[..end.max(1)].to_vec()
}

impl<'a> Ready<'a> {
    fn new(store: &Sftp, index: usize, put: Put<'a>, is_owner_known: bool) -> Done<Self> {
        let (owner, rest) = metadata(put.finish)?;
        let replace = match put.naming {
            Naming::Replace => Replace::Allowed,
            Naming::IfAbsent => Replace::Never,
            // The protocol has no versions: none equals the wanted one.
            Naming::IfVersion(_) => return Err(ErrorKind::Changed),
        };
        let (_, partial) = store.partial(put.path)?;
        let is_set = rest.times.is_some() && rest.mode.is_some();
        let is_known = is_set && (owner.is_some() || is_owner_known);
        let look = if is_known { Look::Known } else { Look::Due };
        let (at, to) = (store.at(&partial), store.at(put.path));
        let sync = match put.durable {
            Durable::Cache => Sync::No,
            Durable::Disk if store.settling([&to[..]].into_iter()).is_some() => Sync::Together,
            Durable::Disk if store.inner.client.version().has(Extension::Sync) => Sync::Alone,
            Durable::Disk => Sync::No,
        };
        Ok(Self { index, put, at, to, owner, rest, replace, look, sync })
    }

    /// The requests from the first byte to the closed handle.
    fn requests<'b>(&'b self, store: &Sftp, handle: &'b Handle) -> Vec<Request<'b>> {
        let (handle, block) = (handle.bytes(), store.block().write);
        let pieces = (0..).zip(self.put.bytes.chunks(block)).map(|(number, data)| {
            let offset = number * block as u64;
            Request::Write { handle, offset, data }
        });
        let others = [
            self.owner.map(|owner| Request::FSetStat(handle, owner)),
            (self.rest != Attributes::default()).then_some(Request::FSetStat(handle, self.rest)),
            (self.sync == Sync::Alone).then_some(Request::Sync(handle)),
            Some(Request::Close(handle)),
            (self.look == Look::Due).then_some(Request::LStat(&self.at)),
        ];
        pieces.chain(others.into_iter().flatten()).collect()
    }

    /// The metadata that the file was given.
    fn found(&self, owner: Owner) -> Found {
        let size = self.put.bytes.len() as u64;
        Found {
            kind: Kind::File,
            size,
            allocated: size,
            mode: self.rest.mode.unwrap_or(DRAFT_MODE),
            owner: self.put.finish.owner.unwrap_or(owner),
            modified: Time { nanos: 0, ..self.put.finish.modified.unwrap_or_default() },
            identity: identity(self.put.path),
            version: None,
        }
    }

    fn remove(&self, store: &Sftp) {
        // A draft that cannot be removed is a leftover.
        let _ = store.inner.client.done(&Request::Remove(&self.at));
    }
}

/// Creates the drafts.
fn opened<'a>(store: &Sftp, files: Vec<Ready<'a>>) -> Vec<(Ready<'a>, Done<Handle>)> {
    let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
    let opens = files.iter().map(|one| {
        let mode = Some(draft_mode(one.put.finish.made));
        Request::Open {
            path: &one.at,
            flags,
            attributes: Attributes { mode, ..Attributes::default() },
        }
    });
    let opens: Vec<_> = opens.collect();
    let answers: Vec<_> = store.inner.client.all(&opens).into_iter().map(Answer::handle).collect();
    let opened = files.into_iter().zip(answers).map(|(one, handle)| {
        let handle = handle.map_err(|failed| store.why_no_draft(one.put.path, &failed));
        (one, handle)
    });
    opened.collect()
}

/// Writes the drafts and closes them. Returns their metadata.
fn written<'a>(store: &Sftp, files: Vec<(Ready<'a>, Handle)>) -> Vec<(Ready<'a>, Done<Found>)> {
    let requests: Vec<Vec<_>> =
        files.iter().map(|(one, handle)| one.requests(store, handle)).collect();
    let all: Vec<_> = requests.iter().flatten().copied().collect();
    let counts: Vec<_> = requests.iter().map(Vec::len).collect();
    let mut answers = store.inner.client.all(&all).into_iter();
    let mut heard = Vec::new();
    for ((one, _), count) in files.iter().zip(counts) {
        let mut own: Vec<_> = answers.by_ref().take(count).collect();
        let looked = match one.look {
            Look::Due => own.pop().map(Answer::attributes),
            Look::Known => None,
        };
        // All answers are read, also after a failure.
        let done: Vec<_> = own.into_iter().map(Answer::done).collect();
        let done: std::result::Result<(), Failed> = done.into_iter().collect();
        let looked = looked.transpose();
        let heard_of = done.and(looked).map_err(|failed| store.why_not_written(&failed));
        if let Ok(Some(Attributes { owner: Some((user, group)), .. })) = heard_of {
            store.inner.owner.get_or_init(|| Owner { user, group });
        }
        heard.push(heard_of);
    }
    let owner = store.inner.owner.get().copied().unwrap_or_default();
    let found = files.into_iter().zip(heard).map(|((one, _), heard)| {
        let found = heard.and_then(|attributes| match attributes {
            Some(attributes) => {
                let secs = one.put.finish.modified.map(|time| time.secs);
                found(one.put.path, &attributes, secs).ok_or(ErrorKind::Unexplained)
            }
            None => Ok(one.found(owner)),
        });
        (one, found)
    });
    found.collect()
}
