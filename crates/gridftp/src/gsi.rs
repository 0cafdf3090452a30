//! GSI on the control connection (RFC 2228 with TLS records as tokens): the login by certificate, and commands in TLS.
//!
//! `AUTH GSSAPI`, then `ADAT` with the records of a TLS handshake in both directions. At its end the client sends one byte,
//! `0`: it delegates no credential. From then on each command is a TLS record in `ENC`, and each reply in 633.
//!
//! The server's certificate must be valid for its host name and be signed by an authority of the user's directory, whose
//! signing policy must allow its name.

mod authorities;
mod name;
mod policy;

use crate::base64;
use crate::error::FtpError;
use authorities::Authorities;
use hikyaku_fs::{Distrust, Others, Owners, trust};
use rustls::client::ResolvesClientCert;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, ClientConnection, SignatureScheme};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{env, fmt, fs, io};

/// The user's certificate and key, and the authorities that the user trusts.
#[derive(Clone)]
pub struct Credentials(Arc<ClientConfig>);

/// The user's certificate or authorities cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// No setting or variable names the certificate.
    #[error(
        "there is no certificate of the user: set X509_USER_PROXY, or X509_USER_CERT and X509_USER_KEY"
    )]
    NoCertificate,
    /// A file cannot be used.
    #[error("{}: {text}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        text: String,
    },
    /// Others may read the private key, or have made it.
    #[error("{}: {reason}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// Why it is no secret.
        reason: Distrust,
    },
    /// The directory has no authority.
    #[error("{}: no certificate of an authority (NAME.0) with a signing policy that can be read (NAME.signing_policy)", .0.display())]
    NoAuthority(PathBuf),
    /// Certificate and key cannot be used by TLS.
    #[error("the user's certificate cannot be used")]
    Tls(#[source] rustls::Error),
}

/// Shows one certificate, also a proxy, which rustls would refuse by itself: it has a critical extension.
#[derive(Debug)]
struct OneCertificate(Arc<CertifiedKey>);

impl ResolvesClientCert for OneCertificate {
    fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0))
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl Credentials {
    /// By the environment, as Globus does: `X509_USER_PROXY`, or `X509_USER_CERT` and `X509_USER_KEY`; authorities in
    /// `X509_CERT_DIR`, by default `/etc/grid-security/certificates`.
    ///
    /// # Errors
    /// A file is missing or cannot be read.
    pub fn of_user() -> Result<Self, CredentialsError> {
        let path = |name: &str| env::var_os(name).map(PathBuf::from);
        let files = match (path("X509_USER_PROXY"), path("X509_USER_CERT"), path("X509_USER_KEY")) {
            (Some(proxy), ..) => (proxy.clone(), proxy),
            (None, Some(certificate), Some(key)) => (certificate, key),
            _ => return Err(CredentialsError::NoCertificate),
        };
        let authorities = path("X509_CERT_DIR")
            .unwrap_or_else(|| PathBuf::from("/etc/grid-security/certificates"));
        Self::read(&files.0, &files.1, &authorities)
    }

    fn read(certificate: &Path, key: &Path, authorities: &Path) -> Result<Self, CredentialsError> {
        let file = |path: &Path, text: &dyn fmt::Display| CredentialsError::File {
            path: path.to_owned(),
            text: text.to_string(),
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let chain = certificates(certificate).map_err(|error| file(certificate, &error))?;
        let secret = secret(key)?;
        let key = provider.key_provider.load_private_key(secret).map_err(CredentialsError::Tls)?;
        let shown = OneCertificate(Arc::new(CertifiedKey::new(chain, key)));
        let authorities = Authorities::read(authorities, &provider)?;
        let config = config(provider, authorities, shown).map_err(CredentialsError::Tls)?;
        Ok(Self(Arc::new(config)))
    }
}

impl CredentialsError {
    /// The remedy, for the user.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Key { path, reason } => reason.remedy(path),
            _ => None,
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials")
    }
}

