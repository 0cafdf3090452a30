//! The accepting end: one identity, any number of handshakes.

use crate::identity::Identity;
use crate::provider::{ALPN, provider};
use crate::session::TlsSession;
use hikyaku_proto::Side;
use rustls::quic::{ServerConnection, Version};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::version::TLS13;
use std::sync::Arc;

/// What a listener proves itself with. Cheap to clone.
#[derive(Clone)]
pub struct ServerCredentials {
    config: Arc<rustls::ServerConfig>,
}

/// A handshake cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("cannot begin a TLS handshake")]
pub struct StartServer(#[source] rustls::Error);

impl ServerCredentials {
    /// Credentials that show `identity` to every client, as a raw public key (RFC 7250).
    pub fn new(identity: &Identity) -> Self {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has suites of TLS 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(
                identity.certified_key(),
            )));
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Nothing is resumed and nothing is sent early: a ticket would be a packet for nobody.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.max_early_data_size = 0;
        Self { config: Arc::new(config) }
    }

    /// A handshake that announces `params`, the bytes of encoded transport parameters.
    pub fn session(&self, params: Vec<u8>) -> Result<TlsSession, StartServer> {
        let connection = ServerConnection::new(self.config.clone(), Version::V1, params.clone())
            .map_err(StartServer)?;
        Ok(TlsSession::new(connection.into(), Side::Server, &params, None))
    }
}
