//! Many operations at once: the requests of one kind for all of them are sent together.

use crate::change::{Way, parts};
use crate::convert::{kind, reason};
use crate::put::put;
use crate::store::{Sftp, is_draft};
use hikyaku_sftp::{Answer, Attributes, Failed, Request};
use hikyaku_store::{
    Ability, Change, ErrorKind, Kind, Op, Put, Replace, Reply, Result, StorePath, doing, runs,
};

/// Handles of the server that a group takes.
const GROUP_HANDLES_MAX: usize = 128;
/// Operations of a group. Those that only look take no handle.
const GROUP_OPS_MAX: usize = 1024;
/// Bytes of the files of a group.
const GROUP_BYTES_MAX: usize = 2 << 20;

/// Does operations in groups. Within a group no path occurs twice, so that operations on one path keep their order.
pub(crate) fn run(store: &Sftp, ops: &[Op<'_>], each: &mut dyn FnMut(usize, Result<Reply>)) {
    for run in runs(ops) {
        let (mut begin, mut bytes, mut handles) = (run.start, 0, 0);
        for index in run.clone() {
            let size = if let Op::Put(put) = ops[index] { put.bytes.len() } else { 0 };
            let is_full = index - begin >= GROUP_OPS_MAX
                || handles >= GROUP_HANDLES_MAX
                || bytes + size > GROUP_BYTES_MAX;
            if is_full && index > begin {
                group(store, (begin, &ops[begin..index]), each);
                (begin, bytes, handles) = (index, 0, 0);
            }
            bytes += size;
            handles += usize::from(!matches!(ops[index], Op::Look(_)));
        }
        group(store, (begin, &ops[begin..run.end]), each);
    }
}

const fn path_of<'a>(op: &Op<'a>) -> &'a StorePath {
    match op {
        Op::Look(path)
        | Op::ReadLink(path)
        | Op::MakeDir(path, _)
        | Op::MakeLink(path, _)
        | Op::Remove(path, _)
        | Op::Rename(path, ..)
        | Op::Change(path, _)
        | Op::Put(Put { path, .. }) => path,
    }
}

const fn second_of<'a>(op: &Op<'a>) -> Option<&'a StorePath> {
    if let Op::Rename(_, to, _) = op { Some(to) } else { None }
}

/// The operation as a verb with its object.
const fn what(op: &Op<'_>) -> &'static str {
    match op {
        Op::Look(_) => "look at",
        Op::ReadLink(_) => "read the link",
        Op::MakeDir(..) => "make the directory",
        Op::MakeLink(..) => "make the link",
        Op::Remove(..) => "remove",
        Op::Rename(..) => "rename",
        Op::Change(..) => "change",
        Op::Put(_) => "create",
    }
}

/// An operation that has requests.
struct Sent<'a> {
    index: usize,
    op: Op<'a>,
    at: [Vec<u8>; 2],
    sets: Vec<Attributes>,
    way: Way,
}

