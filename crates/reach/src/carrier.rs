//! Carriers of a connection: the transport over UDP, or a reliable pipe such as the channel of ssh.
//!
//! Both have streams and objects with one meaning, so that callers need not know the carrier.
//!
//! All payload passes through the halves of streams and the objects of this module (`carrier/streams.rs`). The limits of its rate are kept there,
//! in both directions and on either carrier ([`Pace`]).

mod streams;

use crate::pace::Paces;
use hikyaku_net::blocking::block_on;
use hikyaku_net::{AppCode, CloseReason, OpenError, Rate, Run};
use hikyaku_transfer::Pace;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
pub use streams::Incoming;

/// Interval between checks whether the other end has acknowledged a close.
const LOOK: Duration = Duration::from_millis(2);

/// A connection, stream or object over either carrier, with the limits of its connection.
#[derive(Clone)]
pub struct Carried<U, P> {
    by: By<U, P>,
    paces: Arc<Paces>,
}

/// A carrier.
#[derive(Clone)]
enum By<U, P> {
    /// Datagrams of the transport.
    Udp(U),
    /// A reliable pipe: ssh's channel, TCP connections, or a socket within this machine.
    Pipe(P),
}

/// A connection to the other end.
pub type Connection = Carried<hikyaku_net::Connection, hikyaku_pipes::Connection>;
/// A stream in both directions.
pub type Stream = Carried<hikyaku_net::Stream, hikyaku_pipes::Stream>;
/// Its direction to the other end.
pub type SendHalf = Carried<hikyaku_net::SendHalf, hikyaku_pipes::SendHalf>;
/// Its direction from the other end.
pub type ReceiveHalf = Incoming<hikyaku_net::ReceiveHalf, hikyaku_pipes::ReceiveHalf, Run>;
/// An object to the other end.
pub type ObjectSender = Carried<hikyaku_net::ObjectSender, hikyaku_pipes::ObjectSender>;
/// An object from the other end.
pub type ObjectReceiver =
    Incoming<hikyaku_net::ObjectReceiver, hikyaku_pipes::ObjectReceiver, (u64, Run)>;

/// Figures of a connection.
pub struct Seen {
    /// Bytes of packets sent.
    pub sent: u64,
    /// Bytes of payload in them.
    pub sent_payload: u64,
    /// A counter that grows whenever data of the other end arrive.
    pub heard: u64,
    /// The smoothed round-trip time.
    pub round_trip: Duration,
    /// The limit on what this end sends.
    pub held: Held,
    /// Further figures of the transport over UDP.
    pub packets: Option<Packets>,
    /// Data that wait to be read; only the transport over UDP knows them.
    pub unread: Option<Unread>,
}

/// The limit on what this end sends.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Held {
    /// The rate control does not know the path yet.
    Starting,
    /// The rate control allows this number of bytes a second.
    ByRate(f64),
    /// The pipe itself is the limit.
    ByPipe {
        /// Whether the peer has given no credit for more.
        is_held_by_peer: bool,
    },
}

/// Arrived and unread data of all streams.
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
    /// Retransmitted payload bytes.
    pub resent_bytes: u64,
    /// Bytes of payload in a full one.
    pub payload: u16,
    /// Seconds that they wait in queues of the path.
    pub queue: f64,
}

impl From<hikyaku_net::Connection> for Connection {
    fn from(connection: hikyaku_net::Connection) -> Self {
        Self { by: By::Udp(connection), paces: Arc::default() }
    }
}

impl From<hikyaku_pipes::Connection> for Connection {
    fn from(connection: hikyaku_pipes::Connection) -> Self {
        Self { by: By::Pipe(connection), paces: Arc::default() }
    }
}

impl<U, P> Carried<U, P> {
    /// The connection, stream or object of the transport over UDP, without the limits of this connection; `None` on another
    /// carrier.
    pub fn into_udp(self) -> Option<U> {
        match self.by {
            By::Udp(udp) => Some(udp),
            By::Pipe(_) => None,
        }
    }

    /// Whether the transport over UDP carries it.
    pub const fn is_udp(&self) -> bool {
        matches!(self.by, By::Udp(_))
    }

    /// A part of this connection, with its limits.
    fn part<V, Q>(&self, by: By<V, Q>) -> Carried<V, Q> {
        Carried { by, paces: self.paces.clone() }
    }
}

impl Connection {
    /// Opens a stream.
    pub async fn open_stream(&self) -> Result<Stream, OpenError> {
        let by = match &self.by {
            By::Udp(udp) => udp.open_stream().await.map(By::Udp),
            By::Pipe(pipe) => pipe.open_stream().await.map(By::Pipe).map_err(open_error),
        };
        by.map(|by| self.part(by))
    }

