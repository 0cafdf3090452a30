//! Whether the server at the other end is the one that was meant.
//!
//! TLS proves that the peer holds the key it shows; here is decided whether that key is the right
//! one: it is compared with a fingerprint that the caller pinned or that was remembered. A server
//! never met before passes the handshake and is remembered when the caller settles the matter.

use crate::fingerprint::Fingerprint;
use crate::known_peers::{KnownPeer, KnownPeers, ReadKnownPeers, Recorded, WriteKnownPeers};
use crate::peer::PeerName;
use crate::raw_key::{alone, only_ed25519_in_tls13};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, PeerIncompatible, SignatureScheme,
};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

#[cfg(test)]
mod tests;

/// Which servers a client accepts.
#[derive(Clone, Debug)]
pub enum Trust {
    /// The one with this key.
    Pinned(Fingerprint),
    /// The one with the key that this list has for the peer; any, if it has none.
    FirstUse(KnownPeers),
}

/// How a server that was accepted is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrustOutcome {
    /// By its pin, or from an earlier use.
    Known,
    /// Not at all until now; it has been remembered. The user should be shown the fingerprint.
    FirstUse(Fingerprint),
}

/// The server is not the one that was meant.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Untrusted {
    /// It does not have the pinned key.
    #[error("{peer} has the key {shown}, not {pinned}")]
    Pin {
        /// The server.
        peer: PeerName,
        /// The key it holds.
        shown: Fingerprint,
        /// The key it should hold.
        pinned: Fingerprint,
    },
    /// It has another key than at its first use.
    #[error(
        "the key of {peer} has changed: it is {shown}, but was {} on {} ({}:{}); \
         another machine may be in its place",
        known.fingerprint, known.since, file.display(), known.line
    )]
    Changed {
        /// The server.
        peer: PeerName,
        /// The key it holds.
        shown: Fingerprint,
        /// What is remembered of it.
        known: Box<KnownPeer>,
        /// Where that stands.
        file: PathBuf,
    },
}

impl Untrusted {
    /// What the user can do, in the form in which the command prints remedies.
    pub fn remedy(&self) -> String {
        match self {
            Self::Pin { .. } => "try: the fingerprint that the server prints when it starts".into(),
            Self::Changed { peer, .. } => {
                format!("try: if the server was re-installed: hikyaku known-peers forget {peer}")
            }
        }
    }
}

/// What the handshake found out.
pub(crate) enum Seen {
    /// The peer has proven that it holds the key with this fingerprint, and the key is acceptable.
    Proven(Fingerprint),
    /// The key is not acceptable.
    Refused(Untrusted),
}

impl Seen {
    const fn proven(&self) -> Option<Fingerprint> {
        match self {
            Self::Proven(fingerprint) => Some(*fingerprint),
            Self::Refused(_) => None,
        }
    }
}

pub(crate) type SeenCell = Arc<OnceLock<Seen>>;

/// Says which key the peer of a handshake has proven to hold, while the connection owns its session.
#[derive(Clone)]
pub struct PeerKey(SeenCell);

impl PeerKey {
    pub(crate) const fn new(seen: SeenCell) -> Self {
        Self(seen)
    }

    /// Its fingerprint, once the handshake is complete; `None` if it has shown none.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.get()?.proven()
    }
}

/// Follows one handshake from outside, while the connection owns its session.
pub struct TrustHandle {
    trust: Trust,
    peer: PeerName,
    seen: SeenCell,
}

/// The trust in a server cannot be settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleTrust {
    /// The handshake has not completed.
    #[error("the handshake is not complete")]
    Unfinished,
    /// The server was refused, or another connection has met another key in the meantime.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// It cannot be remembered.
    #[error("cannot remember the key of the server")]
    Record(#[from] WriteKnownPeers),
}

impl TrustHandle {
    pub(crate) fn new(trust: Trust, peer: PeerName) -> Self {
        Self { trust, peer, seen: SeenCell::default() }
    }

    pub(crate) fn seen(&self) -> SeenCell {
        self.seen.clone()
    }

    /// Why the server was refused, if it was.
    pub fn refusal(&self) -> Option<&Untrusted> {
        match self.seen.get()? {
            Seen::Refused(refusal) => Some(refusal),
            Seen::Proven(_) => None,
        }
    }

    /// The key of the server, once the handshake is complete.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.seen.get()?.proven()
    }

    /// To be called when the connection is established, before anything is entrusted to it. Says
    /// how the server is known; one met for the first time is written to the list, dated `today`.
    /// After an error the connection should be closed.
    pub fn settle(&self, today: SystemTime) -> Result<TrustOutcome, SettleTrust> {
        let shown = match self.seen.get() {
            None => return Err(SettleTrust::Unfinished),
            Some(Seen::Refused(refusal)) => return Err(refusal.clone().into()),
            Some(Seen::Proven(fingerprint)) => *fingerprint,
        };
        let list = match &self.trust {
            Trust::Pinned(_) => return Ok(TrustOutcome::Known),
            Trust::FirstUse(list) => list,
        };
        match list.record(&self.peer, shown, today)? {
            Recorded::Added => Ok(TrustOutcome::FirstUse(shown)),
            Recorded::Present(known) if known.fingerprint == shown => Ok(TrustOutcome::Known),
            Recorded::Present(known) => Err(Untrusted::Changed {
                peer: self.peer.clone(),
                shown,
                known: Box::new(known),
                file: list.path().to_owned(),
            }
            .into()),
        }
    }
}

/// What the key of one server is compared with.
#[derive(Debug)]
enum Expected {
    Pin(Fingerprint),
    Known(KnownPeer, PathBuf),
    Anything,
}

/// Decides for TLS about the key of one server.
#[derive(Debug)]
pub(crate) struct Verifier {
    peer: PeerName,
    expected: Expected,
}

impl Verifier {
    pub(crate) fn new(trust: &Trust, peer: &PeerName) -> Result<Self, ReadKnownPeers> {
        let expected = match trust {
            Trust::Pinned(pin) => Expected::Pin(*pin),
            Trust::FirstUse(list) => match list.find(peer)? {
                Some(known) => Expected::Known(known, list.path().to_owned()),
                None => Expected::Anything,
            },
        };
        Ok(Self { peer: peer.clone(), expected })
    }

    fn check(&self, shown: Fingerprint) -> Result<(), Untrusted> {
        let peer = self.peer.clone();
        match &self.expected {
            Expected::Pin(pinned) if *pinned != shown => {
                Err(Untrusted::Pin { peer, shown, pinned: *pinned })
            }
            Expected::Known(known, file) if known.fingerprint != shown => Err(Untrusted::Changed {
                peer,
                shown,
                known: Box::new(known.clone()),
                file: file.clone(),
            }),
            Expected::Pin(_) | Expected::Known(..) | Expected::Anything => Ok(()),
        }
    }
}

impl ServerCertVerifier for Verifier {
    /// The "certificate" is a bare `SubjectPublicKeyInfo`.
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        alone(others)?;
        self.check(Fingerprint::of(key)).map_err(|refusal| {
            Error::from(CertificateError::Other(OtherError(Arc::new(refusal))))
        })?;
        Ok(ServerCertVerified::assertion())
    }

    only_ed25519_in_tls13!();
}
