//! The end that uses the store.

use crate::calls::below;
use crate::error::RemoteError;
use crate::incoming::Incoming;
use crate::message::{
    Answer, Asked, Entry, Give, Lease, Refusal, Reply, Request, RequestId, SMALL_BYTES_MAX, Wanted,
};
use crate::picked::Picked;
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_reach::{Connection, ObjectReceiver};
use hikyaku_reach::{In, Out, TalkError, talk};
use hikyaku_store::{ErrorKind, Found, StorePath};
use hikyaku_transfer::{FileHash, Geometry, Layout, decode};
use hikyaku_units::Rate;
use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A connection to a server, which several threads may use at once.
#[derive(Clone)]
pub struct Client {
    pub(crate) shared: Arc<Shared>,
    /// Requests that are answered at once, or that wait at the server in a queue of their own.
    short: Out,
    /// Requests that keep their stream busy: walks and small files.
    long: Out,
    /// Changes of the store, in their order.
    edits: Out,
    pub(crate) lanes: Option<Arc<Lanes>>,
    /// Features of the server.
    features: Arc<BTreeSet<String>>,
}

/// The streams of a client that holds leases. None of them waits for other clients.
#[derive(Clone)]
pub(crate) struct Lanes {
    /// The request whose answers are the leases that the server wants back.
    pub(crate) recalls: Out,
    /// Messages of the client about its leases.
    pub(crate) notes: Out,
    /// Changes under leases, in their order.
    pub(crate) held: Out,
}

/// An answer, and the bytes behind it.
pub(crate) type Reply_ = (Reply, Vec<u8>);

pub(crate) struct Shared {
    pub(crate) connection: Connection,
    next: AtomicU64,
    state: Mutex<State>,
    came: Condvar,
}

#[derive(Default)]
struct State {
    /// Where the answers of each request go.
    requests: HashMap<RequestId, Hears>,
    /// Objects that have come before the answer that names them.
    objects: HashMap<u32, ObjectReceiver>,
    is_over: bool,
}

/// The receiver of the answers to a request.
pub(crate) enum Hears {
    /// A thread that waits for them.
    Waiting(Sender<Reply_>),
    /// A function, called by the thread that reads the answers. It is taken out while it runs.
    Called(Option<OnReply>),
}

/// Hears one answer, or that none will come any more. It is called again only if it continues, and must not wait.
pub(crate) type OnReply = Box<dyn FnMut(Result<Reply_, RemoteError>) -> ControlFlow<()> + Send>;

/// A request whose answers are to come. Dropping it forgets the request.
pub(crate) struct Pending {
    pub(crate) id: RequestId,
    replies: Receiver<Reply_>,
    pub(crate) shared: Arc<Shared>,
}

/// Names that a server may report in answer to one request: some 2 GB of memory with long paths.
const NAMES_MAX: usize = 10_000_000;
/// Objects that a server may open before it names them. An honest one names each before its first byte.
const OBJECTS_MAX: usize = 256;
/// The round-trip time of a path of which nothing is known, and how long the transport is asked for it.
const USUAL_ROUND_TRIP: Duration = Duration::from_millis(100);
/// Answers to one request that nobody has taken. A walk is taken as it comes.
const LOOK: Duration = Duration::from_millis(200);

impl Client {
    /// Uses `connection`, whose other end is a [`Server`](crate::Server). Seven threads are started for it, which end
    /// with the connection.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the machine has no room for another thread.
    pub fn new(connection: Connection) -> Result<Self, RemoteError> {
        let full = |_| RemoteError::Closed(None);
        let stream = |_| block_on(connection.open_stream());
        let [short, long, edits] = [0, 1, 2].map(stream);
        let (short_in, short, _writer) = talk(short?).map_err(full)?;
        let (long_in, long, _writer) = talk(long?).map_err(full)?;
        let (edits_in, edits, _writer) = talk(edits?).map_err(full)?;
        let shared = Arc::new(Shared {
            connection,
            next: AtomicU64::new(0),
            state: Mutex::default(),
            came: Condvar::new(),
        });
        let named = |name: &str| thread::Builder::new().name(name.to_owned());
        for incoming in [short_in, long_in, edits_in] {
            let hears = shared.clone();
            named("remote-replies").spawn(move || hears.hear(incoming, || false)).map_err(full)?;
        }
        let accepts = shared.clone();
        named("remote-objects").spawn(move || accepts.accept()).map_err(full)?;
        let features = Arc::default();
        Ok(Self { shared, short, long, edits, lanes: None, features })
    }

