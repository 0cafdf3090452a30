//! A connection as programs see it.

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
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

/// An encrypted connection to a peer. Clones are handles to the same connection.
///
/// When all handles and all streams are dropped the connection ends, as soon as the streams that
/// were finished have been delivered.
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
    known: Known,
}

/// What is known of the peer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Known {
    /// A server.
    Server(TrustOutcome),
    /// A client, and the key it has shown and proven, if it was asked.
    Client(Option<Fingerprint>),
}

impl Connection {
    pub(crate) fn new(handle: Handle, known: Known) -> Self {
        Self { handle: Arc::new(handle), known }
    }

    /// Opens a stream in both directions. Waits while the peer has as many open as it allows.
    pub async fn open_stream(&self) -> Result<Stream, OpenError> {
        let (send, receive) = self.halves(self.open(StreamKind::Ordered).await?);
        Ok(Stream::new(send, receive))
    }

    /// The next stream that the peer opened.
    pub async fn accept_stream(&self) -> Result<Stream, OpenError> {
        let (send, receive) = self.halves(self.accept(StreamKind::Ordered).await?);
        Ok(Stream::new(send, receive))
    }

    /// Opens an object: bytes in one direction, which arrive as they come.
    pub async fn open_object(&self) -> Result<ObjectSender, OpenError> {
        let link = self.open(StreamKind::Object).await?;
        Ok(ObjectSender::new(SendHalf::new(self.handle.clone(), link)))
    }

    /// The next object that the peer opened.
    pub async fn accept_object(&self) -> Result<ObjectReceiver, OpenError> {
        let link = self.accept(StreamKind::Object).await?;
        Ok(ObjectReceiver::new(ReceiveHalf::new(self.handle.clone(), link)))
    }

    /// Ends the connection at once, whatever is under way. The peer is told `code`, which is at
    /// least [`crate::code::APPLICATION`] or [`crate::code::DONE`], and `reason`.
    pub fn close(&self, code: u64, reason: &str) {
        self.handle.link.order(Order::Close(code, reason.to_owned()));
    }

    /// Waits for the end of the connection and gives its reason.
    pub async fn closed(&self) -> CloseReason {
        let link = &self.handle.link;
        let place = Arc::new(Place::default());
        poll_fn(|context| {
            link.on_closed.poll(&place, context, || link.end().map(|end| end.reason.clone()))
        })
        .await
    }

    /// Why the connection ended, if it has.
    pub fn close_reason(&self) -> Option<CloseReason> {
        self.handle.link.end().map(|end| end.reason.clone())
    }

    #[cfg(test)]
    pub(crate) fn crumbs(&self) -> u64 {
        self.handle.link.crumbs()
    }

    /// A snapshot of everything there is to see; after the end, the last one.
    pub async fn stats(&self) -> Option<Stats> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Stats(reply));
        let stats = question.await;
        stats.or_else(|| self.handle.link.end().map(|end| end.stats))
    }

    /// What is worth remembering of the path; `None` if not enough is known yet.
    pub async fn hint(&self) -> Option<PathHint> {
        let (reply, question) = ask();
        self.handle.link.order(Order::Hint(reply));
        question.await.flatten()
    }

    /// Caps the payload sent, retransmissions not counted.
    pub fn set_payload_rate(&self, rate: Option<Rate>) {
        self.handle.link.order(Order::SetPayloadRate(rate));
    }

    /// The peer's address.
    pub fn remote_addr(&self) -> SocketAddr {
        self.handle.link.remote
    }

    /// How the server is known; `None` at the server.
    pub const fn trust(&self) -> Option<TrustOutcome> {
        match self.known {
            Known::Server(outcome) => Some(outcome),
            Known::Client(_) => None,
        }
    }

    /// The key of a client that a listener with [`hikyaku_crypto::ServerCredentials::mutual`] has accepted.
    /// It has proven to hold it; whether it is the right one is for the caller to say.
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
                // Asked in this order: what was opened before the end may still be accepted.
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
