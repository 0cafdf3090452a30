//! The accepting end: one identity for any number of handshakes.

use crate::identity::Identity;
use crate::provider::{ALPN, ALPN_PIPES, provider};
use crate::raw_key::AnyClient;
use crate::session::TlsSession;
use crate::trust::SeenCell;
use hikyaku_proto::Side;
use rustls::quic::{ServerConnection, Version};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage, WantsServerCert};
use rustls::version::TLS13;
use rustls::{ConfigBuilder, WantsVerifier};
use std::fmt;
use std::sync::Arc;

/// The identity of a listener. Cheap to clone.
#[derive(Clone)]
pub struct ServerCredentials {
    /// Of handshakes over UDP.
    config: Arc<rustls::ServerConfig>,
    /// Of handshakes over byte streams.
    pipes: Arc<rustls::ServerConfig>,
}

type ServerBuilder = ConfigBuilder<rustls::ServerConfig, WantsVerifier>;

/// Why a handshake cannot begin: the TLS library refused.
#[derive(Debug, thiserror::Error)]
#[error("cannot begin a TLS handshake")]
pub struct StartServer(#[source] rustls::Error);

impl ServerCredentials {
    /// Credentials that present `identity` to every client as a raw public key (RFC 7250).
    pub fn new(identity: &Identity) -> Self {
        Self::with(identity, ServerBuilder::with_no_client_auth)
    }

    /// The same, and every client must present a key and prove that it holds it. The caller
    /// compares it by [`TlsSession::peer_key`] with the key expected, before it trusts the
    /// connection with data.
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
        // There is no session resumption and no early data, so no tickets are sent.
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.max_early_data_size = 0;
        let mut pipes = config.clone();
        pipes.alpn_protocols = vec![ALPN_PIPES.to_vec()];
        Self { config: Arc::new(config), pipes: Arc::new(pipes) }
    }

    /// Begins a handshake over a byte stream.
    pub(crate) fn server(&self) -> Result<rustls::ServerConnection, StartServer> {
        rustls::ServerConnection::new(self.pipes.clone()).map_err(StartServer)
    }

    /// Begins a handshake that announces the encoded transport parameters `params`.
    pub fn session(&self, params: Vec<u8>) -> Result<TlsSession, StartServer> {
        let connection = ServerConnection::new(self.config.clone(), Version::V1, params.clone())
            .map_err(StartServer)?;
        Ok(TlsSession::new(connection.into(), Side::Server, &params, SeenCell::default()))
    }
}

/// Prints no field: the TLS configuration holds the private key.
impl fmt::Debug for ServerCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerCredentials").finish_non_exhaustive()
    }
}
