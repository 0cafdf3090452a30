//! The listening side of a driver: the admission of clients.

use super::half_open::{Begun, HalfOpen};
use crate::config::ListenerConfig;
use crate::lobby::Lobby;
use crate::route::{self, Address, Entrance, Stranger, Verdict};
use hikyaku_crypto::{Secret, ServerCredentials, TokenKey};
use hikyaku_proto::Config;
use hikyaku_units::Instant;
use std::net::SocketAddr;
use std::sync::Arc;

/// The state that a listener needs to admit clients. Clones, of the drivers of one port, share it.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) credentials: ServerCredentials,
    pub(crate) config: Config,
    pub(crate) lobby: Arc<Lobby>,
    pub(super) half_open: Arc<HalfOpen>,
    /// From how many handshakes under way on an address must be proven.
    pub(crate) prove_from: usize,
    tokens: Arc<TokenKey>,
    /// The secret that the first packet must prove to know, if one is set.
    secret: Option<Secret>,
}

/// The reaction to a datagram of an unknown address.
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
            half_open: Arc::default(),
            prove_from: config.prove_from,
            tokens: Arc::new(TokenKey::generate()),
            secret: config.secret,
        }
    }

    /// Judges a datagram of an unknown connection. One that is accepted counts as a handshake under way.
    // fuzz: strangers
    pub(crate) fn judge(&self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Answer {
        let load = route::Load { half_open: self.half_open.count(), prove_from: self.prove_from };
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
            // spec: hs-10
            Verdict::Accept(Stranger { destination, .. }, _)
                if self.half_open.begin(from, destination) == Begun::No =>
            {
                Answer::Nothing
            }
            Verdict::Accept(stranger, address) => Answer::Accept(stranger, address),
        }
    }

    /// A Retry packet, with which a client at `from` proves its address.
    pub(crate) fn retry(&self, now: Instant, from: SocketAddr, stranger: &Stranger) -> Vec<u8> {
        route::retry(stranger, self.tokens.mint(now, from, stranger.destination))
    }
}
