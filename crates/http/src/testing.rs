//! A stream of tests that watches what is read.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// A stream, and what becomes of a read of this number of bytes; 0: the end.
pub(crate) struct Watched<F> {
    pub(crate) stream: DuplexStream,
    pub(crate) on_read: F,
}

impl<F: FnMut(usize) -> io::Result<()> + Unpin> AsyncRead for Watched<F> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, into))?;
        Poll::Ready((self.on_read)(into.filled().len() - before))
    }
}

impl<F: Unpin> AsyncWrite for Watched<F> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
