//! The listening side of a driver: who gets in, and where they wait to be accepted.

use crate::config::ListenerConfig;
use crate::error::AcceptError;
use crate::link::Handle;
use crate::notify::{Notify, Place};
use crate::route::{self, Address, Entrance, Stranger, Verdict};
use crossbeam_queue::SegQueue;
use hikyaku_crypto::{Fingerprint, Secret, ServerCredentials, TokenKey};
use hikyaku_proto::Config;
use hikyaku_units::Instant;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

/// What a listener needs to let somebody in.
pub(crate) struct Door {
    pub(crate) credentials: ServerCredentials,
    pub(crate) config: Config,
    pub(crate) lobby: Arc<Lobby>,
    pub(crate) half_open: usize,
    /// From how many handshakes under way on an address must be proven.
    pub(crate) prove_from: usize,
    tokens: TokenKey,
    /// What the first packet must prove to know, if anything.
    secret: Option<Secret>,
}

/// Connections that nobody has accepted yet.
#[derive(Default)]
pub(crate) struct Lobby {
    waiting: SegQueue<Guest>,
    closed: AtomicBool,
    on_change: Notify,
}

/// A connection that waits to be accepted, and the key that its client has shown and proven, if it was asked.
pub(crate) struct Guest {
    pub(crate) handle: Handle,
    pub(crate) shown: Option<Fingerprint>,
}

/// More connections than this do not wait to be accepted.
const BACKLOG: usize = 1024;

/// What a stranger's datagram leads to.
pub(crate) enum Answer {
    Nothing,
    Packet(Vec<u8>),
    /// A token for its address ([`Door::retry`]): made only if it is to be sent.
    Retry(Stranger),
    Accept(Stranger, Address),
}

impl Door {
    pub(crate) fn new(config: ListenerConfig, lobby: Arc<Lobby>) -> Self {
        Self {
            credentials: config.credentials,
            config: config.transport,
            lobby,
            half_open: 0,
            prove_from: config.prove_from,
            tokens: TokenKey::generate(),
            secret: config.secret,
        }
    }

    /// Judges a datagram of an unknown connection.
    // fuzz: strangers
    pub(crate) fn judge(&self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Answer {
        let load = route::Load { half_open: self.half_open, prove_from: self.prove_from };
        let entrance = if self.secret.is_some() { Entrance::Invited } else { Entrance::Open };
        let verdict =
            route::judge(datagram, load, entrance, |stranger, token| match &self.secret {
                Some(secret) => secret.admits(stranger.destination, token),
                None => self.tokens.check(now, from, stranger.destination, token),
            });
        match verdict {
            Verdict::Silence => Answer::Nothing,
            Verdict::Versions(packet) => Answer::Packet(packet),
            Verdict::Prove(stranger) => Answer::Retry(stranger),
            Verdict::Accept(stranger, address) => Answer::Accept(stranger, address),
        }
    }

    /// What has a stranger at `from` prove that it is there.
    pub(crate) fn retry(&self, now: Instant, from: SocketAddr, stranger: &Stranger) -> Vec<u8> {
        route::retry(stranger, self.tokens.mint(now, from, stranger.destination))
    }
}

impl Lobby {
    /// Lets a connection wait; gives it back if too many do.
    pub(crate) fn enter(&self, guest: Guest) -> Result<(), Guest> {
        if self.waiting.len() >= BACKLOG || self.closed.load(Ordering::Acquire) {
            return Err(guest);
        }
        self.waiting.push(guest);
        self.on_change.wake_all();
        Ok(())
    }

    pub(crate) fn poll(
        &self,
        place: &Arc<Place>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Guest, AcceptError>> {
        self.on_change.poll(place, context, || {
            let is_closed = self.closed.load(Ordering::Acquire);
            let next = self.waiting.pop();
            next.map(Ok).or_else(|| is_closed.then_some(Err(AcceptError::Closed)))
        })
    }

    /// Nobody comes any more.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.on_change.wake_all();
    }

    /// Sends away those who wait.
    pub(crate) fn clear(&self) {
        while self.waiting.pop().is_some() {}
    }
}
