//! The receiving half of a stream.

use crate::error::ReadError;
use crate::inbox::Item;
use crate::link::{Handle, StreamLink};
use crate::send_half::DROPPED;
use hikyaku_proto::{Delivery, Run, StreamId};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};

/// Reads from a stream.
///
/// An end is reported only if the peer finished the stream and all of it was read; everything else
/// is an error. What is not read is not acknowledged as room: the peer stops when the window is
/// full.
pub struct ReceiveHalf {
    connection: Arc<Handle>,
    link: Arc<StreamLink>,
    /// What is left of the part that was read last.
    rest: Option<Run>,
    end: Option<End>,
}

#[derive(Clone)]
enum End {
    Clean,
    Failed(ReadError),
}

impl ReceiveHalf {
    pub(crate) const fn new(connection: Arc<Handle>, link: Arc<StreamLink>) -> Self {
        Self { connection, link, rest: None, end: None }
    }

    /// The next bytes, in the buffer in which they arrived; `None` at the end of the stream.
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

    /// Wants no more: the peer is told this code.
    pub fn stop(&mut self, code: u64) {
        if self.end.is_none() {
            self.end = Some(End::Clean);
            self.rest = None;
            self.link.inbox.set_stop(code);
            self.connection.link.touch(&self.link);
        }
    }

    /// The next part with its offset, not yet counted as taken.
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
                Item::Reset(code) => End::Failed(ReadError::Reset(code)),
                Item::Lost(reason) => End::Failed(ReadError::Closed(reason)),
            },
        };
        self.end = Some(end.clone());
        Poll::Ready(match end {
            End::Clean => Ok(None),
            End::Failed(error) => Err(error),
        })
    }

    /// Counts `bytes` as taken: the peer may send as many more.
    pub(crate) fn take(&self, bytes: usize) {
        self.link.inbox.take(bytes as u64);
        self.connection.link.on_taken(bytes as u64);
    }
}

impl AsyncRead for ReceiveHalf {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut taken = 0;
        // Whatever is there goes in; only an empty hand waits.
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

impl Drop for ReceiveHalf {
    fn drop(&mut self) {
        // After the end it gives back the room of what was not read.
        self.link.inbox.set_stop(DROPPED);
        self.connection.link.touch(&self.link);
    }
}
