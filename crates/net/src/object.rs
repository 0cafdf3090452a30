//! Objects: bytes in one direction, delivered with their offsets as they arrive, so that a lost
//! packet holds up nothing but itself.

use crate::error::{ReadError, WriteError};
use crate::receive_half::ReceiveHalf;
use crate::send_half::SendHalf;
use bytes::Bytes;
use hikyaku_proto::{Run, StreamId};
use std::future::poll_fn;
use std::task::{Context, Poll, ready};

/// Sends an object, first byte first.
pub struct ObjectSender {
    half: SendHalf,
}

/// Receives an object in any order.
pub struct ObjectReceiver {
    half: ReceiveHalf,
}

impl ObjectSender {
    pub(crate) const fn new(half: SendHalf) -> Self {
        Self { half }
    }

    /// Its number: the same at both ends, so that a message elsewhere may speak of it.
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

    /// See [`SendHalf::reset`].
    pub fn reset(&mut self, code: u64) {
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

    /// Its number, as its sender has it.
    pub fn id(&self) -> StreamId {
        self.half.id()
    }

    /// The next part that arrived, with its offset; each byte comes once. `None` when all have
    /// come.
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
    pub fn stop(&mut self, code: u64) {
        self.half.stop(code);
    }
}
