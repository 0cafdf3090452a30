//! Objects: bytes in one direction, delivered with their offsets in the order of arrival, so that a
//! lost packet delays only its own bytes.

use crate::codes::StreamCode;
use crate::error::{ReadError, WriteError};
use crate::receive_half::ReceiveHalf;
use crate::send_half::SendHalf;
use bytes::Bytes;
use hikyaku_proto::{Priority, Run, StreamId};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// Sends an object, from its first byte to its last. Dropping it before
/// [`ObjectSender::finish`] resets the object.
#[derive(Debug)]
pub struct ObjectSender {
    half: SendHalf,
}

/// Receives an object in the order of arrival.
#[derive(Debug)]
pub struct ObjectReceiver {
    half: ReceiveHalf,
}

impl ObjectSender {
    pub(crate) const fn new(half: SendHalf) -> Self {
        Self { half }
    }

    /// The number of the object, which is the same at both ends: a message on a stream can name the
    /// object by it.
    pub fn id(&self) -> StreamId {
        self.half.id()
    }

    /// See [`SendHalf::write_chunk`].
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.half.write_chunk(bytes).await
    }

    /// See [`SendHalf::finish`].
    pub fn finish(&mut self) {
        self.half.finish();
    }

    /// See [`SendHalf::reset_after`].
    pub fn reset_after(&mut self, code: StreamCode) {
        self.half.reset_after(code);
    }

    /// See [`SendHalf::cut`].
    pub async fn cut(&mut self) -> Result<Option<u64>, WriteError> {
        self.half.cut().await
    }

    /// See [`SendHalf::set_priority`].
    pub fn set_priority(&mut self, priority: Priority) {
        self.half.set_priority(priority);
    }

    /// See [`SendHalf::reset`].
    pub fn reset(&mut self, code: StreamCode) {
        self.half.reset(code);
    }

    /// See [`SendHalf::delivered`].
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        self.half.delivered().await
    }
}

impl ObjectReceiver {
    pub(crate) const fn new(half: ReceiveHalf) -> Self {
        Self { half }
    }

    /// The number of the object; see [`ObjectSender::id`].
    pub fn id(&self) -> StreamId {
        self.half.id()
    }

    /// The next part that arrived, with the offset of its first byte. Each byte of the object is
    /// delivered once. `None` when all are.
    pub async fn next(&mut self) -> Result<Option<(u64, Run)>, ReadError> {
        poll_fn(|context| self.poll_next(context)).await
    }

    /// See [`ObjectReceiver::next`].
    pub fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<(u64, Run)>, ReadError>> {
        let part = ready!(self.half.poll_part(context))?;
        if let Some(part) = &part {
            self.half.take(part.run.len());
        }
        Poll::Ready(Ok(part.map(|part| (part.offset, part.run))))
    }

    /// See [`ReceiveHalf::stop`].
    pub fn stop(&mut self, code: StreamCode) {
        self.half.stop(code);
    }
}
