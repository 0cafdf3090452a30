//! A stream in both directions.

use crate::error::{ReadError, WriteError};
use crate::receive_half::ReceiveHalf;
use crate::send_half::SendHalf;
use bytes::Bytes;
use hikyaku_proto::Run;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Ordered bytes in both directions: a [`SendHalf`] and a [`ReceiveHalf`], each of which ends on its
/// own.
#[derive(Debug)]
pub struct Stream {
    send: SendHalf,
    receive: ReceiveHalf,
}

impl Stream {
    pub(crate) const fn new(send: SendHalf, receive: ReceiveHalf) -> Self {
        Self { send, receive }
    }

    /// Splits the stream into its halves, which can move to different tasks.
    pub fn split(self) -> (SendHalf, ReceiveHalf) {
        (self.send, self.receive)
    }

    /// See [`SendHalf::write_chunk`].
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        self.send.write_chunk(bytes).await
    }

    /// See [`ReceiveHalf::read_chunk`].
    pub async fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        self.receive.read_chunk().await
    }

    /// See [`SendHalf::finish`].
    pub fn finish(&mut self) {
        self.send.finish();
    }

    /// See [`SendHalf::delivered`].
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        self.send.delivered().await
    }

    /// Both halves, borrowed.
    pub const fn halves(&mut self) -> (&mut SendHalf, &mut ReceiveHalf) {
        (&mut self.send, &mut self.receive)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.receive).poll_read(context, out)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.send).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.send).poll_shutdown(context)
    }
}