    /// The same client, for a server that has announced these features.
    #[must_use]
    pub fn with_features(self, features: BTreeSet<String>) -> Self {
        Self { features: Arc::new(features), ..self }
    }

    /// Whether the server has announced this feature (`hikyaku_reach::daemon`).
    pub fn has(&self, feature: &str) -> bool {
        self.features.contains(feature)
    }

    /// One more stream of requests.
    pub(crate) fn lane(&self) -> Result<Out, RemoteError> {
        let full = |_| RemoteError::Closed(None);
        let stream = block_on(self.shared.connection.open_stream());
        let (incoming, out, _writer) = talk(stream?).map_err(full)?;
        let hears = self.shared.clone();
        let named = thread::Builder::new().name("remote-replies".to_owned());
        named.spawn(move || hears.hear(incoming, || false)).map_err(full)?;
        Ok(out)
    }

    /// The round-trip time of the connection; a usual one if the transport does not know it.
    pub fn round_trip(&self) -> Duration {
        let until = Some(Instant::now() + USUAL_ROUND_TRIP);
        let seen = wait(self.connection().seen(), &Stop::default(), until).ok().flatten();
        let known = seen.map(|seen| seen.round_trip).filter(|time| !time.is_zero());
        known.unwrap_or(USUAL_ROUND_TRIP)
    }

    /// The connection that it uses.
    pub fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// The metadata of a name.
    ///
    /// # Errors
    ///
    /// Those of [`Store::look`](hikyaku_store::Store::look), or the connection has ended.
    pub fn look(&self, path: &StorePath) -> Result<Found, RemoteError> {
        let pending = self.ask(Request::Look { path: path.as_bytes().to_vec() })?;
        match pending.next()? {
            (Reply::Looked(found), _) => Ok(found),
            _ => Err(RemoteError::Protocol("another answer than the metadata")),
        }
    }

    /// Reports a name and everything below it, a directory before what is in it, until `each` breaks.
    ///
    /// # Errors
    ///
    /// There is nothing of that name, or the connection has ended. What cannot be read below it is reported as an entry. A
    /// server that reports paths which were not asked for, or more names than can be held, breaks the protocol.
    pub fn walk(
        &self,
        root: &StorePath,
        mut each: impl FnMut(StorePath, Entry) -> ControlFlow<()>,
    ) -> Result<(), RemoteError> {
        let pending = self.ask(Request::Walk { path: root.as_bytes().to_vec() })?;
        let mut names = 0;
        loop {
            let entries = match pending.next()?.0 {
                Reply::Walked(entries) => entries,
                Reply::Done => return Ok(()),
                _ => return Err(RemoteError::Protocol("another answer than names")),
            };
            for entry in entries {
                names += 1;
                let path = below(root, &entry.path);
                let path = path.ok_or(RemoteError::Protocol("names that were not asked for"))?;
                if names > NAMES_MAX {
                    return Err(RemoteError::Protocol("more names than can be held"));
                }
                if each(path, entry).is_break() {
                    self.cut(pending.id, 0);
                    return Ok(());
                }
            }
        }
    }

    /// Asks for ranges of a file. The bytes come when [`Incoming::receive`] is called.
    ///
    /// # Errors
    ///
    /// The ranges are not whole segments of the file, or the connection has ended.
    pub fn give(&self, give: Give) -> Result<Incoming, RemoteError> {
        let file = Geometry::new(give.seen.size);
        let layout = file.and_then(|file| Layout::new(file, &give.ranges));
        let (Some(file), Some(layout)) = (file, layout) else {
            return Err(RemoteError::Protocol("ranges that are no segments of the file"));
        };
        let pending = self.ask(Request::Give(give))?;
        Ok(Incoming::new(pending, file, layout))
    }

    /// Asks for byte ranges of a file that need not lie along segments, in ascending order. What [`Incoming::receive`] hands
    /// on are the segments of the ranges one after the other: an offset of [`Proven`](crate::Proven) counts from the first
    /// byte of the first range.
    ///
    /// # Errors
    ///
    /// The ranges are empty, not in order or outside the file, more than [`PICKED_RANGES_MAX`](crate::PICKED_RANGES_MAX), or the connection has ended.
    // spec: store-pick-2
    pub fn pick(&self, give: Give) -> Result<Incoming, RemoteError> {
        let picked = Picked::new(give.seen.size, &give.ranges);
        let picked = picked.ok_or(RemoteError::Protocol("ranges that do not lie in the file"))?;
        let (file, layout) = picked.as_file();
        let pending = self.ask(Request::Pick(give))?;
        Ok(Incoming::new(pending, file, layout))
    }

