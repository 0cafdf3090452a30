//! The choices that both ends make in TLS: version, key exchange, suites.

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::quic::Suite;
use std::sync::{Arc, LazyLock};

/// The application protocol that a handshake must agree on.
pub(crate) const ALPN: &[u8] = b"hikyaku/1";

/// X25519 joined with ML-KEM-768 first: whoever records today's traffic cannot open it with a
/// quantum computer later. X25519 alone is left for peers that were built without.
static PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
        ..default_provider()
    })
});

pub(crate) fn provider() -> Arc<CryptoProvider> {
    PROVIDER.clone()
}

/// The suite of the first packets, whose keys anybody can compute.
pub(crate) fn initial_suite() -> Suite {
    match cipher_suite::TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => suite.quic_suite(),
        #[allow(unreachable_patterns, reason = "other features of rustls add other kinds")]
        _ => None,
    }
    .expect("this suite of TLS 1.3 is the one that QUIC asks for")
}
