//! The accepting end: one identity, any number of handshakes.

use crate::identity::Identity;
use crate::provider::{ALPN, provider};
use crate::raw_key::AnyClient;
use crate::session::TlsSession;
use crate::trust::SeenCell;
use hikyaku_proto::Side;
use rustls::quic::{ServerConnection, Version};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, WantsServerCert};
use rustls::version::TLS13;
use rustls::{ConfigBuilder, WantsVerifier};
use std::sync::Arc;

/// What a listener proves itself with. Cheap to clone.
#[derive(Clone)]
pub struct ServerCredentials {
    config: Arc<rustls::ServerConfig>,
}

type ServerBuilder = ConfigBuilder<rustls::ServerConfig, WantsVerifier>;

/// A handshake cannot begin.
#[derive(Debug, thiserror::Error)]
#[error("cannot begin a TLS handshake")]
pub struct StartServer(#[source] rustls::Error);

impl ServerCredentials {
    /// Credentials that show `identity` to every client, as a raw public key (RFC 7250).
    pub fn new(identity: &Identity) -> Self {
        Self::with(identity, ServerBuilder::with_no_client_auth)
    }

    /// The same for clients that have a key as well: each must show one, and prove that it holds it.
    /// Whose it is, the caller judges, by [`TlsSession::peer_key`], before anything is entrusted to the
    /// connection.
    pub fn mutual(identity: &Identity) -> Self {
        Self::with(identity, |builder| builder.with_client_cert_verifier(Arc::new(AnyClient)))
    }

    fn with(
        identity: &Identity,
        ask: impl FnOnce(ServerBuilder) -> ConfigBuilder<rustls::ServerConfig, WantsServerCert>,
    ) -> Self {
        let builder = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])
            .expect("the provider has suites of TLS 1.3");
        let shown = AlwaysResolvesServerRawPublicKeys::new(identity.certified_key());
        let mut config = ask(builder).with_cert_resolver(Arc::new(shown));
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
        Ok(TlsSession::new(connection.into(), Side::Server, &params, SeenCell::default()))
    }
}
