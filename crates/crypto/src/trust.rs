//! Decides whether a server is the one that the user intended.
//!
//! TLS proves that the peer holds the key that it presents. This module decides whether that key is
//! the right one, by comparing it with a fingerprint that the caller pinned or that the list of
//! known servers holds. A server without an entry passes the handshake, and is added to the list
//! when the caller settles the connection.

use crate::fingerprint::Fingerprint;
use crate::known_peers::{KnownPeer, KnownPeers, ReadKnownPeers, Recorded, WriteKnownPeers};
use crate::peer::PeerName;
use crate::raw_key::{check_no_chain, only_ed25519_in_tls13};
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
    /// The server with this fingerprint.
    Pinned(Fingerprint),
    /// A server with one of these fingerprints, such as any server of a cluster.
    AnyOf(Arc<[Fingerprint]>),
    /// The server with the fingerprint that this list has for it; any server that is not in the
    /// list.
    FirstUse(KnownPeers),
}

/// Why a server was accepted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrustOutcome {
    /// Its key is pinned, or in the list from an earlier use.
    Known,
    /// It was not in the list and was added. The caller should show the fingerprint to the user.
    FirstUse(Fingerprint),
}

/// Why a server was refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Untrusted {
    /// Its key is not the pinned one.
    #[error("{peer} has the key {shown}, not the pinned key {pinned}")]
    Pin {
        /// The server.
        peer: PeerName,
        /// The fingerprint of its key.
        shown: Fingerprint,
        /// The fingerprint expected.
        pinned: Fingerprint,
    },
    /// Its key is none of those that the user gave.
    #[error("{peer} has the key {shown}, which is none of the given keys")]
    NotListed {
        /// The server.
        peer: PeerName,
        /// The fingerprint of its key.
        shown: Fingerprint,
    },
    /// Its key differs from the one in the list.
    #[error(
        "the key of {peer} has changed: it is {shown}, but was {} on {} ({}:{}); \
         another machine may be in its place",
        known.fingerprint, known.since, file.display(), known.line
    )]
    Changed {
        /// The server.
        peer: PeerName,
        /// The fingerprint of its key.
        shown: Fingerprint,
        /// Its entry in the list.
        known: Box<KnownPeer>,
        /// The file of the list.
        file: PathBuf,
    },
}

impl Untrusted {
    /// Advice for the user. It begins with `try: `.
    pub fn remedy(&self) -> String {
        match self {
            Self::Pin { .. } => "try: pin the fingerprint that the server prints when it starts",
            Self::NotListed { .. } => {
                "try: add the fingerprint that the server prints when it starts"
            }
            Self::Changed { peer, .. } => {
                return format!(
                    "try: hikyaku keys forget {peer}, if the server's administrator confirms the new key"
                );
            }
        }
        .to_owned()
    }
}

/// The outcome of a handshake for the peer's key.
pub(crate) enum Seen {
    /// The peer has proven that it holds the key with this fingerprint, and the key was accepted.
    Proven(Fingerprint),
    /// The key was refused.
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

/// A handle to the fingerprint of the peer's key, for use while the connection owns the session.
#[derive(Clone)]
pub struct PeerKey(SeenCell);

impl PeerKey {
    pub(crate) const fn new(seen: SeenCell) -> Self {
        Self(seen)
    }

    /// The fingerprint, once the handshake is complete; `None` before that and if the peer
    /// presented no key.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.0.get()?.proven()
    }
}

/// A handle to the outcome of one handshake, for use while the connection owns the session.
pub struct TrustHandle {
    trust: Trust,
    peer: PeerName,
    seen: SeenCell,
}

/// Why the trust in a server cannot be settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleTrust {
    /// The handshake is not complete.
    #[error("the handshake is not complete")]
    Unfinished,
    /// The server was refused, or another connection has recorded another key in the meantime.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The server cannot be added to the list.
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

    /// Why the server was refused; `None` if it was not.
    pub fn refusal(&self) -> Option<&Untrusted> {
        match self.seen.get()? {
            Seen::Refused(refusal) => Some(refusal),
            Seen::Proven(_) => None,
        }
    }

    /// The fingerprint of the server's key, once the handshake is complete.
    pub fn fingerprint(&self) -> Option<Fingerprint> {
        self.seen.get()?.proven()
    }

    /// Completes the decision. Call it when the connection is established, before sending data. It
    /// returns why the server was accepted, and adds a server that is not in the list, with the
    /// date `today`. After an error the caller should close the connection.
    pub fn settle(&self, today: SystemTime) -> Result<TrustOutcome, SettleTrust> {
        let shown = match self.seen.get() {
            None => return Err(SettleTrust::Unfinished),
            Some(Seen::Refused(refusal)) => return Err(refusal.clone().into()),
            Some(Seen::Proven(fingerprint)) => *fingerprint,
        };
        let list = match &self.trust {
            Trust::Pinned(_) | Trust::AnyOf(_) => return Ok(TrustOutcome::Known),
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
    AnyOf(Arc<[Fingerprint]>),
    Known(KnownPeer, PathBuf),
    Anything,
}

/// The verifier that TLS asks about the key of one server.
#[derive(Debug)]
pub(crate) struct Verifier {
    peer: PeerName,
    expected: Expected,
}

impl Verifier {
    pub(crate) fn new(trust: &Trust, peer: &PeerName) -> Result<Self, ReadKnownPeers> {
        let expected = match trust {
            Trust::Pinned(pin) => Expected::Pin(*pin),
            Trust::AnyOf(pins) => Expected::AnyOf(pins.clone()),
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
            Expected::AnyOf(pins) if !pins.contains(&shown) => {
                Err(Untrusted::NotListed { peer, shown })
            }
            Expected::Known(known, file) if known.fingerprint != shown => Err(Untrusted::Changed {
                peer,
                shown,
                known: Box::new(known.clone()),
                file: file.clone(),
            }),
            Expected::Pin(_) | Expected::AnyOf(_) | Expected::Known(..) | Expected::Anything => {
                Ok(())
            }
        }
    }
}

impl ServerCertVerifier for Verifier {
    /// With raw public keys, the "certificate" is a bare `SubjectPublicKeyInfo`.
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        check_no_chain(others)?;
        self.check(Fingerprint::of(key)).map_err(|refusal| {
            Error::from(CertificateError::Other(OtherError(Arc::new(refusal))))
        })?;
        Ok(ServerCertVerified::assertion())
    }

    only_ed25519_in_tls13!();
}