/// Does operations on different paths.
fn group(
    store: &Sftp,
    (begin, ops): (usize, &[Op<'_>]),
    each: &mut dyn FnMut(usize, Result<Reply>),
) {
    if !ops.iter().all(|op| matches!(op, Op::Look(_) | Op::ReadLink(_))) {
        store.inner.ahead.clear();
    }
    let ways: Vec<_> = ops.iter().map(|op| store.way_of_change(path_of(op))).collect();
    let is_looked_at = |op: &Op<'_>, way: Way| match op {
        Op::Look(_) => true,
        Op::Change(_, change) => way == Way::LookAndSet || **change == Change::default(),
        _ => false,
    };
    let pairs = || ops.iter().zip(&ways);
    let looked_at = pairs().filter(|(op, way)| is_looked_at(op, **way)).map(|(op, _)| path_of(op));
    let above = ops.iter().flat_map(|op| [Some(path_of(op)), second_of(op)]).flatten();
    let looked = store.looked_both(looked_at, above);
    let (mut sent, mut puts) = (Vec::new(), Vec::new());
    for (index, (op, &way)) in (begin..).zip(pairs()) {
        let path = path_of(op);
        let checked = check(op).and_then(|()| {
            looked.above(path)?;
            second_of(op).map_or(Ok(()), |to| looked.above(to))
        });
        let entry = || checked.and_then(|()| looked.entry(path));
        let next = match op {
            Op::Look(_) => {
                let found = entry().and_then(|attributes| store.of_entry(path, &attributes));
                found.map(|found| Some(Reply::Found(found)))
            }
            Op::Change(_, change) if is_looked_at(op, way) => entry().and_then(|attributes| {
                let is_link = kind(&attributes) == Some(Kind::Link);
                let lacking = store.lacking_of_link(change).filter(|_| is_link);
                let is_nothing = **change == Change::default();
                match lacking {
                    Some(ability) => Err(ErrorKind::Unsupported(ability)),
                    None => Ok(is_nothing.then_some(Reply::Done)),
                }
            }),
            _ => checked.map(|()| None),
        };
        let next = next.and_then(|reply| {
            let sets = if let Op::Change(_, change) = op { parts(change)? } else { Vec::new() };
            Ok((reply, sets))
        });
        match (next, op) {
            (Err(kind), _) => each(index, doing(what(op), path).fail(kind)),
            (Ok((Some(reply), _)), _) => each(index, Ok(reply)),
            (Ok(_), Op::Put(put)) => puts.push((index, *put)),
            (Ok((None, sets)), _) => {
                let at = [store.at(path), second_of(op).map_or_else(Vec::new, |to| store.at(to))];
                sent.push(Sent { index, op: *op, at, sets, way });
            }
        }
    }
    let requests: Vec<Vec<_>> = sent.iter().map(|one| one.requests(store)).collect();
    let all: Vec<_> = requests.iter().flatten().copied().collect();
    let mut answers = store.inner.client.all(&all).into_iter();
    let mut unmade = Vec::new();
    for (one, requests) in sent.iter().zip(&requests) {
        let answers: Vec<_> = answers.by_ref().take(requests.len()).collect();
        match one.finish(store, answers) {
            Err(Undone::Unmade(failed)) => unmade.push((one, failed)),
            Err(Undone::Known(kind)) => {
                each(one.index, doing(what(&one.op), path_of(&one.op)).fail(kind));
            }
            Ok(reply) => each(one.index, Ok(reply)),
        }
    }
    // Why they were not made is found out for all of them together.
    let looked = store.looked(unmade.iter().map(|(one, _)| path_of(&one.op)));
    for (one, failed) in &unmade {
        let kind = store.why_not_made(path_of(&one.op), &looked, failed);
        each(one.index, doing(what(&one.op), path_of(&one.op)).fail(kind));
    }
    put(store, puts, each);
}

/// Refuses an operation for which the server need not be asked.
fn check(op: &Op<'_>) -> std::result::Result<(), ErrorKind> {
    match op {
        Op::Rename(.., Replace::Exchange) => Err(ErrorKind::Unsupported(Ability::Exchange)),
        Op::MakeDir(path, _) | Op::MakeLink(path, _) => Sftp::is_new(path),
        Op::Put(put) => Sftp::is_new(put.path),
        Op::Rename(from, to, _) => match from {
            from if *from == &StorePath::ROOT => Err(ErrorKind::Busy),
            from if is_draft(from) => Err(ErrorKind::NotFound),
            _ => Sftp::is_new(to),
        },
        Op::Remove(path, _) if *path == &StorePath::ROOT => Err(ErrorKind::Busy),
        Op::Look(path) | Op::ReadLink(path) | Op::Remove(path, _) | Op::Change(path, _) => {
            if is_draft(path) {
                Err(ErrorKind::NotFound)
            } else {
                Ok(())
            }
        }
    }
}

/// Why an operation was not done.
enum Undone {
    Known(ErrorKind),
    /// A directory or link was not made.
    Unmade(Failed),
}

impl From<ErrorKind> for Undone {
    fn from(kind: ErrorKind) -> Self {
        Self::Known(kind)
    }
}

impl Sent<'_> {
    fn requests(&self, store: &Sftp) -> Vec<Request<'_>> {
        let [at, to] = &self.at;
        let set = |attributes: &Attributes| match self.way {
            Way::SetOfLink => Request::SetOfLink(at, *attributes),
            Way::Set | Way::LookAndSet => Request::SetStat(at, *attributes),
        };
        vec![match self.op {
            Op::ReadLink(_) => Request::ReadLink(at),
            Op::MakeDir(_, mode) => {
                let mode = Some(mode & 0o7777);
                Request::MakeDir(at, Attributes { mode, ..Attributes::default() })
            }
            Op::MakeLink(_, text) => Request::MakeLink(text, at),
            Op::Remove(_, Kind::Dir) => Request::RemoveDir(at),
            Op::Remove(..) => Request::Remove(at),
            Op::Rename(.., replace) => store.renaming(at, to, replace),
            Op::Change(..) => return self.sets.iter().map(set).collect(),
            Op::Look(_) | Op::Put(_) => return Vec::new(),
        }]
    }

    /// The result, by the answers.
    fn finish(&self, store: &Sftp, answers: Vec<Answer>) -> std::result::Result<Reply, Undone> {
        let mut answers = answers.into_iter();
        if let Op::ReadLink(path) = self.op {
            let text = answers.next().map_or(Err(Failed::Odd), Answer::name);
            return text
                .map(Reply::Text)
                .map_err(|failed| {
                    match store.why_not_used(path, &failed) {
                        // The entry exists, and is no link (readlink(2)).
                        ErrorKind::Unexplained => ErrorKind::of(rustix::io::Errno::INVAL),
                        other => other,
                    }
                })
                .map_err(Undone::Known);
        }
        // All answers are read, also after a failure.
        let done: Vec<_> = answers.map(Answer::done).collect();
        let done: std::result::Result<(), Failed> = done.into_iter().collect();
        let known = &store.inner.known;
        match (self.op, done) {
            (Op::MakeDir(path, _), Ok(())) => known.add(path),
            (Op::MakeDir(..) | Op::MakeLink(..), Err(failed)) if !failed.is_end() => {
                return Err(Undone::Unmade(failed));
            }
            (Op::Remove(path, kind), done) => {
                known.forget(path);
                done.map_err(|failed| store.why_not_removed(path, kind, &failed))?;
            }
            (Op::Rename(from, to, replace), done) => {
                known.forget(from);
                known.forget(to);
                done.map_err(|failed| store.why_not_renamed((from, to), replace, &failed))?;
            }
            (Op::Change(path, change), Err(failed)) => {
                store.change_after((path, change), self.way, &failed)?;
            }
            (_, Err(failed)) => return Err(reason(&failed).into()),
            (_, Ok(())) => {}
        }
        Ok(Reply::Done)
    }
}
