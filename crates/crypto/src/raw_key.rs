//! What both ends ask of a key in TLS: bare (RFC 7250), Ed25519, and proven by a signature of TLS 1.3.

use crate::provider::provider;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};

/// What the verifiers of servers and of clients have word for word: two traits of `rustls`, which share no
/// third.
macro_rules! only_ed25519_in_tls13 {
    () => {
        fn verify_tls12_signature(
            &self,
            _: &[u8],
            _: &CertificateDer<'_>,
            _: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            Err(PeerIncompatible::Tls13RequiredForQuic.into())
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            key: &CertificateDer<'_>,
            signature: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, Error> {
            $crate::raw_key::proven(message, key, signature)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            vec![SignatureScheme::ED25519]
        }

        fn requires_raw_public_keys(&self) -> bool {
            true
        }
    };
}
pub(crate) use only_ed25519_in_tls13;

/// A bare key has no chain.
pub(crate) fn alone(others: &[CertificateDer<'_>]) -> Result<(), Error> {
    if others.is_empty() { Ok(()) } else { Err(CertificateError::BadEncoding.into()) }
}

/// Whether the peer holds `key`: its signature over the handshake so far.
pub(crate) fn proven(
    message: &[u8],
    key: &CertificateDer<'_>,
    signature: &DigitallySignedStruct,
) -> Result<HandshakeSignatureValid, Error> {
    if signature.scheme != SignatureScheme::ED25519 {
        return Err(CertificateError::BadSignature.into());
    }
    let key = SubjectPublicKeyInfoDer::from(key.as_ref());
    let algorithms = provider().signature_verification_algorithms;
    verify_tls13_signature_with_raw_key(message, &key, signature, &algorithms)
}

/// Asks each client for a key and has it proven; any key will do.
#[derive(Debug)]
pub(crate) struct AnyClient;

impl ClientCertVerifier for AnyClient {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        alone(others)?;
        Ok(ClientCertVerified::assertion())
    }

    only_ed25519_in_tls13!();
}
