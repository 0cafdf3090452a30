//! Connections over pipes.

use crate::error::OpenError;
use crate::extender::Extender;
use crate::frame::Header;
use crate::mux::{Mux, PipeId, Task};
use crate::object::{ObjectReceiver, ObjectSender};
use crate::pump::Pipe;
use crate::stream::{Handle, ReceiveHalf, SendHalf, Stream};
use hikyaku_proto::{CloseReason, Side, StreamId, StreamKind};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The limits of a connection.
#[derive(Clone, Debug)]
pub struct Config {
    /// Maximum bytes that the peer has sent and the application has not read, in all streams
    /// together. Default: 64 MiB.
    pub window: u64,
    /// The initial receive window of one stream in bytes. Both ends must use the same value.
    /// Default: 512 KiB.
    pub stream_window: u64,
    /// Maximum number of streams that an end has opened and whose bytes the other end does not have
    /// completely. Both ends must use the same value. Default: 128. The peer can make this end hold
    /// at most twice as many stream windows, because several pipes may deliver the end of one
    /// stream after the start of another. Windows that have grown are bounded by `window`.
    pub streams_max: usize,
    /// Maximum receive window of one stream in bytes. A window grows while its reader empties it
    /// quickly. Default: 32 MiB, which is 1 Gbit/s at a round-trip time of 250 ms.
    pub stream_window_max: u64,
    /// The effect of a lost pipe. Both ends must use the same value. Default: the end of the connection.
    pub on_loss: OnLoss,
}

/// The effect of a lost pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OnLoss {
    /// The end of the connection, which has the pipes that it began with.
    #[default]
    End,
    /// Undelivered frames of the pipe are sent over the others. Only the loss of the last one is the end. Pipes can be
    /// added. It costs 17 bytes and 12 for each pipe, 20 times a second while anything arrives, and the sender keeps
    /// what it has sent until it is confirmed.
    Repair,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            window: 64 << 20,
            stream_window: 512 << 10,
            streams_max: 128,
            stream_window_max: 32 << 20,
            on_loss: OnLoss::End,
        }
    }
}

/// Statistics of a connection.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Figures {
    /// Payload bytes written into the pipes.
    pub sent: u64,
    /// Payload bytes of received frames.
    pub received: u64,
    /// Bytes that have arrived, headers and parts of frames included.
    pub arrived: u64,
    /// Received frames, pongs included. The count grows as long as the peer is alive.
    pub frames: u64,
    /// The round-trip time, including the time that bytes wait in the pipes.
    pub round_trip: Option<Duration>,
    /// Whether a stream has data and no credit of the peer.
    pub is_held_by_peer: bool,
    /// Number of open pipes.
    pub pipes: usize,
    /// Payload bytes that the peer has confirmed. Stays 0 with [`OnLoss::End`].
    pub confirmed: u64,
}

/// A connection. Clones refer to the same connection. It is closed when the last clone and all
/// streams have been dropped.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Owner>,
}

/// Closes the connection when the last handle is dropped.
struct Owner {
    shared: Arc<Shared>,
}

/// State shared by the threads and all handles.
pub(crate) struct Shared {
    mux: Mutex<Mux>,
    /// Signalled when there may be something to write.
    is_changed: Condvar,
    sent: AtomicU64,
    received: AtomicU64,
    arrived: AtomicU64,
    frames: AtomicU64,
    pub(crate) writers: Writers,
}

/// The number of threads that still write.
#[derive(Default)]
pub(crate) struct Writers {
    count: Mutex<usize>,
    has_ended: Condvar,
}

impl Writers {
    pub(crate) fn begin(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) += 1;
    }

    pub(crate) fn end(&self) {
        *self.count.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.has_ended.notify_all();
    }

    /// Waits until all writing threads have ended, at most for `time`.
    fn join(&self, time: Duration) {
        let count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.has_ended.wait_timeout_while(count, time, |count| *count > 0);
    }
}

impl Shared {
    pub(crate) fn lock(&self) -> MutexGuard<'_, Mux> {
        self.mux.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change that may give a pipe something to write.
    pub(crate) fn change<T>(&self, work: impl FnOnce(&mut Mux) -> T) -> T {
        let mut mux = self.lock();
        let done = work(&mut mux);
        let has_news = mux.take_news();
        drop(mux);
        if has_news {
            self.is_changed.notify_all();
        }
        done
    }

    pub(crate) fn next_task(&self, pipe: PipeId) -> Task {
        let mut mux = self.lock();
        let task = mux.next_task(pipe, Instant::now(), usize::MAX);
        let has_new_timer = mux.take_new_timer();
        drop(mux);
        if has_new_timer {
            self.is_changed.notify_all();
        }
        task
    }

    pub(crate) fn wait(&self, pipe: PipeId, time: Duration) {
        let mut mux = self.lock();
        // The mux may have changed since the task was requested.
        let now = Instant::now();
        if mux.has_task(pipe, now) {
            return;
        }
        let time = time.min(mux.look_again(now));
        mux = self.is_changed.wait_timeout(mux, time).unwrap_or_else(PoisonError::into_inner).0;
        drop(mux);
    }

    /// Whether the connection ends with the pipe.
    pub(crate) fn needs(&self, pipe: PipeId) -> bool {
        self.lock().needs(pipe)
    }

