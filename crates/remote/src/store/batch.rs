//! Many operations whose requests are sent without waiting for an answer, but that of an earlier operation on the same path.

use super::draft::{fits, taken};
use super::room::{MESSAGE_COST, Taken};
use super::{RemoteStore, bytes, changing, renaming};
use crate::error::RemoteError;
use crate::message::{Edit, NewFile, SMALL_BYTES_MAX};
use hikyaku_store::{Doing, ErrorKind, Found, Op, Put, Reply, Result, StorePath, do_one, doing};
use std::collections::{HashMap, VecDeque};
use std::sync::mpsc::{Sender, channel};

/// Requests under way: at 200 ms, 20,000 operations a second.
const UNDER_WAY_MAX: usize = 4096;

/// The number of an operation, and its result.
type Answer = (usize, std::result::Result<Reply, ErrorKind>);

/// See [`Store::batch`](hikyaku_store::Store::batch).
pub(super) fn run(store: &RemoteStore, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
    let (say, hear) = channel();
    let mut order = Order::new(ops);
    let mut under_way = 0;
    loop {
        while under_way < UNDER_WAY_MAX
            && let Some(index) = order.ready.pop_front()
        {
            let begun = match &ops[index] {
                Op::Put(put) => begin_put(store, put, under_way, (index, &say)),
                op => begin(store, op, (index, &say)),
            };
            match begun {
                Begun::Sent => under_way += 1,
                Begun::Full => {
                    order.ready.push_front(index);
                    break;
                }
                Begun::Refused(kind) => {
                    order.end(index);
                    each(index, about(&ops[index]).fail(kind));
                }
                Begun::Alone => {
                    let done = do_one(store, &ops[index]);
                    order.end(index);
                    each(index, done);
                }
            }
        }
        if under_way == 0 {
            return;
        }
        // A sender of the channel is here, so an answer comes: at the latest when the connection ends.
        let Ok((index, answer)) = hear.recv() else { return };
        under_way -= 1;
        order.end(index);
        each(index, about(&ops[index]).or(answer));
    }
}

/// The result of an attempt to send an operation.
enum Begun {
    /// Its answer will come.
    Sent,
    /// There is no room for its bytes until others are answered.
    Full,
    /// It is not possible at this server.
    Refused(ErrorKind),
    /// It is too large for one request.
    Alone,
}

impl<E: Into<ErrorKind>> From<std::result::Result<(), E>> for Begun {
    fn from(sent: std::result::Result<(), E>) -> Self {
        sent.map_or_else(|error| Self::Refused(error.into()), |()| Self::Sent)
    }
}

/// Sends an operation that has no content.
fn begin(store: &RemoteStore, op: &Op<'_>, (index, say): (usize, &Sender<Answer>)) -> Begun {
    let (client, say) = (store.client(), say.clone());
    let edit = match *op {
        Op::Look(path) => {
            client.look_then(path, tell(index, say, Reply::Found));
            return Begun::Sent;
        }
        Op::ReadLink(path) => {
            client.read_link_then(path, tell(index, say, Reply::Text));
            return Begun::Sent;
        }
        Op::MakeDir(path, mode) => Ok(Edit::MakeDir { path: bytes(path), mode }),
        Op::MakeLink(path, text) => Ok(Edit::MakeLink { path: bytes(path), text: text.to_vec() }),
        Op::Remove(path, kind) => Ok(Edit::Remove { path: bytes(path), kind }),
        Op::Rename(from, to, replace) => renaming(from, to, replace),
        Op::Change(path, change) => changing(path, change),
        Op::Put(_) => return Begun::Alone,
    };
    let sent = store.may_change().and(edit).map(|edit| {
        client.edit_then(edit, &[], tell(index, say, |_: Option<Found>| Reply::Done));
    });
    sent.into()
}

