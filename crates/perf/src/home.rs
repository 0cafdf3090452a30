//! Where perf keeps what it must remember: the server's key, and the keys of servers it met.

use crate::trouble;
use anyhow::{Context, Result};
use hikyaku_crypto::{Fingerprint, Identity, KnownPeers, Trust};

/// The server's key, made at its first start.
pub(crate) fn identity() -> Result<Identity> {
    let known = known_peers()?;
    let path = known.path().with_file_name("perf_key");
    Identity::load_or_create(&path).map_err(|error| {
        let remedy = error.remedy();
        trouble::with_remedy(error.into(), remedy)
    })
}

/// Whom a client trusts: the pinned key, or whoever is met first.
pub(crate) fn trust(pin: Option<Fingerprint>) -> Result<Trust> {
    match pin {
        Some(pin) => Ok(Trust::Pinned(pin)),
        None => known_peers().map(Trust::FirstUse),
    }
}

fn known_peers() -> Result<KnownPeers> {
    KnownPeers::of_user()
        .context("try: set HOME or XDG_STATE_HOME")
        .context("there is no folder to keep keys in")
}
