//! Signatures of a handshake, as the cryptographic library checks them.

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::CertificateDer;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use std::fmt;

/// The algorithms of a provider.
#[derive(Clone, Copy)]
pub(crate) struct Signatures(WebPkiSupportedAlgorithms);

impl Signatures {
    /// Those of this provider.
    pub(crate) const fn of(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }

    // fuzz: none, rustls checks it
    pub(crate) fn tls12(
        self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signature, &self.0)
    }

    // fuzz: none, rustls checks it
    pub(crate) fn tls13(
        self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signature, &self.0)
    }

    pub(crate) fn schemes(self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}

impl fmt::Debug for Signatures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signatures")
    }
}