/// Sends a small file.
fn begin_put(
    store: &RemoteStore,
    put: &Put<'_>,
    under_way: usize,
    (index, say): (usize, &Sender<Answer>),
) -> Begun {
    let size = put.bytes.len() as u64;
    if size > SMALL_BYTES_MAX {
        // It waits for answers itself, after those that are under way.
        return if under_way > 0 { Begun::Full } else { Begun::Alone };
    }
    let checked = fits(put.finish).and_then(|()| taken(store.client(), put.naming));
    let (taken, uploads) = match (checked, store.may_upload()) {
        (Ok(taken), Ok(uploads)) => (taken, uploads),
        (Err(kind), _) | (_, Err(kind)) => return Begun::Refused(kind),
    };
    let (cost, room) = (size + MESSAGE_COST, store.room().clone());
    match under_way {
        // Other users of the store have all the room.
        0 => room.take(cost),
        _ if room.try_take(cost) == Taken::No => return Begun::Full,
        _ => {}
    }
    let (mode, modified) = (put.finish.mode, put.finish.modified);
    let file = NewFile { path: bytes(put.path), size, mode, modified, taken };
    let tell = tell(index, say.clone(), Reply::Found);
    uploads.small(file, put.bytes, move |named| {
        room.give_back(cost);
        tell(named);
    });
    Begun::Sent
}

/// A function for the answer to a request.
fn tell<T>(
    index: usize,
    say: Sender<Answer>,
    reply: impl FnOnce(T) -> Reply + Send + 'static,
) -> impl FnOnce(std::result::Result<T, RemoteError>) + Send + 'static {
    move |answer| {
        // The receiver lives until all answers have come.
        let _ = say.send((index, answer.map(reply).map_err(ErrorKind::from)));
    }
}

/// The operation and its path, for errors.
fn about<'a>(op: &Op<'a>) -> Doing<'a> {
    match *op {
        Op::Look(path) => doing("look at", path),
        Op::ReadLink(path) => doing("read the link", path),
        Op::MakeDir(path, _) => doing("make the directory", path),
        Op::MakeLink(path, _) => doing("make the link", path),
        Op::Remove(path, _) => doing("remove", path),
        Op::Rename(from, ..) => doing("rename", from),
        Op::Change(path, _) => doing("change", path),
        Op::Put(put) => doing("write", put.path),
    }
}

/// The order of operations: one begins when all earlier ones on its paths have ended.
struct Order {
    ready: VecDeque<usize>,
    /// Operations that each one waits for.
    waits: Vec<u8>,
    /// For each path of an operation, the next one on that path.
    next: Vec<[Option<usize>; 2]>,
}

impl Order {
    fn new(ops: &[Op<'_>]) -> Self {
        let (mut waits, mut next) = (vec![0; ops.len()], vec![[None; 2]; ops.len()]);
        let mut last: HashMap<&StorePath, (usize, usize)> = HashMap::new();
        for (index, op) in ops.iter().enumerate() {
            for (slot, path) in paths(op).into_iter().flatten().enumerate() {
                if let Some((before, of)) = last.insert(path, (index, slot)) {
                    next[before][of] = Some(index);
                    waits[index] += 1;
                }
            }
        }
        let ready = (0..ops.len()).filter(|index| waits[*index] == 0).collect();
        Self { ready, waits, next }
    }

    /// An operation has ended.
    fn end(&mut self, index: usize) {
        for next in self.next[index].into_iter().flatten() {
            self.waits[next] -= 1;
            if self.waits[next] == 0 {
                self.ready.push_back(next);
            }
        }
    }
}

/// The paths of an operation, which differ.
fn paths<'a>(op: &Op<'a>) -> [Option<&'a StorePath>; 2] {
    match *op {
        Op::Look(path)
        | Op::ReadLink(path)
        | Op::MakeDir(path, _)
        | Op::MakeLink(path, _)
        | Op::Remove(path, _)
        | Op::Change(path, _) => [Some(path), None],
        Op::Put(put) => [Some(put.path), None],
        Op::Rename(from, to, _) => [Some(from), Some(to).filter(|to| *to != from)],
    }
}
