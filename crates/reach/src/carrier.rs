//! What carries a connection: the transport over UDP, or a reliable pipe such as the channel of ssh.
//!
//! Both have streams and objects with the same meaning, so that who uses them does not know which one it is.

use bytes::Bytes;
use hikyaku_net::{
    AppCode, CloseReason, OpenError, Priority, Rate, ReadError, Run, StreamCode, StreamId,
    WriteError,
};
use std::time::Duration;

/// The same thing over either carrier.
#[derive(Clone)]
pub enum Carried<U, P> {
    /// Datagrams of the transport.
    Udp(U),
    /// A reliable pipe: ssh's channel, or a socket within this machine.
    Pipe(P),
}

/// A connection to the other end.
pub type Connection = Carried<hikyaku_net::Connection, hikyaku_pipes::Connection>;
/// A stream in both directions.
pub type Stream = Carried<hikyaku_net::Stream, hikyaku_pipes::Stream>;
/// Its direction to the other end.
pub type SendHalf = Carried<hikyaku_net::SendHalf, hikyaku_pipes::SendHalf>;
/// Its direction from the other end.
pub type ReceiveHalf = Carried<hikyaku_net::ReceiveHalf, hikyaku_pipes::ReceiveHalf>;
/// An object to the other end.
pub type ObjectSender = Carried<hikyaku_net::ObjectSender, hikyaku_pipes::ObjectSender>;
/// An object from the other end.
pub type ObjectReceiver = Carried<hikyaku_net::ObjectReceiver, hikyaku_pipes::ObjectReceiver>;

/// What there is to see of a connection.
pub struct Seen {
    /// Bytes of packets sent.
    pub sent: u64,
    /// Bytes of payload in them.
    pub sent_payload: u64,
    /// Something that grows as long as the other end is heard.
    pub heard: u64,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
    /// Whether this end sends as much as it may.
    pub held: Held,
    /// What the transport over UDP knows besides.
    pub packets: Option<Packets>,
    /// What waits to be read, as far as the carrier knows it: the transport over UDP does.
    pub unread: Option<Unread>,
}

/// Whether this end sends as much as it may.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Held {
    /// The rate control does not know the path yet.
    Starting,
    /// The rate control allows so many bytes a second.
    ByRate(f64),
    /// The pipe takes what it takes.
    ByPipe {
        /// Whether the peer has given no credit for more.
        is_held_by_peer: bool,
    },
}

/// What has arrived and is not read, of all streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unread {
    /// Bytes that are not read, gaps before them included.
    pub bytes: u64,
    /// Bytes of them that wait for missing data before them.
    pub held: u64,
    /// Bytes for which there is room.
    pub window: u64,
}

/// Packets of the transport over UDP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packets {
    /// Packets sent.
    pub sent: u64,
    /// Packets declared lost.
    pub lost: u64,
    /// Payload bytes sent again.
    pub resent_bytes: u64,
    /// Bytes of payload in a full one.
    pub payload: u16,
    /// Seconds that they wait in queues of the path.
    pub queue: f64,
}

impl From<hikyaku_net::Connection> for Connection {
    fn from(connection: hikyaku_net::Connection) -> Self {
        Self::Udp(connection)
    }
}

impl From<hikyaku_pipes::Connection> for Connection {
    fn from(connection: hikyaku_pipes::Connection) -> Self {
        Self::Pipe(connection)
    }
}

impl Connection {
    /// Opens a stream.
    pub async fn open_stream(&self) -> Result<Stream, OpenError> {
        match self {
            Self::Udp(udp) => udp.open_stream().await.map(Stream::Udp),
            Self::Pipe(pipe) => pipe.open_stream().await.map(Stream::Pipe).map_err(open_error),
        }
    }

    /// The next stream of the other end.
    pub async fn accept_stream(&self) -> Result<Stream, OpenError> {
        match self {
            Self::Udp(udp) => udp.accept_stream().await.map(Stream::Udp),
            Self::Pipe(pipe) => pipe.accept_stream().await.map(Stream::Pipe).map_err(open_error),
        }
    }