fn config(
    provider: Arc<CryptoProvider>,
    authorities: Authorities,
    shown: OneCertificate,
) -> Result<ClientConfig, rustls::Error> {
    let config = ClientConfig::builder_with_provider(provider)
        // TLS 1.2 has another order of messages at the end of the handshake.
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(authorities));
    let mut config = config.with_client_cert_resolver(Arc::new(shown));
    // A session that is taken up again would not show the certificate.
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// The private key in a file that no other user may read.
fn secret(path: &Path) -> Result<PrivateKeyDer<'static>, CredentialsError> {
    let unusable = |error: &dyn fmt::Display| CredentialsError::File {
        path: path.to_owned(),
        text: error.to_string(),
    };
    let file = fs::File::open(path).map_err(|error| unusable(&error))?;
    match trust(&file, Owners::User, Others::Nothing) {
        // Another name of it changes neither who may read it nor who has made it.
        Ok(()) | Err(Distrust::Names(_)) => {}
        Err(reason) => return Err(CredentialsError::Key { path: path.to_owned(), reason }),
    }
    PrivateKeyDer::from_pem_reader(file).map_err(|error| unusable(&error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?;
    let chain = read.collect::<Result<Vec<_>, _>>().map_err(|error| error.to_string())?;
    if chain.is_empty() { Err("no certificate is in it".to_owned()) } else { Ok(chain) }
}

/// TLS on a control connection, whose records travel in commands and replies.
#[derive(Debug)]
pub(crate) struct Shield(ClientConnection);

impl Shield {
    /// # Errors
    /// The host has no name that a certificate could be for.
    pub(crate) fn new(host: &str, credentials: &Credentials) -> Result<Self, FtpError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| FtpError::NoAddress { host: host.to_owned(), source: None })?;
        let tls = ClientConnection::new(Arc::clone(&credentials.0), name);
        tls.map(Self).map_err(FtpError::Tls)
    }

    /// The next token of the handshake, for ADAT.
    pub(crate) fn token(&mut self) -> Result<String, FtpError> {
        let mut records = self.records()?;
        if records.is_empty() && !self.0.is_handshaking() {
            // The end of the handshake: no credential is delegated.
            records = self.seal(b"0")?;
        }
        Ok(base64::encode(&records))
    }

    /// Whether the handshake has succeeded at this end.
    pub(crate) fn is_up(&self) -> bool {
        !self.0.is_handshaking()
    }

    /// Encrypts a command.
    pub(crate) fn seal_command(&mut self, line: &[u8]) -> Result<String, FtpError> {
        // The server takes a string of C.
        let records = self.seal(&[line, b"\0"].concat())?;
        Ok(base64::encode(&records))
    }

    /// Decrypts what is in a line of a reply.
    // fuzz: none, rustls reads the records
    pub(crate) fn open(&mut self, text: &[u8]) -> Result<Vec<u8>, FtpError> {
        let lie = FtpError::Lie("sends a token that is not Base64");
        let records = base64::decode(text.trim_ascii()).ok_or(lie)?;
        let (mut rest, mut plain) = (records.as_slice(), Vec::new());
        while !rest.is_empty() {
            self.0.read_tls(&mut rest).map_err(FtpError::Control)?;
            self.0.process_new_packets().map_err(authorities::failed)?;
            match self.0.reader().read_to_end(&mut plain) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(FtpError::Control(error)),
            }
        }
        plain.retain(|&byte| byte != 0);
        Ok(plain)
    }

    fn seal(&mut self, plain: &[u8]) -> Result<Vec<u8>, FtpError> {
        self.0.writer().write_all(plain).map_err(FtpError::Control)?;
        self.records()
    }

    fn records(&mut self) -> Result<Vec<u8>, FtpError> {
        let mut records = Vec::new();
        while self.0.wants_write() {
            let written: io::Result<usize> = self.0.write_tls(&mut records);
            written.map_err(FtpError::Control)?;
        }
        Ok(records)
    }
}
