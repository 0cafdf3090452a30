//! The first stream of a connection: each gateway says hello, and the stream ends with the session.

use crate::limits::FLOWS_MAX;
use bytes::Bytes;
use hikyaku_forward::{Gather, Hello, MessageError, framed};
use hikyaku_net::{ReadError, Run, WriteError};
use hikyaku_reach::{ReceiveHalf, SendHalf};

/// Why no message has come.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoMessage {
    /// What came is none.
    #[error(transparent)]
    Bad(#[from] MessageError),
    /// The stream is broken.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The stream ended before.
    #[error("the other gateway has ended the stream")]
    Ended,
}

/// Sends the hello of this gateway.
pub(crate) async fn say_hello(send: &mut SendHalf) -> Result<(), WriteError> {
    send.write_chunk(Bytes::from(framed(&Hello { flows_max: FLOWS_MAX }.encode()))).await
}

/// The messages of a stream, one after the other.
pub(crate) struct Messages {
    receive: ReceiveHalf,
    gather: Gather,
    /// What has come and was not looked at.
    rest: Option<Run>,
    /// The other direction, if it is to stay open as long as this one.
    kept: Option<SendHalf>,
}

impl Messages {
    pub(crate) fn new(receive: ReceiveHalf) -> Self {
        Self { receive, gather: Gather::default(), rest: None, kept: None }
    }

    /// The other direction of the stream stays open as long as this one.
    pub(crate) fn keep(&mut self, send: SendHalf) {
        self.kept = Some(send);
    }

    /// Says something in the direction that is kept.
    pub(crate) async fn say(&mut self, message: &[u8]) -> Result<(), WriteError> {
        match &mut self.kept {
            Some(send) => send.write_chunk(Bytes::from(framed(message))).await,
            None => Ok(()),
        }
    }

    /// The next message.
    pub(crate) async fn next(&mut self) -> Result<Vec<u8>, NoMessage> {
        loop {
            while let Some(run) = self.rest.as_mut().filter(|run| !run.is_empty()) {
                let (taken, message) = self.gather.take(run.piece())?;
                run.advance(taken);
                if let Some(message) = message {
                    return Ok(message);
                }
            }
            self.rest = Some(self.receive.read_chunk().await?.ok_or(NoMessage::Ended)?);
        }
    }

    /// Waits for the hello of the other gateway.
    pub(crate) async fn hello(&mut self) -> Result<Hello, NoMessage> {
        Ok(Hello::decode(&self.next().await?)?)
    }

    /// The stream, and what came behind the last message.
    pub(crate) fn into_rest(self) -> (ReceiveHalf, Option<Run>) {
        (self.receive, self.rest.filter(|run| !run.is_empty()))
    }
}
