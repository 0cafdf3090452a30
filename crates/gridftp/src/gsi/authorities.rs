//! The authorities that the user trusts, and what each may sign.
//!
//! A chain of certificates is followed by their names, from the server's own to an authority of the directory. That
//! authority's policy must allow the name of each of them, as an authority below it may sign no more than it itself. Only then
//! the chain is verified, and with nothing but these certificates and this authority: no other way leads to another one.

use super::name::{Signed, one_line};
use super::policy::Policy;
use super::{CredentialsError, certificates};
use crate::error::FtpError;
use crate::signatures::Signatures;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Authorities in a directory; a directory of the grid has some hundred.
const AUTHORITIES_MAX: usize = 4096;
/// Octets of a policy at most.
const POLICY_BYTES_MAX: u64 = 1 << 20;
/// Certificates between a server's own and that of an authority.
const CHAIN_MAX: usize = 8;

/// The authorities of a directory.
#[derive(Debug)]
pub(super) struct Authorities {
    all: Vec<Authority>,
    signatures: Signatures,
}

#[derive(Debug)]
struct Authority {
    /// The bytes of its name.
    subject: Vec<u8>,
    policy: Policy,
    verifier: Arc<WebPkiServerVerifier>,
}

/// An authority has signed a name that its policy does not allow.
#[derive(Debug, thiserror::Error)]
#[error("the signing policy of {authority} does not allow it to sign {subject}")]
struct Forbidden {
    authority: String,
    subject: String,
}

/// The error of a login whose handshake failed. TLS shows those of a verifier as a program's text.
pub(super) fn failed(error: Error) -> FtpError {
    if let Error::InvalidCertificate(CertificateError::Other(OtherError(other))) = &error
        && let Some(Forbidden { authority, subject }) = other.downcast_ref()
    {
        return FtpError::Forbidden { authority: authority.clone(), subject: subject.clone() };
    }
    FtpError::Tls(error)
}

impl Authorities {
    /// The authorities of a directory: `NAME.0` that have a policy beside them.
    pub(super) fn read(
        folder: &Path,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, CredentialsError> {
        let names = fs::read_dir(folder).map_err(|error| CredentialsError::File {
            path: folder.to_owned(),
            text: error.to_string(),
        })?;
        let mut all = Vec::new();
        for entry in names.flatten().take(AUTHORITIES_MAX) {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "0") {
                continue;
            }
            let Some(policy) = policy(&path.with_extension("signing_policy")) else { continue };
            // An authority of an old kind does not keep others from being used.
            for certificate in certificates(&path).unwrap_or_default() {
                all.extend(authority(certificate, policy.clone(), provider));
            }
        }
        match all.is_empty() {
            true => Err(CredentialsError::NoAuthority(folder.to_owned())),
            false => Ok(Self { all, signatures: Signatures::of(provider) }),
        }
    }

    fn named<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a Authority> {
        self.all.iter().filter(move |authority| authority.subject == name)
    }
}

fn policy(path: &Path) -> Option<Policy> {
    let is_small = fs::metadata(path).is_ok_and(|meta| meta.len() <= POLICY_BYTES_MAX);
    let text = fs::read(path).ok().filter(|_| is_small)?;
    Policy::parse(&String::from_utf8_lossy(&text))
}

fn authority(
    certificate: CertificateDer<'static>,
    policy: Policy,
    provider: &Arc<CryptoProvider>,
) -> Option<Authority> {
    let subject = Signed::of(&certificate)?.subject.to_vec();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).ok()?;
    let builder =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    Some(Authority { subject, policy, verifier: builder.build().ok()? })
}

impl Authority {
    /// Whether its policy allows it to sign this name.
    // fuzz: none, a certificate that rustls has read, and its name as one line
    fn check(&self, subject: &[u8]) -> Result<(), Error> {
        let text =
            |name: &[u8]| one_line(name).ok_or_else(|| invalid(CertificateError::BadEncoding));
        let (authority, subject) = (text(&self.subject)?, text(subject)?);
        match self.policy.permits(&authority, &subject) {
            true => Ok(()),
            false => {
                let forbidden = Arc::new(Forbidden { authority, subject });
                Err(invalid(CertificateError::Other(OtherError(forbidden))))
            }
        }
    }
}

const fn invalid(error: CertificateError) -> Error {
    Error::InvalidCertificate(error)
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        server: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        host: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let read = |certificate| Signed::of(certificate).ok_or(CertificateError::BadEncoding);
        let mut last = read(server).map_err(invalid)?;
        let (mut names, mut chain) = (vec![last.subject], Vec::new());
        let mut failure = invalid(CertificateError::UnknownIssuer);
        while chain.len() < CHAIN_MAX {
            for authority in self.named(last.issuer) {
                let allowed = names.iter().try_for_each(|name| authority.check(name));
                let verify =
                    || authority.verifier.verify_server_cert(server, &chain, host, ocsp, now);
                match allowed.and_then(|()| verify()) {
                    Err(error) => failure = error,
                    verified => return verified,
                }
            }
            let next = others.iter().find_map(|other| {
                let signed = Signed::of(other)?;
                (signed.subject == last.issuer).then_some((other, signed))
            });
            let Some((certificate, signed)) = next else { break };
            names.push(signed.subject);
            chain.push(certificate.clone());
            last = signed;
        }
        Err(failure)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls12(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signatures.tls13(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.signatures.schemes()
    }
}
