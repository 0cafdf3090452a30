//! Objects: unidirectional streams whose bytes may be delivered in any order.

use crate::error::{ReadError, WriteError};
use crate::stream::{ReceiveHalf, SendHalf};
use bytes::Bytes;
use hikyaku_proto::{Run, StreamId};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// An object that this end opened. It is reset if it is dropped before [`ObjectSender::finish`].
#[derive(Debug)]
pub struct ObjectSender {
    half: SendHalf,
}

/// An object that the peer opened.
#[derive(Debug)]
pub struct ObjectReceiver {
    half: ReceiveHalf,
}

impl ObjectSender {
    pub(crate) const fn new(half: SendHalf) -> Self {
        Self { half }
    }

    /// Its stream number, which is the same at both ends.
    pub const fn id(&self) -> StreamId {
        self.half.id()
    }

    /// See [`SendHalf::write_chunk`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.half.write_chunk(bytes).await
    }

    /// See [`SendHalf::finish`].
    pub fn finish(&mut self) {
        self.half.finish();
    }

    /// See [`SendHalf::reset`].
    pub fn reset(&mut self, code: u64) {
        self.half.reset(code);
    }

    /// See [`SendHalf::delivered`].
    ///
    /// # Errors
    ///
    /// As there.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        self.half.delivered().await
    }
}

impl ObjectReceiver {
    pub(crate) const fn new(half: ReceiveHalf) -> Self {
        Self { half }
    }

    /// Its stream number, which is the same at both ends.
    pub const fn id(&self) -> StreamId {
        self.half.id()
    }

    /// The next part with its offset. Each byte is delivered once. `None` when all bytes have been
    /// delivered.
    ///
    /// # Errors
    ///
    /// The peer has reset the object, or the connection has ended before the object.
    pub async fn next(&mut self) -> Result<Option<(u64, Run)>, ReadError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// See [`ObjectReceiver::next`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<(u64, Run)>, ReadError>> {
        let piece = ready!(self.half.poll_piece(context))?;
        Poll::Ready(Ok(piece.map(|piece| (piece.offset, Run::copied(piece.bytes)))))
    }

    /// See [`ReceiveHalf::stop`].
    pub fn stop(&mut self, code: u64) {
        self.half.stop(code);
    }
}
