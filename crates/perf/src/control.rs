//! The control stream between the two ends, which carries messages.

use crate::message::{BadMessage, LENGTH_PREFIX_BYTES, Message};
use crate::wait::{Cut, Stop, wait};
use hikyaku_net::{OpenError, ReadError, ReceiveHalf, SendHalf, Stream, WriteError};
use std::io;
use std::pin::Pin;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::{AsyncRead, ReadBuf};

/// The sending half of a control stream.
pub(crate) struct ControlSender {
    half: SendHalf,
}

/// The receiving half of a control stream.
pub(crate) struct ControlReader {
    half: ReceiveHalf,
}

/// The control stream failed or ended.
#[derive(Debug, Error)]
pub(crate) enum ControlError {
    #[error("the other end closed the control stream")]
    Ended,
    #[error("the other end does not follow the `hikyaku perf` protocol: {0}")]
    Bad(#[from] BadMessage),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Write(#[from] WriteError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("timed out waiting for the other end")]
    TooLate,
    #[error("stopped by the user")]
    Stopped,
}

/// Control messages are small: one that cannot be queued within this time will not be sent at all.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// Splits `stream` into its two halves.
pub(crate) fn control(stream: Stream) -> (ControlSender, ControlReader) {
    let (send, receive) = stream.split();
    (ControlSender { half: send }, ControlReader { half: receive })
}

impl ControlSender {
    pub(crate) fn send(&mut self, message: &Message) -> Result<(), ControlError> {
        let bytes = message.encode();
        let until = Some(Instant::now() + SEND_TIMEOUT);
        Ok(wait(self.half.write_chunk(bytes.into()), &Stop::default(), until)??)
    }

    /// Sends the last message, finishes the stream, and returns once the peer has acknowledged
    /// everything.
    pub(crate) async fn leave(mut self, message: &Message) -> Result<(), ControlError> {
        self.half.write_chunk(message.encode().into()).await?;
        self.half.finish();
        Ok(self.half.delivered().await?)
    }

    /// Finishes the stream: no message follows.
    pub(crate) fn end(&mut self) {
        self.half.finish();
    }

    /// Finishes the stream and waits until the peer has acknowledged everything.
    pub(crate) fn finish(&mut self, within: Duration) -> Result<(), ControlError> {
        self.half.finish();
        let until = Some(Instant::now() + within);
        Ok(wait(self.half.delivered(), &Stop::default(), until)??)
    }
}

impl ControlReader {
    /// Waits for the next message until `stop` is set or `until` has passed.
    pub(crate) fn receive(
        &mut self,
        stop: &Stop,
        until: Option<Instant>,
    ) -> Result<Message, ControlError> {
        wait(self.read_message(), stop, until)?
    }

    /// Waits for the next message without a time limit.
    pub(crate) async fn read_message(&mut self) -> Result<Message, ControlError> {
        let mut prefix = [0; LENGTH_PREFIX_BYTES];
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

/// Recovers the transport's own error, which `AsyncRead` wraps in an `io::Error`.
fn read_error(error: io::Error) -> ControlError {
    let inner = error.into_inner().and_then(|inner| inner.downcast::<ReadError>().ok());
    inner.map_or(ControlError::Ended, |error| ControlError::Read(*error))
}
