//! The sending half of a stream.

use crate::error::WriteError;
use crate::link::{Handle, StreamLink};
use crate::outbox::Intent;
use bytes::Bytes;
use hikyaku_proto::StreamId;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::AsyncWrite;

/// Writes to a stream.
///
/// Dropped before [`SendHalf::finish`], it resets the stream: the peer gets an error and not an
/// end that looks clean.
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

/// The code of a stream that was dropped unfinished.
pub(crate) const DROPPED: u64 = 0;
/// Bytes copied in one write: large enough for few allocations, small enough for the cache.
const COPY: usize = 64 << 10;

impl SendHalf {
    pub(crate) const fn new(connection: Arc<Handle>, link: Arc<StreamLink>) -> Self {
        Self { connection, link, state: State::Writing }
    }

    /// Writes `bytes` without a copy; waits while there is enough to send.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let mut bytes = Some(bytes);
        poll_fn(|context| self.poll_chunk(context, &mut bytes)).await
    }

    /// Takes `bytes` if there is room; see [`SendHalf::write_chunk`].
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

    /// Ends the stream: the peer reads to the end of what was written. Does not wait for that; see
    /// [`SendHalf::delivered`].
    pub fn finish(&mut self) {
        self.settle(State::Finished, Intent::Finish);
    }

    /// Gives up: the peer gets an error with this code, and what it has not got yet is not sent.
    pub fn reset(&mut self, code: u64) {
        self.settle(State::Reset, Intent::Reset(code));
    }

    /// Waits until the peer's transport has all of a finished stream.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        poll_fn(|context| self.link.outbox.poll_delivered(context)).await
    }

    pub(crate) fn id(&self) -> StreamId {
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
        self.link.outbox.poll_room(context)
    }

    fn push(&mut self, bytes: Bytes) {
        self.link.outbox.push(bytes);
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
        let n = bytes.len().min(COPY);
        if n > 0 {
            self.push(Bytes::copy_from_slice(&bytes[..n]));
        }
        Poll::Ready(Ok(n))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Nothing waits here: the driver has it.
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.finish();
        Poll::Ready(Ok(()))
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        if self.state == State::Writing {
            self.reset(DROPPED);
        }
    }
}
