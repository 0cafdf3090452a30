//! A TLS 1.3 handshake that implements the transport's [`Session`].

use crate::chain::{DataChain, Secret};
use crate::fingerprint::Fingerprint;
use crate::packet_key::{DATAGRAM_BYTES_MAX, HandshakeKey};
use crate::provider::initial_suite;
use crate::trust::{PeerKey, Seen, SeenCell, Untrusted};
use hikyaku_proto::{CipherId, ConnectionId, KeyChain, KeyPair, Session, SessionError, Side};
use hikyaku_wire::{Params, Version as ProtocolVersion};
use rustls::quic::{Connection, KeyChange, Keys, Version};
use rustls::{CertificateError, NamedGroup};
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// The label of the exported secret (RFC 8446, section 7.5).
// spec: key-0
const EXPORTER_LABEL: &[u8] = b"EXPORTER-hikyaku data";

/// One handshake, begun by [`crate::ClientCredentials`] or [`crate::ServerCredentials`].
pub struct TlsSession {
    connection: Connection,
    side: Side,
    /// The largest datagram in bytes that either end may send. It bounds the blocks that a key
    /// seals in a packet.
    max_datagram: u64,
    seen: SeenCell,
}

impl TlsSession {
    pub(crate) fn new(connection: Connection, side: Side, params: &[u8], seen: SeenCell) -> Self {
        let max_datagram =
            Params::decode(params).map_or(DATAGRAM_BYTES_MAX, |ours| ours.max_datagram);
        Self { connection, side, max_datagram: max_datagram.min(DATAGRAM_BYTES_MAX), seen }
    }

    /// The key exchange group that was negotiated; `None` before that.
    pub fn key_exchange(&self) -> Option<NamedGroup> {
        self.connection.negotiated_key_exchange_group().map(|group| group.name())
    }

    /// The fingerprint of the peer's key, once the handshake has proven that the peer holds it.
    pub fn peer_fingerprint(&self) -> Option<Fingerprint> {
        let proven = !self.connection.is_handshaking();
        let key = self.connection.peer_certificates().and_then(|chain| chain.first());
        key.filter(|_| proven).map(|key| Fingerprint::of(key))
    }

    /// A handle to the same fingerprint, for use while the connection owns this session.
    pub fn peer_key(&self) -> PeerKey {
        PeerKey::new(self.seen.clone())
    }

    /// The first secret of the data keys, different for each connection and cipher.
    fn data_secret(&self, cipher: CipherId) -> Option<Secret> {
        let mut context = cipher.number().to_le_bytes().to_vec();
        context.extend_from_slice(&ProtocolVersion::CURRENT.0.to_le_bytes());
        let mut secret: Secret = Zeroizing::new([0; 32]);
        self.connection
            .export_keying_material(secret.as_mut_slice(), EXPORTER_LABEL, Some(&context))
            .ok()?;
        Some(secret)
    }

    fn report(&self, seen: Seen) {
        // `set` fails if a report was made already, and the first report is the valid one.
        let _ = self.seen.set(seen);
    }
}

impl Session for TlsSession {
    fn initial_keys(&self, destination: ConnectionId) -> KeyPair {
        let side = match self.side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        pair(initial_suite().keys(&destination.0.to_le_bytes(), side, Version::V1))
    }

    // fuzz: tls
    fn read(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        let was_handshaking = self.connection.is_handshaking();
        if let Err(error) = self.connection.read_hs(bytes) {
            let Some(refusal) = refusal(&error) else { return Err(SessionError(text(&error))) };
            self.report(Seen::Refused(refusal.clone()));
            return Err(SessionError(refusal.to_string()));
        }
        if was_handshaking && let Some(fingerprint) = self.peer_fingerprint() {
            self.report(Seen::Proven(fingerprint));
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyPair> {
        loop {
            match self.connection.write_hs(out)? {
                KeyChange::Handshake { keys } => return Some(pair(keys)),
                // Data keys come from the exporter, so the TLS application keys are not used.
                KeyChange::OneRtt { .. } => {}
            }
        }
    }

    fn peer_params(&self) -> Option<Vec<u8>> {
        self.connection.quic_transport_parameters().map(<[u8]>::to_vec)
    }

    fn is_complete(&self) -> bool {
        !self.connection.is_handshaking()
    }

    fn data_keys(&mut self, cipher: CipherId) -> Option<Box<dyn KeyChain>> {
        let secret = self.data_secret(cipher)?;
        Some(Box::new(DataChain::new(secret, cipher, self.side, self.max_datagram)))
    }
}

fn pair(keys: Keys) -> KeyPair {
    KeyPair {
        seal: Box::new(HandshakeKey(keys.local.packet)),
        open: Box::new(HandshakeKey(keys.remote.packet)),
    }
}

/// The verdict of this crate's verifier, if it caused `error`.
pub(crate) fn refusal(error: &rustls::Error) -> Option<&Untrusted> {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else {
        return None;
    };
    other.0.downcast_ref()
}

fn text(error: &rustls::Error) -> String {
    match error {
        rustls::Error::NoApplicationProtocol => {
            "the other side speaks TLS but not hikyaku".to_owned()
        }
        other => other.to_string(),
    }
}
