//! Ranges of files on their way out: a few are read and sent at once, the others wait.

use super::requests::{Teller, store_path};
use super::{Limits, Session};
use crate::message::{Class, Give, Reply, RequestId, Seen, View};
use crate::picked::Picked;
use bytes::Bytes;
use hikyaku_net::blocking::block_on;
use hikyaku_net::{OpenError, Priority, WriteError};
use hikyaku_reach::ObjectSender;
use hikyaku_reach::TalkError;
use hikyaku_store::{Access, ErrorKind, Open, StoreError, StorePath};
use hikyaku_transfer::{Geometry, Layout, SegmentHash};
use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A request that waits.
pub(crate) struct Waiting {
    pub(crate) job: Job,
    pub(crate) teller: Teller,
}

/// What is asked for, and is answered with an object.
pub(crate) enum Job {
    /// Ranges of a file.
    Give(Give, Ranges),
    /// A window of a picture.
    View(View),
}

/// What ranges of a request may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ranges {
    /// Whole segments of the file.
    Segments,
    /// Any bytes; one after the other they make a file of their own.
    Any,
}

/// The requests for ranges of one client.
pub(crate) struct Gives {
    state: Mutex<State>,
    came: Condvar,
    limits: Limits,
}

#[derive(Default)]
struct State {
    urgent: VecDeque<Waiting>,
    bulk: VecDeque<Waiting>,
    /// Requests that are being sent.
    under_way: HashSet<RequestId>,
    /// Those of them that are to end early, and the byte at which.
    cut: HashMap<RequestId, u64>,
    is_over: bool,
}

/// A request that is being answered.
pub(super) struct UnderWay<'a> {
    gives: &'a Gives,
    id: RequestId,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let mut state = self.gives.state();
        state.under_way.remove(&self.id);
        state.cut.remove(&self.id);
    }
}

/// Why a file was not sent to its end.
pub(super) enum Failed {
    Store(StoreError),
    /// The client does not want it, or has gone.
    Unwanted,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<TalkError> for Failed {
    fn from(_: TalkError) -> Self {
        Self::Unwanted
    }
}

impl From<OpenError> for Failed {
    fn from(_: OpenError) -> Self {
        Self::Unwanted
    }
}

impl From<WriteError> for Failed {
    fn from(_: WriteError) -> Self {
        Self::Unwanted
    }
}

/// The code of an object that is given up. The reason comes as a message.
pub(super) const GIVEN_UP: u64 = 1;

impl Gives {
    pub(super) fn new(limits: Limits) -> Self {
        Self { state: Mutex::default(), came: Condvar::new(), limits }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request. An error if more wait than one client may have.
    pub(super) fn put(&self, waiting: Waiting) -> Result<(), ()> {
        let mut state = self.state();
        if state.urgent.len() + state.bulk.len() >= self.limits.waiting {
            return Err(());
        }
        match waiting.job {
            Job::Give(Give { class: Class::Urgent, .. }, _) => state.urgent.push_back(waiting),
            Job::Give(..) | Job::View(_) => state.bulk.push_back(waiting),
        }
        self.came.notify_all();
        Ok(())
    }

    /// Notes that a request is being answered, until what this returns is dropped.
    pub(super) fn begin(&self, id: RequestId) -> UnderWay<'_> {
        self.state().under_way.insert(id);
        UnderWay { gives: self, id }
    }

    /// Whether the request is to end before the byte `at` of its answer.
    pub(super) fn is_cut(&self, id: RequestId, at: u64) -> bool {
        self.state().cut.get(&id).is_some_and(|&from| at >= from)
    }

    /// Ends a request early: what is sent stays, and what would come behind the byte `from` is dropped.
    pub(super) fn cut(&self, id: RequestId, from: u64) {
        let mut state = self.state();
        if state.under_way.contains(&id) {
            state.cut.insert(id, from);
            return;
        }
        let State { urgent, bulk, .. } = &mut *state;
        let of = |waiting: &Waiting| waiting.teller.id == id;
        for queue in [urgent, bulk] {
            if let Some(waiting) = queue.iter().position(of).and_then(|at| queue.remove(at)) {
                // A client that has gone is not told.
                let _ = waiting.teller.say(Reply::Given { bytes: 0 });
                return;
            }
        }
    }

    /// The connection has ended.
    pub(super) fn end(&self) {
        self.state().is_over = true;
        self.came.notify_all();
    }

    /// What a thread for bulk requests does.
    pub(super) fn work(&self, session: &Session) {
        self.each(session, |state| state.urgent.pop_front().or_else(|| state.bulk.pop_front()));
    }

    /// What the thread does that is kept for urgent requests.
    pub(super) fn work_urgent(&self, session: &Session) {
        self.each(session, |state| state.urgent.pop_front());
    }

