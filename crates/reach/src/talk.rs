//! The stream of messages between the two ends.

use crate::carrier::{ReceiveHalf, SendHalf, Stream};
use bytes::Bytes;
use hikyaku_net::blocking::{Stop, block_on, wait};
use hikyaku_net::{ReadError, WriteError};
use hikyaku_transfer::{Coming, Long, MessageError, encode, encode_long, frame, frame_len};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

/// The talk is over.
#[derive(Debug, thiserror::Error)]
pub enum TalkError {
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
pub struct Out {
    queue: SyncSender<Vec<u8>>,
}

/// Hears messages.
pub struct In {
    half: ReceiveHalf,
    buffer: Vec<u8>,
    used: usize,
}

/// Writes what is said, until nobody can say anything any more.
pub struct Writer {
    thread: JoinHandle<Result<(), TalkError>>,
}

/// Messages that wait to be written: with small files in them, at most 16 MB.
const QUEUE: usize = 64;
/// Short messages are written together up to this size.
const TOGETHER: usize = 64 << 10;

/// The two directions of `stream`.
pub fn talk(stream: Stream) -> std::io::Result<(In, Out, Writer)> {
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
    pub fn join(self) -> Result<(), TalkError> {
        self.thread.join().unwrap_or(Err(TalkError::Closed))
    }
}

impl Out {
    /// Says a message; waits while as many messages wait as may.
    pub fn say(&self, message: &impl Serialize) -> Result<(), TalkError> {
        self.say_with(message, &[])
    }

    /// Says a message that may be longer than a frame, in pieces. It has at most so many bytes.
    pub fn say_long(&self, message: &impl Serialize, bytes_max: usize) -> Result<(), TalkError> {
        let mut frames = encode_long(message, bytes_max).ok_or(TalkError::TooLong)?;
        frames.try_for_each(|frame| self.queue.send(frame).map_err(|_| TalkError::Closed))
    }

    /// What somebody else said, as it was said.
    pub fn repeat(&self, body: &[u8]) -> Result<(), TalkError> {
        self.queue.send(hikyaku_transfer::framed(body)).map_err(|_| TalkError::Closed)
    }

    /// A message with bytes behind it.
    pub fn say_with(&self, message: &impl Serialize, tail: &[u8]) -> Result<(), TalkError> {
        let frame = encode(message, tail).ok_or(TalkError::TooLong)?;
        self.queue.send(frame).map_err(|_| TalkError::Closed)
    }
}

impl In {
    /// The next message's frame; `None` at the end.
    pub fn hear(&mut self) -> Result<Option<&[u8]>, TalkError> {
        self.hear_until(&Stop::default())
    }

    /// The same; also `None` when the thread is told to stop.
    pub fn hear_until(&mut self, stop: &Stop) -> Result<Option<&[u8]>, TalkError> {
        self.hear_of(stop, None)
    }

    /// The same; also `None` when it does not come by then.
    pub fn hear_by(&mut self, until: Instant) -> Result<Option<&[u8]>, TalkError> {
        self.hear_of(&Stop::default(), Some(until))
    }

    /// A message that comes in pieces, of at most so many bytes.
    pub fn hear_long<T: DeserializeOwned>(&mut self, bytes_max: usize) -> Result<T, TalkError> {
        let mut long = Long::new(bytes_max);
        loop {
            let body = self.hear()?.ok_or(TalkError::Cut)?;
            if long.add(body)? == Coming::Whole {
                return Ok(long.decode()?);
            }
        }
    }

    fn hear_of(&mut self, stop: &Stop, until: Option<Instant>) -> Result<Option<&[u8]>, TalkError> {
        loop {
            let found = frame(&self.buffer[self.used..])?.map(|body| (frame_len(body), body.len()));
            if let Some((whole, length)) = found {
                self.used += whole;
                return Ok(Some(&self.buffer[self.used - length..self.used]));
            }
            self.buffer.drain(..std::mem::take(&mut self.used));
            let read = match wait(self.half.read_chunk(), stop, until) {
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
