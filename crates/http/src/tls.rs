//! TLS to web servers: certificates are checked against the system's authorities, or those of a file. No option disables
//! the check.

use crate::fault::Fault;
use hikyaku_fs::words;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, RootCertStore};
use std::path::Path;
use std::sync::Arc;

/// The configuration of all connections of a client. ALPN offers `http/1.1` only: HTTP/2 would bring all ranges onto
/// one TCP connection.
pub(crate) fn config(authorities: Option<&Path>) -> Result<Arc<ClientConfig>, Fault> {
    let roots = match authorities {
        Some(path) => of_file(path)?,
        None => of_system()?,
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|error| Fault::Authorities(error.to_string()))?;
    let mut config = versions.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn of_file(path: &Path) -> Result<RootCertStore, Fault> {
    let cannot = |text: String| Fault::Authorities(format!("{}: {text}", path.display()));
    let unread = |error| match error {
        pem::Error::Io(error) => cannot(words(&error)),
        error => cannot(format!("no file of certificates: {error}")),
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(unread)? {
        let added = roots.add(certificate.map_err(unread)?);
        added.map_err(|error| cannot(format!("no certificate of an authority: {error}")))?;
    }
    if roots.is_empty() { Err(cannot("the file has no certificate".to_owned())) } else { Ok(roots) }
}

/// The authorities of this host: `SSL_CERT_FILE`, `SSL_CERT_DIR`, or the files of its distribution.
fn of_system() -> Result<RootCertStore, Fault> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // A certificate that cannot be parsed is skipped.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let text = "this machine has no certificates of authorities (package ca-certificates); --ca FILE names others";
        return Err(Fault::Authorities(text.to_owned()));
    }
    Ok(roots)
}
