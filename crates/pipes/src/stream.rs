//! Ordered streams and their halves.

use crate::connection::{Connection, Shared};
use crate::error::{ReadError, WriteError};
use crate::mux::Piece;
use bytes::Bytes;
use hikyaku_proto::{Run, StreamId};
use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The code with which a dropped half is reset or stopped.
const DROPPED_CODE: u64 = 0;

/// The part that both halves contain.
pub(crate) struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) id: StreamId,
    /// Keeps the connection open as long as a stream exists.
    pub(crate) _connection: Connection,
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Handle").field(&self.id).finish()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.lock().drop_handle(self.id);
    }
}

/// A bidirectional stream.
#[derive(Debug)]
pub struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
}

impl Stream {
    pub(crate) const fn new(send: SendHalf, receive: ReceiveHalf) -> Self {
        Self { send, receive }
    }

    /// Its two directions, which may be used by different tasks.
    pub fn split(self) -> (SendHalf, ReceiveHalf) {
        (self.send, self.receive)
    }
}

/// The sending half of a stream. It is reset if it is dropped before [`SendHalf::finish`].
#[derive(Debug)]
pub struct SendHalf {
    handle: Handle,
    is_ended: bool,
}

impl SendHalf {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self { handle, is_ended: false }
    }

    /// The stream's number, which is the same at both ends.
    pub const fn id(&self) -> StreamId {
        self.handle.id
    }

    /// Writes `bytes` without a copy. Waits while one mebibyte of this stream waits to be sent.
    ///
    /// # Errors
    ///
    /// The stream is finished, the peer has stopped it, or the connection has ended.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        let mut bytes = Some(bytes);
        let Handle { shared, id, .. } = &self.handle;
        poll_fn(|context| shared.change(|mux| mux.poll_write(*id, &mut bytes, context))).await
    }

    /// Ends the stream after the bytes that are already written.
    pub fn finish(&mut self) {
        self.is_ended = true;
        self.handle.shared.change(|mux| mux.finish(self.handle.id, None));
    }

    /// Ends the stream with an error: the peer reads what was written, and then gets this code.
    pub fn reset_after(&mut self, code: u64) {
        self.is_ended = true;
        self.handle.shared.change(|mux| mux.finish(self.handle.id, Some(code)));
    }

    /// Resets the stream: the peer's application gets an error with this code.
    pub fn reset(&mut self, code: u64) {
        self.is_ended = true;
        self.handle.shared.change(|mux| mux.reset(self.handle.id, code));
    }

    /// Waits until the peer has received all of a finished stream.
    ///
    /// # Errors
    ///
    /// The peer has stopped the stream, or the connection has ended before.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        let Handle { shared, id, .. } = &self.handle;
        poll_fn(|context| shared.lock().poll_delivered(*id, context)).await
    }
}

impl Drop for SendHalf {
    fn drop(&mut self) {
        if !self.is_ended {
            self.reset(DROPPED_CODE);
        }
    }
}

/// The receiving half of a stream.
#[derive(Debug)]
pub struct ReceiveHalf {
    handle: Handle,
}

impl ReceiveHalf {
    pub(crate) const fn new(handle: Handle) -> Self {
        Self { handle }
    }

    pub(crate) const fn id(&self) -> StreamId {
        self.handle.id
    }

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    ///
    /// The peer has reset the stream, or the connection has ended before the stream.
    pub async fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        let piece = poll_fn(|context| self.poll_piece(context)).await?;
        Ok(piece.map(|piece| Run::copied(piece.bytes)))
    }

    pub(crate) fn poll_piece(
        &self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Piece>, ReadError>> {
        let Handle { shared, id, .. } = &self.handle;
        let piece = ready!(shared.change(|mux| mux.poll_read(*id, context)))?;
        Poll::Ready(Ok(piece))
    }

    /// Asks the peer to stop sending, with this code.
    pub fn stop(&mut self, code: u64) {
        self.handle.shared.change(|mux| mux.stop(self.handle.id, code));
    }
}

impl Drop for ReceiveHalf {
    fn drop(&mut self) {
        self.stop(DROPPED_CODE);
    }
}
