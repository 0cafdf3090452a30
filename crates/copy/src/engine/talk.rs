//! The stream of messages between the two ends.

use bytes::Bytes;
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{ReadError, WriteError};
use hikyaku_reach::{ReceiveHalf, SendHalf, Stream};
use hikyaku_transfer::{MessageError, encode, frame, frame_len};
use serde::Serialize;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// The talk is over.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TalkError {
    /// The stream or the connection ended.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The same, while writing.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The other end stopped in the middle of a message.
    #[error("the other end stopped in the middle of a message")]
    Cut,
    /// Bytes that no version of ours sends.
    #[error("the other end sent {0}")]
    Bad(#[from] MessageError),
    /// Longer than any message; a path of absurd length.
    #[error("a message is too long to be sent")]
    TooLong,
    /// The writer has ended; the connection says why.
    #[error("the connection is closed")]
    Closed,
}

/// Says messages. Clones say them on the same stream.
#[derive(Clone)]
pub(crate) struct Out {
    queue: SyncSender<Vec<u8>>,
}

/// Hears messages.
pub(crate) struct In {
    half: ReceiveHalf,
    buffer: Vec<u8>,
    used: usize,
}

/// Writes what is said, until nobody can say anything any more.
pub(crate) struct Writer {
    thread: JoinHandle<Result<(), TalkError>>,
}

/// Messages that wait to be written: with small files in them, at most 16 MB.
const QUEUE: usize = 64;
/// Short messages are written together up to this size.
const TOGETHER: usize = 64 << 10;

/// The two directions of `stream`.
pub(crate) fn talk(stream: Stream) -> std::io::Result<(In, Out, Writer)> {
    let (send, half) = stream.split();
    let (queue, messages) = sync_channel(QUEUE);
    let thread = thread::Builder::new()
        .name("copy-talk".to_owned())
        .spawn(move || write(send, &messages))?;
    Ok((In { half, buffer: Vec::new(), used: 0 }, Out { queue }, Writer { thread }))
}

fn write(mut half: SendHalf, messages: &Receiver<Vec<u8>>) -> Result<(), TalkError> {
    while let Ok(mut bytes) = messages.recv() {
        while bytes.len() < TOGETHER
            && let Ok(next) = messages.try_recv()
        {
            bytes.extend_from_slice(&next);
        }
        block_on(half.write_chunk(Bytes::from(bytes)))?;
    }
    half.finish();
    Ok(block_on(half.delivered())?)
}

impl Writer {
    /// Waits until the other end's transport has everything. All [`Out`]s must be gone.
    pub(crate) fn join(self) -> Result<(), TalkError> {
        self.thread.join().unwrap_or(Err(TalkError::Closed))
    }
}

impl Out {
    pub(crate) fn say(&self, message: &impl Serialize) -> Result<(), TalkError> {
        self.say_with(message, &[])
    }

    /// What somebody else said, as it was said.
    pub(crate) fn repeat(&self, body: &[u8]) -> Result<(), TalkError> {
        self.queue.send(hikyaku_transfer::framed(body)).map_err(|_| TalkError::Closed)
    }

    /// A message with bytes behind it.
    pub(crate) fn say_with(&self, message: &impl Serialize, tail: &[u8]) -> Result<(), TalkError> {
        let frame = encode(message, tail).ok_or(TalkError::TooLong)?;
        self.queue.send(frame).map_err(|_| TalkError::Closed)
    }
}

impl In {
    /// The next message's frame; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, TalkError> {
        self.next_until(&Stop::default())
    }

    /// The same; also `None` when the thread is told to stop.
    pub(crate) fn next_until(&mut self, stop: &Stop) -> Result<Option<&[u8]>, TalkError> {
        loop {
            let found = frame(&self.buffer[self.used..])?.map(|body| (frame_len(body), body.len()));
            if let Some((whole, length)) = found {
                self.used += whole;
                return Ok(Some(&self.buffer[self.used - length..self.used]));
            }
            self.buffer.drain(..std::mem::take(&mut self.used));
            let read = match wait(self.half.read_chunk(), stop, None) {
                Ok(read) => read?,
                Err(_) => return Ok(None),
            };
            let Some(run) = read else {
                return if self.buffer.is_empty() { Ok(None) } else { Err(TalkError::Cut) };
            };
            run.pieces().for_each(|piece| self.buffer.extend_from_slice(piece));
        }
    }
}
