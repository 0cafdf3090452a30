//! The stream of messages between the two ends.

use crate::message::{BadMessage, Message, PREFIX};
use crate::wait::{Cut, Stop, wait};
use hikyaku_net::{OpenError, ReadError, ReceiveHalf, SendHalf, Stream, WriteError};
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::{AsyncRead, ReadBuf};

/// Sends messages.
pub(crate) struct ControlSender {
    half: SendHalf,
}

/// Receives messages.
pub(crate) struct ControlReader {
    half: ReceiveHalf,
}

/// The talk is over.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    #[error("the other end closed the control stream")]
    Ended,
    #[error("the other end does not speak as `hikyaku perf` does: {0}")]
    Bad(#[from] BadMessage),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the other end said nothing for too long")]
    TooLate,
    #[error("stopped by the user")]
    Stopped,
}

/// A message is small: one that does not go out for so long never will.
const SEND_WITHIN: Duration = Duration::from_secs(5);

/// The two directions of `stream`.
pub(crate) fn control(stream: Stream) -> (ControlSender, ControlReader) {
    let (send, receive) = stream.split();
    (ControlSender { half: send }, ControlReader { half: receive })
}

impl ControlSender {
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), ControlError> {
        let bytes = message.encode();
        let until = Some(Instant::now() + SEND_WITHIN);
        Ok(wait(self.half.write_chunk(bytes.into()), &Stop::default(), until)??)
    }

    /// Says that nothing follows.
    pub(crate) fn end(&mut self) {
        self.half.finish();
    }

    /// Says that nothing follows, and waits until the other end has everything.
    pub(crate) fn finish(&mut self, within: Duration) -> Result<(), ControlError> {
        self.half.finish();
        let until = Some(Instant::now() + within);
        Ok(wait(self.half.delivered(), &Stop::default(), until)??)
    }
}

impl ControlReader {
    /// The next message.
    pub(crate) fn receive(
        &mut self,
        stop: &Stop,
        until: Option<Instant>,
    ) -> Result<Message, ControlError> {
        wait(self.read_message(), stop, until)?
    }

    async fn read_message(&mut self) -> Result<Message, ControlError> {
        let mut prefix = [0; PREFIX];
        self.read_exact(&mut prefix).await?;
        let mut bytes = vec![0; Message::length(prefix)?];
        self.read_exact(&mut bytes).await?;
        Ok(Message::decode(&bytes)?)
    }

    async fn read_exact(&mut self, bytes: &mut [u8]) -> Result<(), ControlError> {
        let mut filled = 0;
        while filled < bytes.len() {
            let mut rest = ReadBuf::new(&mut bytes[filled..]);
            let half = &mut self.half;
            let read =
                std::future::poll_fn(|context| Pin::new(&mut *half).poll_read(context, &mut rest));
            read.await.map_err(read_error)?;
            match rest.filled().len() {
                0 => return Err(ControlError::Ended),
                n => filled += n,
            }
        }
        Ok(())
    }
}

impl From<Cut> for ControlError {
    fn from(cut: Cut) -> Self {
        match cut {
            Cut::Stopped => Self::Stopped,
            Cut::TooLate => Self::TooLate,
        }
    }
}

/// The stream's own error, which it wraps for readers that know only those of the system.
fn read_error(error: io::Error) -> ControlError {
    let inner = error.into_inner().and_then(|inner| inner.downcast::<ReadError>().ok());
    inner.map_or(ControlError::Ended, |error| ControlError::Read(*error))
}