    /// The next stream of the other end.
    pub async fn accept_stream(&self) -> Result<Stream, OpenError> {
        let by = match &self.by {
            By::Udp(udp) => udp.accept_stream().await.map(By::Udp),
            By::Pipe(pipe) => pipe.accept_stream().await.map(By::Pipe).map_err(open_error),
        };
        by.map(|by| self.part(by))
    }

    /// A stream that the transport over UDP has opened.
    pub(crate) fn stream_of_udp(&self, stream: hikyaku_net::Stream) -> Stream {
        self.part(By::Udp(stream))
    }

    /// Opens an object.
    pub async fn open_object(&self) -> Result<ObjectSender, OpenError> {
        let by = match &self.by {
            By::Udp(udp) => udp.open_object().await.map(By::Udp),
            By::Pipe(pipe) => pipe.open_object().await.map(By::Pipe).map_err(open_error),
        };
        by.map(|by| self.part(by))
    }

    /// The next object of the other end.
    pub async fn accept_object(&self) -> Result<ObjectReceiver, OpenError> {
        let by = match &self.by {
            By::Udp(udp) => udp.accept_object().await.map(By::Udp),
            By::Pipe(pipe) => pipe.accept_object().await.map(By::Pipe).map_err(open_error),
        };
        by.map(|by| Incoming::new(self.part(by)))
    }

    /// Ends the connection at once.
    pub fn close(&self, code: u64, reason: &str) {
        match &self.by {
            By::Udp(udp) => udp.close(AppCode::new(code), reason),
            By::Pipe(pipe) => pipe.close(code, reason),
        }
    }

    /// Waits at most `time` until a pipe has taken all queued data. The transport over UDP does so when its endpoint is
    /// dropped.
    pub fn flush(&self, time: Duration) {
        match &self.by {
            By::Udp(_) => {}
            By::Pipe(pipe) => pipe.flush(time),
        }
    }

    /// Waits at most `time` until the other end has acknowledged the close of this connection. If the process ends before,
    /// the other end waits for its idle time-out.
    pub fn tell_end(&self, time: Duration) {
        match &self.by {
            By::Udp(udp) => {
                let begin = Instant::now();
                // The transport forgets a connection when the other end has acknowledged its close.
                while block_on(udp.silence()).is_some() && begin.elapsed() < time {
                    thread::sleep(LOOK);
                }
            }
            By::Pipe(pipe) => pipe.flush(time),
        }
    }

    /// Limits the rate of payload that this end sends on this connection, beside the limits that it shares with others. Default: no
    /// limit.
    pub fn set_payload_rate(&self, rate: Option<Rate>) {
        self.paces.set_own(rate, || self.is_over());
        self.tell_transport();
    }

    /// Limits the payload that this end sends to `sent`, and the payload that it receives to `received`. Connections with a
    /// common pace share its rate.
    pub fn limit(&self, sent: &Arc<Pace>, received: &Arc<Pace>) {
        self.paces.share((sent, received), || self.is_over());
        self.tell_transport();
    }

    /// A function that returns whether the connection has ended.
    fn is_over(&self) -> Box<dyn Fn() -> bool + Send + Sync> {
        match self.by.clone() {
            By::Udp(udp) => Box::new(move || udp.close_reason().is_some()),
            By::Pipe(pipe) => Box::new(move || pipe.close_reason().is_some()),
        }
    }

    /// Passes the limit to the rate control of the transport, which then does not probe for more, and spreads the packets of
    /// a piece evenly.
    fn tell_transport(&self) {
        if let By::Udp(udp) = &self.by {
            udp.set_payload_rate(self.paces.least_sent());
        }
    }

    /// Waits for its end.
    pub async fn closed(&self) -> CloseReason {
        match &self.by {
            By::Udp(udp) => udp.closed().await,
            By::Pipe(pipe) => pipe.closed().await,
        }
    }

    /// Why it has ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        match &self.by {
            By::Udp(udp) => udp.close_reason(),
            By::Pipe(pipe) => pipe.close_reason(),
        }
    }

    /// The figures; `None` when the transport has ended.
    pub async fn seen(&self) -> Option<Seen> {
        match &self.by {
            By::Udp(udp) => {
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
            By::Pipe(pipe) => {
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

fn open_error(hikyaku_pipes::OpenError::Closed(reason): hikyaku_pipes::OpenError) -> OpenError {
    OpenError::Closed(reason)
}
