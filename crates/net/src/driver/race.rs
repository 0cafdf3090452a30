//! Connecting to a name with several addresses: each gets a head start over the next, and the first
//! that answers wins (the idea of RFC 8305).

use crate::command::Key;
use crate::error::ConnectError;
use crate::link::Handle;
use crate::paths::PathKey;
use crate::reply::Reply;
use hikyaku_crypto::TrustHandle;
use hikyaku_proto::{ClientIds, CloseReason, Config, Session};
use hikyaku_units::Instant;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// A request to connect, with a handshake prepared for each address.
pub(crate) struct ConnectRequest {
    /// The host as the caller named it.
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) attempts: VecDeque<Attempt>,
}

/// One address, and the handshake prepared for it.
pub(crate) struct Attempt {
    pub(crate) address: SocketAddr,
    pub(crate) config: Config,
    pub(crate) ids: ClientIds,
    /// The token of the first packet, made with the listener's secret.
    pub(crate) token: Option<Vec<u8>>,
    pub(crate) session: Box<dyn Session>,
    pub(crate) trust: TrustHandle,
    pub(crate) path: Option<PathKey>,
}

/// The attempt that won, and how the server is trusted.
pub(crate) struct Connected {
    pub(crate) handle: Handle,
    pub(crate) trust: TrustHandle,
}

/// The number of a race.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RaceId(pub(crate) u64);

/// A race under way.
pub(crate) struct Race {
    pub(crate) id: RaceId,
    host: String,
    port: u16,
    reply: Reply<Result<Connected, ConnectError>>,
    waiting: VecDeque<Attempt>,
    running: Vec<(Key, TrustHandle)>,
    next_start: Instant,
    timeout: Duration,
    error: Option<ConnectError>,
}

const HEAD_START: Duration = Duration::from_millis(250);

impl Race {
    pub(crate) fn new(
        now: Instant,
        id: RaceId,
        request: ConnectRequest,
        reply: Reply<Result<Connected, ConnectError>>,
    ) -> Self {
        Self {
            id,
            host: request.host,
            port: request.port,
            reply,
            waiting: request.attempts,
            running: Vec::new(),
            next_start: now,
            timeout: Duration::ZERO,
            error: None,
        }
    }

    /// The next attempt, if its time has come.
    pub(crate) fn next_attempt(&mut self, now: Instant) -> Option<Attempt> {
        if now < self.next_start && !self.running.is_empty() {
            return None;
        }
        self.next_start = now + HEAD_START;
        self.waiting.pop_front()
    }

    pub(crate) fn next_start(&self) -> Option<Instant> {
        (!self.waiting.is_empty()).then_some(self.next_start)
    }

    pub(crate) fn on_started(&mut self, key: Key, trust: TrustHandle, timeout: Duration) {
        self.running.push((key, trust));
        self.timeout = timeout;
    }

    /// An attempt failed. Of several errors, a server's reason is kept over a silence.
    pub(crate) fn on_failed(&mut self, key: Key, reason: CloseReason) {
        let Some(at) = self.running.iter().position(|(running, _)| *running == key) else { return };
        let (_, trust) = self.running.remove(at);
        let error = self.error_of(reason, &trust);
        self.note(error);
    }

    /// The kernel refuses to send to the address of an attempt.
    pub(crate) fn on_unreachable(&mut self, key: Key, address: SocketAddr, text: String) {
        self.running.retain(|(running, _)| *running != key);
        self.note(ConnectError::Unreachable { address, text });
    }

    fn note(&mut self, error: ConnectError) {
        let weight = |error: &ConnectError| match error {
            ConnectError::Unreachable { .. } => 0,
            ConnectError::NoAnswer { .. } => 1,
            _ => 2,
        };
        if self.error.as_ref().is_none_or(|known| weight(known) < weight(&error)) {
            self.error = Some(error);
        }
    }

    fn error_of(&self, reason: CloseReason, trust: &TrustHandle) -> ConnectError {
        let host = self.host.clone();
        if let Some(refusal) = trust.refusal() {
            return ConnectError::Untrusted(refusal.clone());
        }
        match reason {
            CloseReason::Unreachable | CloseReason::TimedOut => {
                let seconds = self.timeout.as_secs_f64().ceil() as u64;
                ConnectError::NoAnswer { host, port: self.port, seconds }
            }
            CloseReason::Version(_) => ConnectError::Version { host },
            CloseReason::Handshake(text) | CloseReason::Violation(text) => {
                ConnectError::Handshake { host, text }
            }
            CloseReason::Local => ConnectError::EndpointClosed,
            reason @ CloseReason::Peer { .. } => ConnectError::Refused { host, reason },
        }
    }

    /// Whether an attempt can still win and the caller still waits for it.
    pub(crate) fn is_open(&self) -> bool {
        self.reply.is_wanted() && !(self.waiting.is_empty() && self.running.is_empty())
    }

    /// Whether the driver has to act at once: to start the next attempt, or to end the race.
    pub(crate) fn is_restless(&self) -> bool {
        self.running.is_empty() || !self.reply.is_wanted()
    }

    /// The running attempts other than `winner`.
    pub(crate) fn others(&self, winner: Option<Key>) -> Vec<Key> {
        self.running.iter().map(|(key, _)| *key).filter(|key| Some(*key) != winner).collect()
    }

    /// `winner` has completed its handshake.
    pub(crate) fn win(self, winner: Key, handle: Handle) {
        let trust = self.running.into_iter().find(|(key, _)| *key == winner);
        if let Some((_, trust)) = trust {
            self.reply.send(Ok(Connected { handle, trust }));
        }
    }

    /// No attempt has completed its handshake.
    pub(crate) fn lose(self) {
        self.reply.send(Err(self.error.unwrap_or(ConnectError::EndpointClosed)));
    }
}
