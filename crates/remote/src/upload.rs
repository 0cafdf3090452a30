//! Uploads at the client: a stream on which files go to the server.

use crate::client::{Client, Hears, OnReply};
use crate::error::RemoteError;
use crate::message::{NewFile, Put, Reply, Request, RequestId};
use hikyaku_net::blocking::block_on;
use hikyaku_reach::{Out, talk};
use hikyaku_store::{Found, StorePath};
use hikyaku_transfer::FileHash;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// A stream of uploads. One thread uses it; several streams of one client go at once.
///
/// What is asked for waits in the stream's queue, and a call waits while the queue is full. Answers are heard by
/// functions, which are called exactly once and must not wait. When this is dropped, the server drops the drafts
/// that were begun on it and not finished.
pub struct Uploads {
    client: Client,
    out: Out,
    /// Set when the stream ends at this end's wish.
    is_over: Arc<AtomicBool>,
}

impl Client {
    /// Opens a stream of uploads. The server must have the feature `uploads`. Two threads are started for it, which end
    /// with it.
    ///
    /// # Errors
    ///
    /// The connection has ended, or the machine has no room for another thread.
    pub fn uploads(&self) -> Result<Uploads, RemoteError> {
        let full = |_| RemoteError::Closed(None);
        let stream = block_on(self.connection().open_stream())?;
        let (incoming, out, _writer) = talk(stream).map_err(full)?;
        let is_over = Arc::new(AtomicBool::new(false));
        let (hears, ended) = (self.shared.clone(), is_over.clone());
        thread::Builder::new()
            .name("remote-uploads".to_owned())
            .spawn(move || hears.hear(incoming, || ended.load(Ordering::Relaxed)))
            .map_err(full)?;
        Ok(Uploads { client: self.clone(), out, is_over })
    }
}

impl Drop for Uploads {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

impl Uploads {
    /// Sends a small file whole. `done` hears its metadata when it has its name and is on the server's disk.
    pub fn small(
        &self,
        file: NewFile,
        bytes: &[u8],
        done: impl FnOnce(Result<Found, RemoteError>) + Send + 'static,
    ) {
        let hash = FileHash(*blake3::hash(bytes).as_bytes());
        self.ask(Put::Small { file, hash }, bytes, done, found);
    }

    /// Begins a draft, of which about `data` bytes are not in holes. `done` hears whether the server takes it; its bytes
    /// may be sent before.
    pub fn begin(
        &self,
        file: NewFile,
        data: u64,
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) -> RequestId {
        self.ask(Put::Begin { file, data }, &[], done, nothing)
    }

    /// Sends the next bytes of a draft, at most [`SMALL_BYTES_MAX`](crate::SMALL_BYTES_MAX). `done` hears when they are
    /// written.
    pub fn bytes(
        &self,
        draft: RequestId,
        at: u64,
        bytes: &[u8],
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) {
        let hash = FileHash(*blake3::hash(bytes).as_bytes());
        let put = Put::Bytes { draft, at, length: bytes.len() as u32, hash };
        self.ask(put, bytes, done, nothing);
    }

    /// Tells that the next bytes of a draft are zeros. `done` hears whether the server agrees.
    pub fn zeros(
        &self,
        draft: RequestId,
        at: u64,
        length: u64,
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) {
        self.ask(Put::Zeros { draft, at, length }, &[], done, nothing);
    }

    /// Ends a draft all of whose bytes have been sent. `done` hears the metadata of the file when it has its name and is
    /// on the server's disk, or the first error of the draft.
    pub fn finish(
        &self,
        draft: RequestId,
        done: impl FnOnce(Result<Found, RemoteError>) + Send + 'static,
    ) {
        self.ask(Put::Finish { draft }, &[], done, found);
    }

    /// Begins a draft whose size and metadata come by [`Uploads::finish_as`]. `expected` is its size, if that is known. `done`
    /// hears whether the server takes it; its bytes may be sent before. The server must have the feature `unsized-uploads`.
    pub fn begin_unsized(
        &self,
        path: &StorePath,
        expected: Option<u64>,
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) -> RequestId {
        let path = path.as_bytes().to_vec();
        self.ask(Put::BeginUnsized { path, expected }, &[], done, nothing)
    }

    /// The same as [`Uploads::finish`] for a draft that was begun by [`Uploads::begin_unsized`], which becomes `file`.
    pub fn finish_as(
        &self,
        draft: RequestId,
        file: NewFile,
        done: impl FnOnce(Result<Found, RemoteError>) + Send + 'static,
    ) {
        self.ask(Put::FinishAs { draft, file }, &[], done, found);
    }

    /// Ends a draft of which nothing is wanted.
    pub fn discard(&self, draft: RequestId) {
        self.discard_then(draft, drop);
    }

    /// The same. `done` is called when the server has dropped it.
    pub(crate) fn discard_then(
        &self,
        draft: RequestId,
        done: impl FnOnce(Result<(), RemoteError>) + Send + 'static,
    ) {
        self.ask(Put::Drop { draft }, &[], done, nothing);
    }

    fn ask<T: 'static>(
        &self,
        put: Put,
        bytes: &[u8],
        done: impl FnOnce(Result<T, RemoteError>) + Send + 'static,
        read: fn(&Reply) -> Option<T>,
    ) -> RequestId {
        let mut done = Some(done);
        let on_reply: OnReply = Box::new(move |reply| {
            let other = RemoteError::Protocol("another answer than the one to an upload");
            let answer = reply.and_then(|(reply, _)| read(&reply).ok_or(other));
            if let Some(done) = done.take() {
                done(answer);
            }
            ControlFlow::Break(())
        });
        let id = self.client.next_id();
        let hears = Hears::Called(Some(on_reply));
        self.client.send_on(&self.out, id, Request::Put(put), (bytes, hears));
        id
    }
}

fn found(reply: &Reply) -> Option<Found> {
    if let Reply::Looked(found) = reply { Some(*found) } else { None }
}

fn nothing(reply: &Reply) -> Option<()> {
    matches!(reply, Reply::Done).then_some(())
}

#[cfg(test)]
mod tests;