    /// Asks for small files whole, and hands each to `each` with its index: its proven content, or why there is none.
    /// `begun` is told the number of the request, with which it can be cut; then not all files come.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub fn give_many(
        &self,
        files: Vec<Wanted>,
        begun: impl FnOnce(RequestId),
        mut each: impl FnMut(usize, Result<Vec<u8>, ErrorKind>),
    ) -> Result<(), RemoteError> {
        let sizes: Vec<u64> = files.iter().map(|file| file.seen.size).collect();
        let pending = self.ask(Request::GiveMany { files })?;
        begun(pending.id);
        let mut seen = vec![false; sizes.len()];
        loop {
            let (index, content) = match pending.next()? {
                (Reply::Small { index, size, hash }, bytes) => {
                    let is_right = sizes.get(index as usize) == Some(&u64::from(size))
                        && u64::from(size) <= SMALL_BYTES_MAX
                        && hash == FileHash(*blake3::hash(&bytes).as_bytes());
                    (index, if is_right { Ok(bytes) } else { Err(ErrorKind::Damaged) })
                }
                (Reply::NotGiven { index, kind }, _) => (index, Err(kind)),
                (Reply::Done, _) => return Ok(()),
                _ => return Err(RemoteError::Protocol("another answer than small files")),
            };
            match seen.get_mut(index as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(RemoteError::Protocol("a file that was not asked for")),
            }
            each(index as usize, content);
        }
    }

    /// Takes back what the request has not sent yet, from the byte `from` of its answer on. It ends with what was sent.
    pub fn cut(&self, give: RequestId, from: u64) {
        // If the connection has ended, so has the request.
        let _ = self.say(Request::Cut { give, from });
    }

    /// Limits the rate of payload that the server sends on this connection.
    pub fn cap(&self, rate: Option<Rate>) {
        let bytes_per_second = rate.map(|rate| rate.bytes_per_sec() as u64);
        let _ = self.say(Request::Cap { bytes_per_second });
    }

    pub(crate) fn next_id(&self) -> RequestId {
        RequestId(self.shared.next.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn say(&self, request: Request) -> Result<(), TalkError> {
        self.out(&request).say(&Asked { id: self.next_id(), request })
    }

    pub(crate) fn ask(&self, request: Request) -> Result<Pending, RemoteError> {
        let (give, replies) = channel();
        let (id, hears) = (self.next_id(), Hears::Waiting(give));
        self.send(self.out(&request), id, request, (&[], hears)).map_err(|(error, _)| error)?;
        Ok(Pending { id, replies, shared: self.shared.clone() })
    }

    /// Sends a request whose answers go to `on_reply`.
    pub(crate) fn ask_then(&self, request: Request, tail: &[u8], on_reply: OnReply) -> RequestId {
        let (id, hears) = (self.next_id(), Hears::Called(Some(on_reply)));
        self.send_on(self.out(&request), id, request, (tail, hears));
        id
    }

    /// Sends a request on this stream. If that fails, the function that would have heard the answers is told.
    pub(crate) fn send_on(
        &self,
        out: &Out,
        id: RequestId,
        request: Request,
        (tail, hears): (&[u8], Hears),
    ) {
        if let Err((error, Some(Hears::Called(Some(mut on_reply))))) =
            self.send(out, id, request, (tail, hears))
        {
            let _ = on_reply(Err(error));
        }
    }

    /// The stream for a request.
    fn out(&self, request: &Request) -> &Out {
        match (request, &self.lanes) {
            (Request::Walk { .. } | Request::GiveMany { .. } | Request::List { .. }, _)
            | (Request::Lease(Lease::Take { .. }), _) => &self.long,
            (Request::Lease(Lease::Hear { .. }), Some(lanes)) => &lanes.recalls,
            (Request::Lease(_), Some(lanes)) => &lanes.notes,
            (Request::Held { .. }, Some(lanes)) => &lanes.held,
            (Request::Edit(_) | Request::Held { .. }, _) => &self.edits,
            _ => &self.short,
        }
    }

    /// Sends a request. If that fails, whoever would have heard the answers comes back, unless it has been told already.
    fn send(
        &self,
        out: &Out,
        id: RequestId,
        request: Request,
        (tail, hears): (&[u8], Hears),
    ) -> Result<(), (RemoteError, Option<Hears>)> {
        let closed = || RemoteError::Closed(self.shared.connection.close_reason());
        {
            let mut state = self.shared.state();
            if state.is_over {
                return Err((closed(), Some(hears)));
            }
            state.requests.insert(id, hears);
        }
        let said = out.say_with(&Asked { id, request }, tail);
        said.map_err(|_| (closed(), self.shared.state().requests.remove(&id)))
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads answers until the connection ends, or their stream after it `was_ended` here.
    pub(crate) fn hear(&self, mut incoming: In, was_ended: impl Fn() -> bool) {
        loop {
            let body = match incoming.hear() {
                Ok(Some(body)) => body,
                Ok(None) if was_ended() => return,
                _ => break,
            };
            let Ok((Answer { id, reply }, rest)) = decode::<Answer>(body) else { break };
            if reply.tail() != rest.len() as u64 {
                break;
            }
            let rest = rest.to_vec();
            self.tell(id, (reply, rest));
        }
        self.end("the server's answers are no messages");
    }

    /// Hands an answer to whoever asked, who may have given up.
    fn tell(&self, id: RequestId, reply: Reply_) {
        let mut on_reply = match self.state().requests.get_mut(&id) {
            Some(Hears::Waiting(to)) => return drop(to.send(reply)),
            Some(Hears::Called(on_reply)) => on_reply.take(),
            None => None,
        };
        let Some(call) = &mut on_reply else { return };
        let goes_on = call(judged(reply)).is_continue();
        let mut state = self.state();
        match state.requests.get_mut(&id) {
            Some(Hears::Called(place)) if goes_on => *place = on_reply,
            Some(_) => drop(state.requests.remove(&id)),
            // The connection ended meanwhile.
            None if goes_on => {
                drop(state);
                let closed = RemoteError::Closed(self.connection.close_reason());
                if let Some(call) = &mut on_reply {
                    let _ = call(Err(closed));
                }
            }
            None => {}
        }
    }

    /// Takes objects until the connection ends.
    fn accept(&self) {
        while let Ok(object) = block_on(self.connection.accept_object()) {
            let mut state = self.state();
            if state.objects.len() >= OBJECTS_MAX {
                break;
            }
            state.objects.insert(object.id().0, object);
            self.came.notify_all();
        }
        self.end("the server opens too many objects");
    }

    /// Wakes all who wait: nothing will come any more.
    fn end(&self, why: &str) {
        self.connection.close(crate::server::BROKEN, why);
        let mut state = self.state();
        state.is_over = true;
        let requests = std::mem::take(&mut state.requests);
        state.objects.clear();
        drop(state);
        self.came.notify_all();
        for hears in requests.into_values() {
            if let Hears::Called(Some(mut on_reply)) = hears {
                let _ = on_reply(Err(RemoteError::Closed(self.connection.close_reason())));
            }
        }
    }

    /// Waits for the object of this number.
    pub(crate) fn object(&self, number: u32) -> Result<ObjectReceiver, RemoteError> {
        let mut state = self.state();
        loop {
            if let Some(object) = state.objects.remove(&number) {
                return Ok(object);
            }
            if state.is_over {
                return Err(RemoteError::Closed(self.connection.close_reason()));
            }
            state = self.came.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Pending {
    /// The next answer.
    pub(crate) fn next(&self) -> Result<Reply_, RemoteError> {
        let closed = |_| RemoteError::Closed(self.shared.connection.close_reason());
        judged(self.replies.recv().map_err(closed)?)
    }

    /// An answer that is there already.
    pub(crate) fn try_next(&self) -> Option<Result<Reply_, RemoteError>> {
        self.replies.try_recv().ok().map(judged)
    }
}

/// The answer, or the error that it tells.
fn judged(reply: Reply_) -> Result<Reply_, RemoteError> {
    match reply {
        (Reply::Refused(Refusal { kind, text }), _) => {
            Err(RemoteError::Refused { kind, text: hikyaku_fs::sentence(&text) })
        }
        reply => Ok(reply),
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.shared.state().requests.remove(&self.id);
    }
}
