//! The TLS parameters of both ends: key exchange and cipher suites.

use rustls::SupportedCipherSuite;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::quic::Suite;
use std::sync::{Arc, LazyLock};

/// The application protocol that the handshake negotiates (ALPN, RFC 7301).
pub(crate) const ALPN: &[u8] = b"hikyaku/1";
/// The same for streams in TLS over TCP. It differs, so that a handshake for one is not valid for the other.
pub(crate) const ALPN_PIPES: &[u8] = b"hikyaku-pipes/2";

/// X25519 combined with ML-KEM-768 is preferred, so that traffic recorded today cannot be decrypted
/// with a quantum computer later. X25519 alone is for peers without ML-KEM.
static CRYPTO_PROVIDER: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| {
    Arc::new(CryptoProvider {
        kx_groups: vec![kx_group::X25519MLKEM768, kx_group::X25519],
        ..default_provider()
    })
});

pub(crate) fn provider() -> Arc<CryptoProvider> {
    CRYPTO_PROVIDER.clone()
}

/// The cipher suite of Initial packets. Their keys are derived from public values, so they give no
/// confidentiality.
pub(crate) fn initial_suite() -> Suite {
    match cipher_suite::TLS13_AES_128_GCM_SHA256 {
        SupportedCipherSuite::Tls13(suite) => suite.quic_suite(),
        #[allow(unreachable_patterns, reason = "other features of rustls add other kinds")]
        _ => None,
    }
    .expect("this suite of TLS 1.3 is the one that QUIC asks for")
}