    /// Waits until the connection has ended, at most for `time`.
    pub(crate) fn wait_for_end(&self, time: Duration) {
        let mux = self.lock();
        let _ = self.is_changed.wait_timeout_while(mux, time, |mux| mux.end().is_none());
    }

    pub(crate) fn on_frame(
        &self,
        pipe: PipeId,
        header: Header,
        payload: Vec<u8>,
    ) -> Result<(), String> {
        self.received.fetch_add(payload.len() as u64, Ordering::Relaxed);
        self.frames.fetch_add(1, Ordering::Relaxed);
        self.change(|mux| mux.on_frame(pipe, (header, payload), Instant::now()))
    }

    pub(crate) fn fail(&self, reason: CloseReason) {
        self.change(|mux| mux.fail(reason));
    }

    pub(crate) fn lose(&self, pipe: PipeId, reason: CloseReason) {
        self.lock().lose_pipe(pipe, reason);
        // Also the threads of the lost pipe.
        self.is_changed.notify_all();
    }

    pub(crate) fn end(&self) -> Option<CloseReason> {
        self.lock().end().cloned()
    }

    pub(crate) fn figures(&self) -> Figures {
        let mux = self.lock();
        let (round_trip, is_held_by_peer) = (mux.round_trip(), mux.lacks_credit());
        let (pipes, confirmed) = (mux.pipes(), mux.confirmed_bytes());
        drop(mux);
        Figures {
            pipes,
            confirmed,
            sent: self.sent.load(Ordering::Relaxed),
            received: self.received.load(Ordering::Relaxed),
            arrived: self.arrived.load(Ordering::Relaxed),
            frames: self.frames.load(Ordering::Relaxed),
            round_trip,
            is_held_by_peer,
        }
    }

    pub(crate) fn has_arrived(&self, bytes: usize) {
        self.arrived.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(crate) fn wrote(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl Connection {
    /// A connection over these pipes, whose other ends belong to the peer.
    ///
    /// # Errors
    ///
    /// The system refuses to start a thread.
    pub fn new(pipes: Vec<Pipe>, side: Side, config: Config) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            mux: Mutex::new(Mux::new(side, config)),
            is_changed: Condvar::new(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            frames: AtomicU64::new(0),
            writers: Writers::default(),
        });
        let connection = Self { inner: Arc::new(Owner { shared: shared.clone() }) };
        let extender = Extender(shared);
        for (id, pipe) in (0..).zip(pipes) {
            extender.add(id, pipe)?;
        }
        Ok(connection)
    }

    /// A handle that adds pipes to this connection, and does not keep it open.
    pub fn extender(&self) -> Extender {
        Extender(self.shared().clone())
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.inner.shared
    }

    fn handle(&self, id: StreamId) -> Handle {
        Handle { shared: self.shared().clone(), id, _connection: self.clone() }
    }

    /// Opens a bidirectional stream. Waits while [`Config::streams_max`] streams are open.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn open_stream(&self) -> Result<Stream, OpenError> {
        let id = self.open(StreamKind::Ordered).await?;
        Ok(self.stream(id))
    }

    /// The next stream that the peer opened.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn accept_stream(&self) -> Result<Stream, OpenError> {
        let id = self.accept(StreamKind::Ordered).await?;
        Ok(self.stream(id))
    }

    fn stream(&self, id: StreamId) -> Stream {
        Stream::new(SendHalf::new(self.handle(id)), ReceiveHalf::new(self.handle(id)))
    }

    /// Opens an object: a unidirectional stream whose bytes may be delivered in any order.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn open_object(&self) -> Result<ObjectSender, OpenError> {
        let id = self.open(StreamKind::Object).await?;
        Ok(ObjectSender::new(SendHalf::new(self.handle(id))))
    }

    /// The next object that the peer opened.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub async fn accept_object(&self) -> Result<ObjectReceiver, OpenError> {
        let id = self.accept(StreamKind::Object).await?;
        Ok(ObjectReceiver::new(ReceiveHalf::new(self.handle(id))))
    }

    async fn open(&self, kind: StreamKind) -> Result<StreamId, OpenError> {
        poll_fn(|context| self.shared().lock().poll_open(kind, context)).await
    }

    async fn accept(&self, kind: StreamKind) -> Result<StreamId, OpenError> {
        poll_fn(|context| self.shared().lock().poll_accept(kind, context)).await
    }

    /// Closes the connection at once, whatever is in progress, and sends `code` and `reason` to the
    /// peer.
    pub fn close(&self, code: u64, reason: &str) {
        self.shared().change(|mux| mux.close(code, reason));
    }

    /// Waits until all pending frames have been written into the pipes, at most for `time`. A
    /// process calls it before it exits.
    pub fn flush(&self, time: Duration) {
        self.shared().writers.join(time);
    }

    /// Waits for the end of the connection. Returns the reason.
    pub async fn closed(&self) -> CloseReason {
        poll_fn(|context| self.shared().lock().poll_end(context)).await
    }

    /// Why the connection ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.shared().end()
    }

    /// The present statistics.
    pub fn figures(&self) -> Figures {
        self.shared().figures()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("end", &self.close_reason()).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.change(|mux| mux.close(hikyaku_proto::code::DONE, ""));
    }
}
