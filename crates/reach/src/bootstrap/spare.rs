//! An SFTP server that is left over when no program could be sent by it.

use crate::sftp_server::SftpServer;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Keeps an SFTP server for a caller that goes on by SFTP, so that the user logs in once less. Clones keep the same one.
#[derive(Clone, Default)]
pub struct Spare(Arc<Mutex<Option<SftpServer>>>);

impl Spare {
    pub(super) fn keep(&self, server: SftpServer) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
    }

    /// The server, if one is left.
    pub fn take(&self) -> Option<SftpServer> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl fmt::Debug for Spare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Spare")
    }
}