    fn each(&self, session: &Session, next: impl Fn(&mut State) -> Option<Waiting>) {
        let mut buffer = Vec::new();
        loop {
            let mut state = self.state();
            let Waiting { job, teller } = loop {
                if state.is_over {
                    return;
                }
                if let Some(waiting) = next(&mut state) {
                    break waiting;
                }
                state = self.came.wait(state).unwrap_or_else(PoisonError::into_inner);
            };
            state.under_way.insert(teller.id);
            drop(state);
            let under_way = UnderWay { gives: self, id: teller.id };
            let sent = match &job {
                Job::Give(give, ranges) => {
                    self.send(session, (give, *ranges), &teller, &mut buffer)
                }
                Job::View(view) => self.view(session, view, &teller),
            };
            drop(under_way);
            // A client that has gone is not told.
            let _ = match sent {
                Ok(bytes) => teller.say(Reply::Given { bytes }),
                Err(Failed::Store(error)) => teller.refuse(&error),
                Err(Failed::Unwanted) => Ok(()),
            };
        }
    }

    fn send(
        &self,
        session: &Session,
        (give, ranges): (&Give, Ranges),
        teller: &Teller,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, Failed> {
        let path = store_path(&give.path)?;
        let error = |kind| StoreError::new("read", &path, kind);
        let open = session.open(&path, Access::Read)?;
        if Seen::from(&open.found()?) != give.seen {
            return Err(error(ErrorKind::Changed).into());
        }
        let Some(wanted) = Wanted::new(give, ranges) else {
            return Err(error(ErrorKind::System(22)).into());
        };
        let mut object = block_on(session.connection.open_object())?;
        if give.class == Class::Urgent {
            object.set_priority(Priority::Urgent);
        }
        let sent =
            teller.say(Reply::Giving { object: object.id().0 }).map_err(Failed::from).and_then(
                |()| self.send_segments(&wanted, (&*open, &path), &mut object, teller, buffer),
            );
        let is_changed = || -> Result<bool, StoreError> {
            Ok(Seen::from(&open.found()?) != give.seen || !open.is_unchanged()?)
        };
        match sent {
            Ok(bytes) => {
                object.finish();
                if is_changed()? { Err(error(ErrorKind::Changed).into()) } else { Ok(bytes) }
            }
            Err(Failed::Store(found)) => {
                object.reset(GIVEN_UP);
                // A short read of a file that was truncated meanwhile is a change.
                Err(if is_changed()? { error(ErrorKind::Changed) } else { found }.into())
            }
            Err(Failed::Unwanted) => {
                object.reset(GIVEN_UP);
                Err(Failed::Unwanted)
            }
        }
    }

    /// Sends the segments of the layout, each with its hash before it, until all are sent or the request is cut.
    fn send_segments(
        &self,
        wanted: &Wanted<'_>,
        (open, path): (&dyn Open, &StorePath),
        object: &mut ObjectSender,
        teller: &Teller,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, Failed> {
        let mut bytes = 0;
        let file = wanted.file;
        for index in wanted.layout.segments() {
            if self.is_cut(teller.id, bytes) {
                return Ok(match block_on(object.cut())? {
                    Some(sent) => sent,
                    None => bytes,
                });
            }
            let range = file.range(index).unwrap_or_default();
            buffer.resize((range.end - range.start) as usize, 0);
            let length = wanted.read(open, range, buffer)?;
            let Some(hash) = SegmentHash::new(file, index, &buffer[..length]) else {
                return Err(StoreError::new("read", path, ErrorKind::Changed).into());
            };
            teller.say(Reply::Hashes { first: index, hashes: vec![hash] })?;
            block_on(object.write_chunk(Bytes::copy_from_slice(buffer)))?;
            bytes += length as u64;
        }
        Ok(bytes)
    }
}

/// What a request wants of its file.
struct Wanted<'a> {
    /// The file whose segments are sent: the real one, or the one that picked ranges make.
    file: Geometry,
    /// Its segments that are wanted.
    layout: Layout,
    picked: Option<Picked<'a>>,
}

impl<'a> Wanted<'a> {
    /// `None` if there are no such ranges in the file.
    fn new(give: &'a Give, ranges: Ranges) -> Option<Self> {
        match ranges {
            Ranges::Segments => {
                let file = Geometry::new(give.seen.size)?;
                let layout = Layout::new(file, &give.ranges)?;
                Some(Self { file, layout, picked: None })
            }
            Ranges::Any => {
                let picked = Picked::new(give.seen.size, &give.ranges)?;
                let (file, layout) = picked.as_file();
                Some(Self { file, layout, picked: Some(picked) })
            }
        }
    }

    /// Reads these bytes of [`Wanted::file`]; returns how many there were.
    fn read(
        &self,
        open: &dyn Open,
        range: Range<u64>,
        into: &mut [u8],
    ) -> hikyaku_store::Result<usize> {
        let Some(picked) = &self.picked else { return open.read_at(range.start, into) };
        let mut at = 0;
        for place in picked.places(range) {
            let length = (place.end - place.start) as usize;
            let read = open.read_at(place.start, &mut into[at..at + length])?;
            at += read;
            if read < length {
                break;
            }
        }
        Ok(at)
    }
}
