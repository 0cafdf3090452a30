//! Keys that perf keeps on disk: the server's own, and those of the servers that a client has met.

use crate::trouble;
use anyhow::{Context, Result};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers, Trust};

/// The server's key, created on its first start.
pub(crate) fn identity() -> Result<Identity> {
    let known = known_peers()?;
    let path = known.path().with_file_name("perf_key");
    Identity::load_or_create(&path).map_err(|error| {
        let remedy = error.remedy();
        trouble::with_remedy(error.into(), remedy)
    })
}

/// How a client authenticates the server: by a pinned key, or by the key seen on first use.
pub(crate) fn trust(pin: Option<Fingerprint>) -> Result<Trust> {
    match pin {
        Some(pin) => Ok(Trust::Pinned(pin)),
        None => known_peers().map(Trust::FirstUse),
    }
}

fn known_peers() -> Result<KnownPeers> {
    KnownPeers::of_user()
        .context("try: set HOME or XDG_STATE_HOME")
        .context("no directory to keep keys in")
}
