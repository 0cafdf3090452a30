//! What tests of several files share: a folder that goes away with its owner, and a handshake.

use crate::random::random_u64;
use crate::{
    ClientCredentials, Fingerprint, Identity, PeerName, ServerCredentials, TlsSession, Trust,
};
use hikyaku_proto::{Session, SessionError};
use std::fs;
use std::path::PathBuf;

/// A folder of one test.
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

/// Two bare sessions, a client that trusts `pin` and a server that is `identity`, driven until
/// neither has anything to say.
pub(crate) fn shake(
    identity: &Identity,
    pin: Fingerprint,
) -> Result<[TlsSession; 2], SessionError> {
    let client = ClientCredentials::new(Trust::Pinned(pin));
    shake_as(&client, &ServerCredentials::new(identity))
}

/// The same of any two.
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
        // The bytes of each level are read by themselves, as they come in packets of their own.
        let mut levels = vec![Vec::new()];
        while ends[speaker].write(levels.last_mut().unwrap()).is_some() {
            levels.push(Vec::new());
        }
        // There is no ticket and nothing else to say.
        assert!(!is_over || levels.concat().is_empty(), "a server that has finished is silent");
        for bytes in levels {
            ends[listener].read(&bytes)?;
        }
    }
    Ok(ends)
}
