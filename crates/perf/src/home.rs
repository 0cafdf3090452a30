//! Keys that perf keeps on disk: the server's own, and those of the servers that a client has met.

use anyhow::{Context, Result};
use hikyaku_console::{Folder, with_remedy};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers, Trust};
use std::path::PathBuf;

/// The server's key, created on its first start.
pub(crate) fn identity() -> Result<Identity> {
    let path = state_folder()?.join("perf_key");
    Identity::load_or_create(&path).map_err(|error| {
        let remedy = error.remedy();
        with_remedy(error.into(), remedy)
    })
}

/// How a client authenticates the server: by a pinned key, or by the key seen on first use.
pub(crate) fn trust(pin: Option<Fingerprint>) -> Result<Trust> {
    match pin {
        Some(pin) => Ok(Trust::Pinned(pin)),
        None => Ok(Trust::FirstUse(KnownPeers::at(state_folder()?.join(KnownPeers::FILE_NAME)))),
    }
}

fn state_folder() -> Result<PathBuf> {
    Folder::State.of_user().context("no directory to keep keys in")
}
