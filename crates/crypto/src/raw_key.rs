//! The requirements of both ends for a peer's key in TLS: a raw public key (RFC 7250), Ed25519, and
//! proven by a TLS 1.3 signature.

use crate::provider::provider;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::verify_tls13_signature_with_raw_key;
use rustls::pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible,
    SignatureScheme,
};

/// The methods that the verifiers of servers and of clients have in common. They belong to two
/// traits of `rustls` without a common supertrait, hence a macro.
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
            $crate::raw_key::verify_signature(message, key, signature)
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

/// Fails if other certificates come with the key: a raw public key has no chain.
pub(crate) fn check_no_chain(others: &[CertificateDer<'_>]) -> Result<(), Error> {
    if others.is_empty() { Ok(()) } else { Err(CertificateError::BadEncoding.into()) }
}

/// Checks that the peer holds the private key of `key`, by its signature over the handshake.
pub(crate) fn verify_signature(
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

/// Requires a key of each client and verifies that the client holds it. Any key is accepted here;
/// the caller decides.
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
        check_no_chain(others)?;
        Ok(ClientCertVerified::assertion())
    }

    only_ed25519_in_tls13!();
}
