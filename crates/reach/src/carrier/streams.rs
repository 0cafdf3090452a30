//! Streams and objects of a connection: what every byte of payload passes through.

use super::{By, Carried, ObjectReceiver, ObjectSender, ReceiveHalf, SendHalf, Stream};
use bytes::Bytes;
use hikyaku_net::{Priority, ReadError, Run, StreamCode, StreamId, WriteError};
use std::time::Instant;

/// What comes from the other end, within the limits of the connection.
pub struct Incoming<U, P, T> {
    carried: Carried<U, P>,
    /// What has come and waits until the reader may have it. It stays here when a reader gives up waiting.
    held: Option<(Option<Instant>, T)>,
}

impl<U, P, T> Incoming<U, P, T> {
    pub(super) const fn new(carried: Carried<U, P>) -> Self {
        Self { carried, held: None }
    }

    /// Keeps what has come, of so many bytes, until the limits let it pass.
    fn hold(&mut self, bytes: usize, it: T) {
        self.held = Some((self.carried.paces.received(bytes), it));
    }

    /// Waits until the limits let pass what is held.
    async fn release(&mut self) -> Option<T> {
        if let Some((until, _)) = &self.held {
            self.carried.paces.until(*until).await;
        }
        self.held.take().map(|(_, it)| it)
    }
}

impl Stream {
    /// Its two directions.
    pub fn split(self) -> (SendHalf, ReceiveHalf) {
        let Self { by, paces } = self;
        let (send, receive) = match by {
            By::Udp(udp) => {
                let (send, receive) = udp.split();
                (By::Udp(send), By::Udp(receive))
            }
            By::Pipe(pipe) => {
                let (send, receive) = pipe.split();
                (By::Pipe(send), By::Pipe(receive))
            }
        };
        (Carried { by: send, paces: paces.clone() }, Incoming::new(Carried { by: receive, paces }))
    }
}

/// What both kinds of senders have: the types of their carriers differ, and nothing else.
macro_rules! sends {
    ($($sender:ident),*) => {$(
        impl $sender {
            /// Its number, which is the same at both ends.
            pub fn id(&self) -> StreamId {
                match &self.by {
                    By::Udp(udp) => udp.id(),
                    By::Pipe(pipe) => pipe.id(),
                }
            }

            /// Writes without a copy; waits while there is enough to send, or while nothing more may be sent.
            pub async fn write_chunk(&mut self, mut bytes: Bytes) -> Result<(), WriteError> {
                loop {
                    let piece = self.paces.piece(&mut bytes).await;
                    match &mut self.by {
                        By::Udp(udp) => udp.write_chunk(piece).await?,
                        By::Pipe(pipe) => pipe.write_chunk(piece).await.map_err(write_error)?,
                    }
                    if bytes.is_empty() {
                        return Ok(());
                    }
                }
            }

            /// Ends it.
            pub fn finish(&mut self) {
                match &mut self.by {
                    By::Udp(udp) => udp.finish(),
                    By::Pipe(pipe) => pipe.finish(),
                }
            }
        }
    )*};
}

sends!(SendHalf, ObjectSender);

impl SendHalf {
    /// Ends it with an error: the other end reads what was written, and then gets this code.
    pub fn reset_after(&mut self, code: u64) {
        match &mut self.by {
            By::Udp(udp) => udp.reset_after(StreamCode::new(code)),
            By::Pipe(pipe) => pipe.reset_after(code),
        }
    }

    /// Waits until the other end's transport has all of it. Before its end, this waits for an error: that the other end
    /// wants no more, or is gone.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        match &mut self.by {
            By::Udp(udp) => udp.delivered().await,
            By::Pipe(pipe) => pipe.delivered().await.map_err(write_error),
        }
    }
}

impl ReceiveHalf {
    /// Wants no more of it: the other end's writer gets this code.
    pub fn stop(&mut self, code: u64) {
        match &mut self.carried.by {
            By::Udp(udp) => udp.stop(StreamCode::new(code)),
            By::Pipe(pipe) => pipe.stop(code),
        }
    }

    /// The next bytes; `None` at the end.
    pub async fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        if self.held.is_none() {
            let run = match &mut self.carried.by {
                By::Udp(udp) => udp.read_chunk().await,
                By::Pipe(pipe) => pipe.read_chunk().await.map_err(read_error),
            }?;
            let Some(run) = run else { return Ok(None) };
            self.hold(run.len(), run);
        }
        Ok(self.release().await)
    }
}

impl ObjectSender {
    /// Takes back what was not sent yet, and ends it. The length that it has; `None` if its end was sent before, or if the
    /// carrier cannot take anything back.
    pub async fn cut(&mut self) -> Result<Option<u64>, WriteError> {
        match &mut self.by {
            By::Udp(udp) => udp.cut().await,
            By::Pipe(pipe) => {
                pipe.finish();
                Ok(None)
            }
        }
    }

    /// Which bytes go first, where the carrier has queues.
    pub fn set_priority(&mut self, priority: Priority) {
        match &mut self.by {
            By::Udp(udp) => udp.set_priority(priority),
            By::Pipe(_) => {}
        }
    }

    /// Gives it up.
    pub fn reset(&mut self, code: u64) {
        match &mut self.by {
            By::Udp(udp) => udp.reset(StreamCode::new(code)),
            By::Pipe(pipe) => pipe.reset(code),
        }
    }
}

impl ObjectReceiver {
    /// The same number as at the other end.
    pub fn id(&self) -> StreamId {
        match &self.carried.by {
            By::Udp(udp) => udp.id(),
            By::Pipe(pipe) => pipe.id(),
        }
    }

    /// The next part with its offset; `None` when all have come.
    pub async fn next(&mut self) -> Result<Option<(u64, Run)>, ReadError> {
        if self.held.is_none() {
            let part = match &mut self.carried.by {
                By::Udp(udp) => udp.next().await,
                By::Pipe(pipe) => pipe.next().await.map_err(read_error),
            }?;
            let Some(part) = part else { return Ok(None) };
            self.hold(part.1.len(), part);
        }
        Ok(self.release().await)
    }

    /// Wants no more of it.
    pub fn stop(&mut self, code: u64) {
        match &mut self.carried.by {
            By::Udp(udp) => udp.stop(StreamCode::new(code)),
            By::Pipe(pipe) => pipe.stop(code),
        }
    }
}

fn write_error(error: hikyaku_pipes::WriteError) -> WriteError {
    match error {
        hikyaku_pipes::WriteError::Finished => WriteError::Finished,
        hikyaku_pipes::WriteError::Stopped(code) => WriteError::Stopped(StreamCode::new(code)),
        hikyaku_pipes::WriteError::Closed(reason) => WriteError::Closed(reason),
    }
}

fn read_error(error: hikyaku_pipes::ReadError) -> ReadError {
    match error {
        hikyaku_pipes::ReadError::Reset(code) => ReadError::Reset(StreamCode::new(code)),
        hikyaku_pipes::ReadError::Closed(reason) => ReadError::Closed(reason),
    }
}
