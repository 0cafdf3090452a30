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

/// Waits for that of the other one.
pub(crate) async fn hear_hello(receive: &mut ReceiveHalf) -> Result<Hello, NoMessage> {
    let (message, _) = read_message(receive).await?;
    Ok(Hello::decode(&message)?)
}

/// The next message of a stream, and what came behind it.
pub(crate) async fn read_message(
    receive: &mut ReceiveHalf,
) -> Result<(Vec<u8>, Option<Run>), NoMessage> {
    let mut gather = Gather::default();
    while let Some(mut run) = receive.read_chunk().await? {
        while !run.is_empty() {
            let (taken, message) = gather.take(run.piece())?;
            run.advance(taken);
            if let Some(message) = message {
                return Ok((message, Some(run).filter(|run| !run.is_empty())));
            }
        }
    }
    Err(NoMessage::Ended)
}
