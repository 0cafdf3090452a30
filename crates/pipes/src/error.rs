//! Errors of streams.

use hikyaku_proto::CloseReason;

/// Why a stream cannot be opened or accepted.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OpenError {
    /// The connection has ended.
    #[error("the connection has ended: {0}")]
    Closed(CloseReason),
}

/// Why no more can be read from a stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// The peer has reset the stream with this code.
    #[error("the peer gave the stream up (code {0})")]
    Reset(u64),
    /// The connection has ended.
    #[error("the connection has ended: {0}")]
    Closed(CloseReason),
}

/// Why no more can be written to a stream.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum WriteError {
    /// The caller has finished or reset it.
    #[error("the stream is finished")]
    Finished,
    /// The peer has asked this end to stop sending, with this code.
    #[error("the peer does not want the stream (code {0})")]
    Stopped(u64),
    /// The connection has ended.
    #[error("the connection has ended: {0}")]
    Closed(CloseReason),
}
