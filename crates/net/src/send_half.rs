//! The sending half of a stream.

use crate::codes::StreamCode;
use crate::error::WriteError;
use crate::link::{Handle, StreamLink};
use crate::outbox::Intent;
use bytes::Bytes;
use hikyaku_proto::{Priority, StreamId};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Writes to a stream.
///
/// If this half is dropped before [`SendHalf::finish`], it resets the stream with
/// [`StreamCode::DROPPED`]: the peer's reader gets an error, not an end that looks clean.
pub struct SendHalf {
    connection: Arc<Handle>,
    link: Arc<StreamLink>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Writing,
    Finished,
    Reset,
}

/// Bytes copied in one write: enough that allocations are few, and less than the processor's cache.
const COPY: usize = 64 << 10;
/// A piece that is copied takes at most this fraction of the free budget of the connection,
const SHARE_OF_LEFT: u64 = 64;
/// or this many bytes, since a smaller piece costs more per byte than it saves.
const LEAST_COPY: usize = 4 << 10;

impl SendHalf {
    pub(crate) const fn new(connection: Arc<Handle>, link: Arc<StreamLink>) -> Self {
        Self { connection, link, state: State::Writing }
    }

    /// Writes `bytes` without copying them. Waits while the driver holds enough bytes to send.
    ///
    /// # Errors
    ///
    /// [`WriteError::Stopped`] if the peer stopped the stream, [`WriteError::Closed`] if the
    /// connection ended, [`WriteError::Finished`] after `finish` or `reset`.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let mut bytes = Some(bytes);
        poll_fn(|context| self.poll_chunk(context, &mut bytes)).await
    }

    /// Takes `bytes` out of the option when there is room; see [`SendHalf::write_chunk`].
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
        bytes: &mut Option<Bytes>,
    ) -> Poll<Result<(), WriteError>> {
        ready!(self.poll_room(context))?;
        if let Some(bytes) = bytes.take().filter(|bytes| !bytes.is_empty()) {
            self.push(bytes);
        }
        Poll::Ready(Ok(()))
    }

    /// Ends the stream: the peer reads to the end of what was written. Does not wait until it is
    /// delivered; see [`SendHalf::delivered`].
    pub fn finish(&mut self) {
        self.settle(State::Finished, Intent::Finish);
    }

    /// Ends the stream with an error: the peer reads all that was written, and then gets
    /// [`crate::ReadError::Reset`] with this code. Does not wait; see [`SendHalf::delivered`].
    pub fn reset_after(&mut self, code: StreamCode) {
        self.settle(State::Finished, Intent::BreakOff(code.number()));
    }

    /// Takes back the bytes that were not sent yet. The stream ends after those that were, and the
    /// peer reads to that end as if no more had been written. Returns the stream's length; `None` if
    /// the end of the stream was sent before.
    ///
    /// For work that the application gives to another stream instead.
    pub async fn cut(&mut self) -> Result<Option<u64>, WriteError> {
        if self.state == State::Reset {
            return Err(WriteError::Finished);
        }
        self.state = State::Finished;
        self.link.outbox.set_intent(Intent::Cut);
        self.connection.link.touch(&self.link);
        poll_fn(|context| self.link.outbox.poll_cut(context)).await
    }

    /// Sets the priority of the stream's bytes, those that already wait included. Default:
    /// [`Priority::Normal`].
    pub fn set_priority(&mut self, priority: Priority) {
        self.link.outbox.set_priority(priority);
        self.connection.link.touch(&self.link);
    }

    /// Gives the stream up. The peer's reader gets [`crate::ReadError::Reset`] with this code; bytes
    /// that are not delivered yet are not sent again.
    pub fn reset(&mut self, code: StreamCode) {
        self.settle(State::Reset, Intent::Reset(code.number()));
    }

    /// Waits until the peer's transport has acknowledged every byte of a finished stream. Only
    /// an answer of the peer's application can confirm that it has read them.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        poll_fn(|context| self.link.outbox.poll_delivered(context)).await
    }

    /// The stream's number, which is the same at both ends.
    pub fn id(&self) -> StreamId {
        self.link.id
    }

    fn settle(&mut self, state: State, intent: Intent) {
        let may = match self.state {
            State::Writing => true,
            State::Finished => state == State::Reset,
            State::Reset => false,
        };
        if may {
            self.state = state;
            self.link.outbox.set_intent(intent);
            self.connection.link.touch(&self.link);
        }
    }

    fn poll_room(&mut self, context: &mut Context<'_>) -> Poll<Result<(), WriteError>> {
        if self.state != State::Writing {
            return Poll::Ready(Err(WriteError::Finished));
        }
        let budget = &self.connection.link.budget;
        self.link.outbox.poll_room(context, budget, || budget.wait(&self.link))
    }

    fn push(&mut self, bytes: Bytes) {
        self.link.outbox.push(bytes, &self.connection.link.budget);
        self.connection.link.touch(&self.link);
    }
}

impl AsyncWrite for SendHalf {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_room(context))?;
        // The fewer bytes of the budget are free, the smaller the piece: of many streams that wait,
        // each holds little.
        let share = usize::try_from(self.connection.link.budget.left_for_pieces() / SHARE_OF_LEFT);
        let n = bytes.len().min(COPY).min(share.unwrap_or(COPY).max(LEAST_COPY));
        if n > 0 {
            self.push(Bytes::copy_from_slice(&bytes[..n]));
        }
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // This half buffers nothing: the driver has every byte that was written.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for SendHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendHalf")
            .field("id", &self.link.id)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        if self.state == State::Writing {
            self.reset(StreamCode::DROPPED);
        }
    }
}
