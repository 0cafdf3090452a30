//! The identity of an end: an Ed25519 key pair, usually stored in a file.

use crate::fingerprint::Fingerprint;
use crate::private_file;
use crate::public_key::PublicKey;
use aws_lc_rs::error::{KeyRejected, Unspecified};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zeroize::Zeroizing;

#[cfg(test)]
mod tests;

/// An Ed25519 key pair. Its file holds it as PKCS#8 version 2 (RFC 5958) in DER, with mode 0600.
#[derive(Clone)]
pub struct Identity {
    key: Arc<CertifiedKey>,
    public: PublicKey,
    fingerprint: Fingerprint,
}

/// Why an identity cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum CreateIdentity {
    /// The cryptographic library did not generate a key.
    #[error("cannot generate a key")]
    Generate,
    /// The file cannot be written. An existing file is not replaced.
    #[error("{}: cannot create the identity", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

/// Why an identity cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadIdentity {
    /// The file cannot be read.
    #[error("{}: cannot read the identity", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Other users may read or write the file, so its key may not be private.
    #[error("{}: the identity is accessible to other users (mode {mode:03o})", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// The file does not hold an Ed25519 key.
    #[error("{}: the identity is not an Ed25519 key in PKCS#8", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
    },
    /// The file does not exist and cannot be created.
    #[error(transparent)]
    Create(#[from] CreateIdentity),
}

impl LoadIdentity {
    /// What the user can do about it, beginning with `try: `.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Exposed { path, .. } => Some(format!(
                "try: chmod 600 {}; if others may have read it, delete it to get a new one",
                path.display()
            )),
            Self::Malformed { path } => {
                Some(format!("try: move {} away; a new one will be made", path.display()))
            }
            Self::Read { .. } | Self::Create(_) => None,
        }
    }
}

/// The most bytes read of an identity file. An Ed25519 key takes less than 100.
const FILE_BYTES_MAX: u64 = 4096;

impl Identity {
    /// Generates an identity without storing it.
    pub fn generate() -> Result<Self, CreateIdentity> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|Unspecified| CreateIdentity::Generate)?;
        Self::from_pkcs8(document.as_ref()).ok_or(CreateIdentity::Generate)
    }

    /// Generates an identity and stores it in the new file `path`.
    pub fn create(path: &Path) -> Result<Self, CreateIdentity> {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new())
            .map_err(|Unspecified| CreateIdentity::Generate)?;
        let identity = Self::from_pkcs8(document.as_ref()).ok_or(CreateIdentity::Generate)?;
        private_file::create(path, document.as_ref())
            .map_err(|source| CreateIdentity::Write { path: path.to_owned(), source })?;
        Ok(identity)
    }

    /// Loads the identity from the file `path`.
    pub fn load(path: &Path) -> Result<Self, LoadIdentity> {
        let read = |source| LoadIdentity::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(read)?;
        // Read from the open file, so that the file checked is the one that is read.
        let mode = file.metadata().map_err(read)?.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(LoadIdentity::Exposed { path: path.to_owned(), mode });
        }
        let mut bytes = Zeroizing::new(Vec::with_capacity(FILE_BYTES_MAX as usize));
        file.take(FILE_BYTES_MAX).read_to_end(&mut bytes).map_err(read)?;
        Self::from_pkcs8(&bytes).ok_or_else(|| LoadIdentity::Malformed { path: path.to_owned() })
    }

    /// Loads the identity from the file `path`, which is created if it does not exist.
    pub fn load_or_create(path: &Path) -> Result<Self, LoadIdentity> {
        match Self::load(path) {
            Err(LoadIdentity::Read { source, .. }) if is_absent(&source) => {}
            other => return other,
        }
        match Self::create(path) {
            // Another process has created the file in the meantime.
            Err(CreateIdentity::Write { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists =>
            {
                Self::load(path)
            }
            other => other.map_err(LoadIdentity::Create),
        }
    }

    /// The fingerprint of its public key.
    pub const fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Its public key.
    pub const fn public_key(&self) -> PublicKey {
        self.public
    }

    pub(crate) fn certified_key(&self) -> Arc<CertifiedKey> {
        self.key.clone()
    }

    /// An identity that presents the public key of `shown` but signs with its own private key.
    #[cfg(test)]
    pub(crate) fn pretending(&self, shown: &Self) -> Self {
        let key = CertifiedKey::new(shown.key.cert.clone(), self.key.key.clone());
        Self { key: Arc::new(key), ..shown.clone() }
    }

    fn from_pkcs8(bytes: &[u8]) -> Option<Self> {
        let checked: Result<_, KeyRejected> = Ed25519KeyPair::from_pkcs8(bytes);
        checked.ok()?;
        let signer = any_eddsa_type(&PrivatePkcs8KeyDer::from(bytes)).ok()?;
        let info = CertificateDer::from(signer.public_key()?.to_vec());
        let (public, fingerprint) = (PublicKey::of_info(&info)?, Fingerprint::of(&info));
        Some(Self { key: Arc::new(CertifiedKey::new(vec![info], signer)), public, fingerprint })
    }
}

fn is_absent(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({})", self.fingerprint)
    }
}