    /// Opens an object.
    pub async fn open_object(&self) -> Result<ObjectSender, OpenError> {
        match self {
            Self::Udp(udp) => udp.open_object().await.map(ObjectSender::Udp),
            Self::Pipe(pipe) => {
                pipe.open_object().await.map(ObjectSender::Pipe).map_err(open_error)
            }
        }
    }

    /// The next object of the other end.
    pub async fn accept_object(&self) -> Result<ObjectReceiver, OpenError> {
        match self {
            Self::Udp(udp) => udp.accept_object().await.map(ObjectReceiver::Udp),
            Self::Pipe(pipe) => {
                pipe.accept_object().await.map(ObjectReceiver::Pipe).map_err(open_error)
            }
        }
    }

    /// Ends the connection at once.
    pub fn close(&self, code: u64, reason: &str) {
        match self {
            Self::Udp(udp) => udp.close(AppCode::new(code), reason),
            Self::Pipe(pipe) => pipe.close(code, reason),
        }
    }

    /// Waits until a pipe has taken what remains to be said, at most so long. The transport over UDP does so when its
    /// endpoint is dropped.
    pub fn flush(&self, time: Duration) {
        match self {
            Self::Udp(_) => {}
            Self::Pipe(pipe) => pipe.flush(time),
        }
    }

    /// Limits the rate of payload that this end sends, where the carrier can. Default: no limit.
    pub fn set_payload_rate(&self, rate: Option<Rate>) {
        match self {
            Self::Udp(udp) => udp.set_payload_rate(rate),
            // Its rate was set when it began.
            Self::Pipe(_) => {}
        }
    }

    /// Waits for its end.
    pub async fn closed(&self) -> CloseReason {
        match self {
            Self::Udp(udp) => udp.closed().await,
            Self::Pipe(pipe) => pipe.closed().await,
        }
    }

    /// Why it has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        match self {
            Self::Udp(udp) => udp.close_reason(),
            Self::Pipe(pipe) => pipe.close_reason(),
        }
    }

    /// What there is to see; `None` when the transport has ended.
    pub async fn seen(&self) -> Option<Seen> {
        match self {
            Self::Udp(udp) => {
                let stats = udp.stats().await?;
                Some(Seen {
                    sent: stats.sent.bytes,
                    sent_payload: stats.sent_payload.bytes(),
                    heard: stats.received.packets,
                    round_trip: stats.path.srtt,
                    held: match stats.is_starting() {
                        true => Held::Starting,
                        false => Held::ByRate(stats.pacing_rate().bytes_per_sec()),
                    },
                    packets: Some(Packets {
                        sent: stats.sent.packets,
                        lost: stats.lost_packets,
                        resent_bytes: stats.resent.bytes(),
                        payload: stats.datagram,
                        queue: stats.path.queue.as_secs_f64(),
                    }),
                    unread: Some(Unread {
                        bytes: stats.unread.bytes(),
                        held: stats.held.bytes(),
                        window: stats.receive_window.bytes(),
                    }),
                })
            }
            Self::Pipe(pipe) => {
                let figures = pipe.figures();
                Some(Seen {
                    sent: figures.sent,
                    sent_payload: figures.sent,
                    heard: figures.frames,
                    round_trip: figures.round_trip.unwrap_or_default(),
                    held: Held::ByPipe { is_held_by_peer: figures.is_held_by_peer },
                    packets: None,
                    unread: None,
                })
            }
        }
    }
}

impl Stream {
    /// Its two directions.
    pub fn split(self) -> (SendHalf, ReceiveHalf) {
        match self {
            Self::Udp(udp) => {
                let (send, receive) = udp.split();
                (SendHalf::Udp(send), ReceiveHalf::Udp(receive))
            }
            Self::Pipe(pipe) => {
                let (send, receive) = pipe.split();
                (SendHalf::Pipe(send), ReceiveHalf::Pipe(receive))
            }
        }
    }
}

impl SendHalf {
    /// The stream's number, which is the same at both ends.
    pub fn id(&self) -> StreamId {
        match self {
            Self::Udp(udp) => udp.id(),
            Self::Pipe(pipe) => pipe.id(),
        }
    }

