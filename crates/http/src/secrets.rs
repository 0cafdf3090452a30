//! Files with secrets, which only their user may read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Octets of a file with secrets at most.
const SECRETS_BYTES_MAX: u64 = 4 << 20;

/// A file with secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SecretsError {
    /// The file cannot be read.
    #[error("{}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The permission bits of the file let other users read it.
    #[error("{}: other users may read the secrets in it", .0.display())]
    Exposed(PathBuf),
    /// The file is too large.
    #[error("{} is larger than 4 MiB", .0.display())]
    TooLarge(PathBuf),
}

impl SecretsError {
    /// A command for the user.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Exposed(path) => Some(format!("chmod 600 {}", path.display())),
            Self::Read { .. } | Self::TooLarge(_) => None,
        }
    }
}

/// The bytes of a file, which may be a pipe.
pub(crate) fn read_secrets(path: &Path) -> Result<Vec<u8>, SecretsError> {
    let unread = |source| SecretsError::Read { path: path.to_owned(), source };
    let file = File::open(path).map_err(unread)?;
    let meta = file.metadata().map_err(unread)?;
    if meta.mode() & 0o077 != 0 {
        return Err(SecretsError::Exposed(path.to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(SECRETS_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unread)?;
    match bytes.len() as u64 > SECRETS_BYTES_MAX {
        true => Err(SecretsError::TooLarge(path.to_owned())),
        false => Ok(bytes),
    }
}
