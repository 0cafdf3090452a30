//! The receiving half of a stream.

use crate::codes::StreamCode;
use crate::error::ReadError;
use crate::inbox::Item;
use crate::link::{Handle, StreamLink};
use hikyaku_proto::{Delivery, Run, StreamId};
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Reads from a stream.
///
/// The end is reported only if the peer finished the stream and all of it was read; every other end
/// is an error. Bytes that are not read occupy the receive window: the peer stops sending when it is
/// full. Dropping this half stops the stream with
/// [`StreamCode::DROPPED`].
pub struct ReceiveHalf {
    connection: Arc<Handle>,
    link: Arc<StreamLink>,
    /// The unread rest of the part that was received last.
    rest: Option<Run>,
    end: Option<End>,
}

#[derive(Clone, Debug)]
enum End {
    Clean,
    Failed(ReadError),
}

impl ReceiveHalf {
    pub(crate) const fn new(connection: Arc<Handle>, link: Arc<StreamLink>) -> Self {
        Self { connection, link, rest: None, end: None }
    }

    /// Reads the next bytes, in the buffer in which they arrived. `None` is the end of the stream.
    ///
    /// # Errors
    ///
    /// [`ReadError::Reset`] if the peer reset the stream, [`ReadError::Closed`] if the connection ended
    /// first.
    pub async fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        poll_fn(|context| self.poll_chunk(context)).await
    }

    /// See [`ReceiveHalf::read_chunk`].
    pub fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Run>, ReadError>> {
        let run = match self.rest.take() {
            Some(rest) => rest,
            None => match ready!(self.poll_part(context))? {
                Some(part) => part.run,
                None => return Poll::Ready(Ok(None)),
            },
        };
        self.take(run.len());
        Poll::Ready(Ok(Some(run)))
    }

    pub(crate) fn id(&self) -> StreamId {
        self.link.id
    }

    /// Asks the peer to send no more: its writer gets [`crate::WriteError::Stopped`] with this code.
    /// Reads after this report the end of the stream.
    pub fn stop(&mut self, code: StreamCode) {
        if self.end.is_none() {
            self.end = Some(End::Clean);
            self.rest = None;
            self.link.inbox.set_stop(code.number());
            self.connection.link.touch(&self.link);
        }
    }

    /// The next part with its offset, which does not count as taken yet.
    pub(crate) fn poll_part(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Delivery>, ReadError>> {
        let end = match &self.end {
            Some(end) => end.clone(),
            None => match ready!(self.link.inbox.poll(context)) {
                Item::Part(delivery) => {
                    self.connection.link.on_let_go(delivery.run.len());
                    return Poll::Ready(Ok(Some(delivery)));
                }
                Item::End => End::Clean,
                Item::Reset(code) => End::Failed(ReadError::Reset(StreamCode::new(code))),
                Item::Lost(reason) => End::Failed(ReadError::Closed(reason)),
            },
        };
        self.end = Some(end.clone());
        Poll::Ready(match end {
            End::Clean => Ok(None),
            End::Failed(error) => Err(error),
        })
    }

    /// Counts `bytes` as taken, which lets the peer send as many more.
    pub(crate) fn take(&self, bytes: usize) {
        if bytes > 0 {
            self.connection.link.on_taken(&self.link, bytes as u64);
        }
    }
}

impl AsyncRead for ReceiveHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut taken = 0;
        // Everything that has arrived is copied as far as there is room. The read waits only if
        // nothing has.
        while out.remaining() > 0 {
            if self.rest.is_none() {
                self.rest = match self.poll_part(context) {
                    Poll::Ready(Ok(Some(part))) => Some(part.run),
                    Poll::Ready(Err(error)) if taken == 0 => return Poll::Ready(Err(error.into())),
                    Poll::Pending if taken == 0 => return Poll::Pending,
                    Poll::Ready(_) | Poll::Pending => break,
                };
            }
            if let Some(rest) = &mut self.rest {
                let piece = rest.piece();
                let n = piece.len().min(out.remaining());
                out.put_slice(&piece[..n]);
                rest.advance(n);
                taken += n;
                if rest.is_empty() {
                    self.rest = None;
                }
            }
        }
        self.take(taken);
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for ReceiveHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReceiveHalf")
            .field("id", &self.link.id)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Drop for ReceiveHalf {
    fn drop(&mut self) {
        // After the end of the stream, this frees the receive window of bytes that were not read.
        self.link.inbox.set_stop(StreamCode::DROPPED.number());
        self.connection.link.touch(&self.link);
    }
}
