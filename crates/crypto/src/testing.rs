//! Helpers for tests: a temporary directory, and a handshake.

use crate::random::random_u64;
use crate::{
    ClientCredentials, Fingerprint, Identity, PeerName, ServerCredentials, TlsSession, Trust,
};
use hikyaku_proto::{Session, SessionError};
use std::fs;
use std::path::PathBuf;

/// The temporary directory of one test, removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        let path = std::env::temp_dir().join(format!("hikyaku-crypto-{:016x}", random_u64()));
        fs::create_dir(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the handshake of a client that trusts `pin` with a server of `identity`, until neither end
/// has anything to send.
pub(crate) fn shake(
    identity: &Identity,
    pin: Fingerprint,
) -> Result<[TlsSession; 2], SessionError> {
    let client = ClientCredentials::new(Trust::Pinned(pin));
    shake_as(&client, &ServerCredentials::new(identity))
}

/// The same with given credentials.
pub(crate) fn shake_as(
    client: &ClientCredentials,
    server: &ServerCredentials,
) -> Result<[TlsSession; 2], SessionError> {
    let peer = PeerName::new("example.org", 4433).unwrap();
    let (client, _) = client.session(&peer, Vec::new()).unwrap();
    let mut ends = [client, server.session(Vec::new()).unwrap()];
    for turn in 0..6 {
        let (speaker, listener) = (turn % 2, 1 - turn % 2);
        let is_over = speaker == 1 && ends[speaker].is_complete();
        // Each level's bytes are read in a call of their own, as they arrive in packets of their
        // own.
        let mut levels = vec![Vec::new()];
        while ends[speaker].write(levels.last_mut().unwrap()).is_some() {
            levels.push(Vec::new());
        }
        // The server sends no session ticket after the handshake.
        assert!(!is_over || levels.concat().is_empty(), "a server that has finished is silent");
        for bytes in levels {
            ends[listener].read(&bytes)?;
        }
    }
    Ok(ends)
}
