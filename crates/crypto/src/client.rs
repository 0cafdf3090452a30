//! The connecting end: which servers it trusts, and its handshake with one server.

use crate::identity::Identity;
use crate::known_peers::ReadKnownPeers;
use crate::peer::PeerName;
use crate::provider::{ALPN, ALPN_PIPES, provider};
use crate::session::TlsSession;
use crate::trust::{Trust, TrustHandle, Verifier};
use hikyaku_proto::Side;
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Version};
use rustls::version::TLS13;
use std::sync::Arc;

/// Which servers a client trusts, and its own identity. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientCredentials {
    trust: Trust,
    identity: Option<Identity>,
}

/// Why a handshake cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartClient {
    /// The list of known servers cannot be read.
    #[error("cannot read whether the server is known")]
    Known(#[from] ReadKnownPeers),
    /// The TLS library refused to begin.
    #[error("cannot begin a TLS handshake")]
    Tls(#[source] rustls::Error),
}

impl ClientCredentials {
    /// Credentials of a client without an identity. It accepts the servers that `trust` names.
    pub const fn new(trust: Trust) -> Self {
        Self { trust, identity: None }
    }

    /// The same credentials with a client key. The handshake fails with a server that does not ask
    /// for it ([`crate::ServerCredentials::mutual`]).
    #[must_use]
    pub fn with_identity(self, identity: &Identity) -> Self {
        Self { identity: Some(identity.clone()), ..self }
    }

    /// Begins a handshake with `peer` that announces the encoded transport parameters `params`. The
    /// list of known servers is read here, not during the handshake. The handle reports the
    /// outcome, and adds the server to the list when the caller settles it.
    pub fn session(
        &self,
        peer: &PeerName,
        params: Vec<u8>,
    ) -> Result<(TlsSession, TrustHandle), StartClient> {
        let config = Arc::new(self.config(peer, ALPN)?);
        let connection = ClientConnection::new(config, Version::V1, no_name(), params.clone())
            .map_err(StartClient::Tls)?;
        let handle = TrustHandle::new(self.trust.clone(), peer.clone());
        let session = TlsSession::new(connection.into(), Side::Client, &params, handle.seen());
        Ok((session, handle))
    }

    /// The same over a byte stream.
    pub(crate) fn client(
        &self,
        peer: &PeerName,
    ) -> Result<(rustls::ClientConnection, TrustHandle), StartClient> {
        let config = Arc::new(self.config(peer, ALPN_PIPES)?);
        let client = rustls::ClientConnection::new(config, no_name()).map_err(StartClient::Tls)?;
        Ok((client, TrustHandle::new(self.trust.clone(), peer.clone())))
    }

    fn config(&self, peer: &PeerName, alpn: &[u8]) -> Result<rustls::ClientConfig, StartClient> {
        let verifier = Verifier::new(&self.trust, peer)?;
        let builder = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has suites of TLS 1.3")
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier));
        let mut config = match &self.identity {
            Some(identity) => {
                let shown = AlwaysResolvesClientRawPublicKeys::new(identity.certified_key());
                builder.with_client_cert_resolver(Arc::new(shown))
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![alpn.to_vec()];
        config.resumption = Resumption::disabled();
        // Anybody on the path can read the first packet, so it does not name the server. A server
        // has only one identity and does not need the name.
        config.enable_sni = false;
        Ok(config)
    }
}

/// A name for the TLS library, which sends none.
fn no_name() -> ServerName<'static> {
    ServerName::try_from("hikyaku.invalid").expect("this is a host name")
}