    /// Writes without a copy; waits while there is enough to send.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        match self {
            Self::Udp(udp) => udp.write_chunk(bytes).await,
            Self::Pipe(pipe) => pipe.write_chunk(bytes).await.map_err(write_error),
        }
    }

    /// Ends it.
    pub fn finish(&mut self) {
        match self {
            Self::Udp(udp) => udp.finish(),
            Self::Pipe(pipe) => pipe.finish(),
        }
    }

    /// Ends it with an error: the other end reads what was written, and then gets this code.
    pub fn reset_after(&mut self, code: u64) {
        match self {
            Self::Udp(udp) => udp.reset_after(StreamCode::new(code)),
            Self::Pipe(pipe) => pipe.reset_after(code),
        }
    }

    /// Waits until the other end's transport has all of it. Before its end, this waits for an error: that the other end
    /// wants no more, or is gone.
    pub async fn delivered(&mut self) -> Result<(), WriteError> {
        match self {
            Self::Udp(udp) => udp.delivered().await,
            Self::Pipe(pipe) => pipe.delivered().await.map_err(write_error),
        }
    }
}

impl ReceiveHalf {
    /// Wants no more of it: the other end's writer gets this code.
    pub fn stop(&mut self, code: u64) {
        match self {
            Self::Udp(udp) => udp.stop(StreamCode::new(code)),
            Self::Pipe(pipe) => pipe.stop(code),
        }
    }

    /// The next bytes; `None` at the end.
    pub async fn read_chunk(&mut self) -> Result<Option<Run>, ReadError> {
        match self {
            Self::Udp(udp) => udp.read_chunk().await,
            Self::Pipe(pipe) => pipe.read_chunk().await.map_err(read_error),
        }
    }
}

impl ObjectSender {
    /// The same number as at the other end.
    pub fn id(&self) -> StreamId {
        match self {
            Self::Udp(udp) => udp.id(),
            Self::Pipe(pipe) => pipe.id(),
        }
    }

    /// Writes without a copy; waits while there is enough to send.
    pub async fn write_chunk(&mut self, bytes: Bytes) -> Result<(), WriteError> {
        match self {
            Self::Udp(udp) => udp.write_chunk(bytes).await,
            Self::Pipe(pipe) => pipe.write_chunk(bytes).await.map_err(write_error),
        }
    }

    /// Ends it.
    pub fn finish(&mut self) {
        match self {
            Self::Udp(udp) => udp.finish(),
            Self::Pipe(pipe) => pipe.finish(),
        }
    }

    /// Takes back what was not sent yet, and ends it. The length that it has; `None` if its end was sent before, or if the
    /// carrier cannot take anything back.
    pub async fn cut(&mut self) -> Result<Option<u64>, WriteError> {
        match self {
            Self::Udp(udp) => udp.cut().await,
            Self::Pipe(pipe) => {
                pipe.finish();
                Ok(None)
            }
        }
    }

    /// Which bytes go first, where the carrier has queues.
    pub fn set_priority(&mut self, priority: Priority) {
        match self {
            Self::Udp(udp) => udp.set_priority(priority),
            Self::Pipe(_) => {}
        }
    }

    /// Gives it up.
    pub fn reset(&mut self, code: u64) {
        match self {
            Self::Udp(udp) => udp.reset(StreamCode::new(code)),
            Self::Pipe(pipe) => pipe.reset(code),
        }
    }
}

impl ObjectReceiver {
    /// The same number as at the other end.
    pub fn id(&self) -> StreamId {
        match self {
            Self::Udp(udp) => udp.id(),
            Self::Pipe(pipe) => pipe.id(),
        }
    }

    /// The next part with its offset; `None` when all have come.
    pub async fn next(&mut self) -> Result<Option<(u64, Run)>, ReadError> {
        match self {
            Self::Udp(udp) => udp.next().await,
            Self::Pipe(pipe) => pipe.next().await.map_err(read_error),
        }
    }

    /// Wants no more of it.
    pub fn stop(&mut self, code: u64) {
        match self {
            Self::Udp(udp) => udp.stop(StreamCode::new(code)),
            Self::Pipe(pipe) => pipe.stop(code),
        }
    }
}

fn open_error(hikyaku_pipes::OpenError::Closed(reason): hikyaku_pipes::OpenError) -> OpenError {
    OpenError::Closed(reason)
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
