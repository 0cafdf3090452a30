//! A certificate for each run, and TLS with one cipher, so that all stacks seal alike.

use crate::HOST;
use anyhow::{Context, Result};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig, version};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Both ends must name the same application protocol.
const PROTOCOL: &[u8] = b"peer";

/// A new certificate, written to `path`, and its key: both in PEM.
///
/// # Errors
/// If the file cannot be written.
pub fn write_identity(path: &Path) -> Result<(String, String)> {
    let identity = rcgen::generate_simple_self_signed([HOST.to_owned()])?;
    let (certificate, key) = (identity.cert.pem(), identity.signing_key.serialize_pem());
    fs::write(path, &certificate).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((certificate, key))
}

/// TLS of the server, with a new certificate written to `path`.
///
/// # Errors
/// If the file cannot be written.
pub fn server_tls(path: &Path) -> Result<ServerConfig> {
    let (certificate, key) = write_identity(path)?;
    let certificate = CertificateDer::from_pem_slice(certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes())?;
    let mut tls = ServerConfig::builder_with_provider(one_cipher())
        .with_protocol_versions(&[&version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(tls)
}

/// TLS of the client, which trusts the certificate at `path`.
///
/// # Errors
/// If there is none.
pub fn client_tls(path: &Path) -> Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path)?)?;
    let mut tls = ClientConfig::builder_with_provider(one_cipher())
        .with_protocol_versions(&[&version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(tls)
}

fn one_cipher() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256],
        ..aws_lc_rs::default_provider()
    })
}
