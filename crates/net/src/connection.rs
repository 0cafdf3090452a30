//! The application's handle to a connection.

use crate::codes::AppCode;
use crate::command::Order;
use crate::error::OpenError;
use crate::link::{Handle, StreamLink, kind_index};
use crate::notify::Place;
use crate::object::{ObjectReceiver, ObjectSender};
use crate::receive_half::ReceiveHalf;
use crate::reply::ask;
use crate::send_half::SendHalf;
use crate::stream::Stream;
use hikyaku_crypto::{Fingerprint, TrustOutcome};
use hikyaku_proto::{CloseReason, PathHint, Stats, StreamKind};
use hikyaku_units::Rate;
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

/// An encrypted connection to a peer. A clone is a handle to the same connection.
///
/// The connection ends when all handles and all streams are dropped and the streams that were
/// finished have been delivered.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    known: Known,
}

/// The properties of the peer that the handshake proved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// The peer is a server, accepted for this reason.
    Server(TrustOutcome),
    /// The peer is a client. If it was asked for a key, it has proven to hold the key with this
    /// fingerprint.
    Client(Option<Fingerprint>),
}

impl Connection {
    pub(crate) fn new(handle: Handle, known: Known) -> Self {
        Self { handle: Arc::new(handle), known }
    }

    /// Opens a stream in both directions. Waits while as many streams are open as the peer allows. The
    /// peer learns of the stream when the first bytes are written or the stream is finished.
    pub async fn open_stream(&self) -> Result<Stream, OpenError> {
        let (send, receive) = self.halves(self.open(StreamKind::Ordered).await?);
        Ok(Stream::new(send, receive))
    }

    /// Waits for the next stream that the peer opens.
    pub async fn accept_stream(&self) -> Result<Stream, OpenError> {
        let (send, receive) = self.halves(self.accept(StreamKind::Ordered).await?);
        Ok(Stream::new(send, receive))
    }

    /// Opens an object: bytes in one direction, which the peer reads with their offsets in the order
    /// of arrival. Waits while as many objects are open as the peer allows.
    pub async fn open_object(&self) -> Result<ObjectSender, OpenError> {
        let link = self.open(StreamKind::Object).await?;
        Ok(ObjectSender::new(SendHalf::new(self.handle.clone(), link)))
    }

    /// Waits for the next object that the peer opens.
    pub async fn accept_object(&self) -> Result<ObjectReceiver, OpenError> {
        let link = self.accept(StreamKind::Object).await?;
        Ok(ObjectReceiver::new(ReceiveHalf::new(self.handle.clone(), link)))
    }

    /// Closes the connection at once. Bytes that the peer's transport has not acknowledged may be
    /// lost. The peer receives `code` and `reason` ([`CloseReason::Peer`]).
    ///
    /// The call does not wait until the close is sent: [`crate::Endpoint::shutdown`] does.
    pub fn close(&self, code: AppCode, reason: &str) {
        self.handle.link.order(Order::Close(code.number(), reason.to_owned()));
    }

    /// Waits until the connection has ended, and returns the reason.
    pub async fn closed(&self) -> CloseReason {
        let link = &self.handle.link;
        let place = Arc::new(Place::default());
        poll_fn(|context| {
            link.on_closed.poll(&place, context, || link.end().map(|end| end.reason.clone()))
        })
        .await
    }

    /// The reason of the connection's end. `None` while it is open.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.link.end().map(|end| end.reason.clone())
    }

    #[cfg(test)]
    pub(crate) fn crumbs(&self) -> u64 {
        self.handle.link.crumbs()
    }

    /// The statistics of the connection; after its end, the last ones. `None` if the endpoint ended
    /// without leaving any.
    pub async fn stats(&self) -> Option<Stats> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Stats(reply));
        let stats = question.await;
        stats.or_else(|| self.handle.link.end().map(|end| end.stats))
    }

    /// The rate and round-trip time with which another connection on this path may start. `None`
    /// while too little is measured, and once the driver has forgotten the connection.
    pub async fn hint(&self) -> Option<PathHint> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Hint(reply));
        question.await.flatten()
    }

    /// The time since the last packet of the peer. `None` after the connection's end. On a path that
    /// works it is shorter than the keep-alive interval and a round trip.
    pub async fn silence(&self) -> Option<Duration> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Silence(reply));
        question.await
    }

    /// Limits the rate of payload that is sent. Retransmissions do not count. `None` removes the
    /// limit.
    pub fn set_payload_rate(&self, rate: Option<Rate>) {
        self.handle.link.order(Order::SetPayloadRate(rate));
    }

    /// The peer's address.
    pub fn remote_addr(&self) -> SocketAddr {
        self.handle.link.remote
    }

    /// Why the server was accepted. `None` at the server's end.
    pub const fn trust(&self) -> Option<TrustOutcome> {
        match self.known {
            Known::Server(outcome) => Some(outcome),
            Known::Client(_) => None,
        }
    }

    /// The fingerprint of the client's key, which the client has proven to hold. The caller decides
    /// whether it is the expected one. `None` at the client's end, and without
    /// [`crate::ServerCredentials::mutual`].
    pub const fn client_key(&self) -> Option<Fingerprint> {
        match self.known {
            Known::Server(_) => None,
            Known::Client(key) => key,
        }
    }

    fn halves(&self, link: Arc<StreamLink>) -> (SendHalf, ReceiveHalf) {
        let send = SendHalf::new(self.handle.clone(), link.clone());
        (send, ReceiveHalf::new(self.handle.clone(), link))
    }

    async fn open(&self, kind: StreamKind) -> Result<Arc<StreamLink>, OpenError> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Open(kind, reply));
        question.await.ok_or_else(|| OpenError::Closed(self.handle.link.reason()))?
    }

    async fn accept(&self, kind: StreamKind) -> Result<Arc<StreamLink>, OpenError> {
        let link = &self.handle.link;
        let place = Arc::new(Place::default());
        let next = || link.opened[kind_index(kind)].pop();
        poll_fn(|context| {
            let found = link.on_opened.poll(&place, context, || {
                // The end is read before the queue, so a stream that was opened before the end is
                // still accepted.
                let is_over = link.end().is_some();
                next().map(Ok).or_else(|| is_over.then(|| Err(OpenError::Closed(link.reason()))))
            });
            match found {
                Poll::Ready(found) => Poll::Ready(found),
                Poll::Pending => Poll::Pending,
            }
        })
        .await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote_addr", &self.remote_addr())
            .field("known", &self.known)
            .field("close_reason", &self.close_reason())
            .finish_non_exhaustive()
    }
}
