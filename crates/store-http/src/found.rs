//! The offer of a server as the metadata of a file.

use hikyaku_http::{Known, Offer, Proof, Url};
use hikyaku_store::{ContentToken, Found, Identity, Kind, Owner, Time, Version, Versions};
use std::time::UNIX_EPOCH;

/// Permission bits of a file: HTTP has none.
const FILE_MODE: u32 = 0o644;
/// Permission bits of a directory.
const DIR_MODE: u32 = 0o755;

/// The metadata of the file at `url`. If the server does not send its size, it is `Special`. If the server does not send its
/// date, it is `undated`.
pub(crate) fn file(offer: &Offer, url: &Url, undated: Time) -> Found {
    let size = offer.total.unwrap_or(0);
    let since = offer.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let secs = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    Found {
        kind: if offer.total.is_some() { Kind::File } else { Kind::Special },
        size,
        allocated: size,
        mode: FILE_MODE,
        owner: Owner::default(),
        modified: secs.map_or(undated, |secs| Time { secs, nanos: 0 }),
        identity: identity(url),
        version: version(offer),
    }
}

/// The metadata of a directory of the server.
pub(crate) fn dir(url: &Url) -> Found {
    Found {
        kind: Kind::Dir,
        size: 0,
        allocated: 0,
        mode: DIR_MODE,
        owner: Owner::default(),
        modified: Time::default(),
        identity: identity(url),
        version: None,
    }
}

/// The hash of a strong entity tag, the coding and the size: they are equal only if all bytes are (RFC 9110, section 8.8.1).
fn version(offer: &Offer) -> Option<Version> {
    let tag = offer.version.strong_tag()?;
    let mut hash = blake3::Hasher::new();
    for part in [tag, offer.encoding.as_deref().unwrap_or_default()] {
        hash.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hash.update(&offer.total?.to_le_bytes());
    Some(Version(*hash.finalize().as_bytes()))
}

/// The content of a file with this version.
pub(crate) fn content(found: &Found) -> Option<ContentToken> {
    found.version.map(|version| ContentToken(version.0.to_vec()))
}

/// How files of a server with this offer are recognized.
pub(crate) fn versions(offer: &Offer) -> Versions {
    match proof(offer) {
        _ if offer.version.strong_tag().is_some() => Versions::Strong,
        Proof::Version => Versions::SizeAndTime,
        Proof::None | Proof::Digest => Versions::Nothing,
    }
}

/// A file that is read by several answers. A digest of the whole is of no use: no reader compares it.
pub(crate) fn known(offer: Offer) -> Known {
    Known { proof: proof(&offer), offer }
}

const fn proof(offer: &Offer) -> Proof {
    if offer.version.is_named() { Proof::Version } else { Proof::None }
}

fn identity(url: &Url) -> Identity {
    let number = |text: &str| {
        let hash = blake3::hash(text.as_bytes());
        let mut number = [0; 8];
        number.copy_from_slice(&hash.as_bytes()[..8]);
        u64::from_le_bytes(number)
    };
    let origin = format!("{}://{}", url.origin.scheme.name(), url.origin.authority());
    Identity { device: number(&origin), number: number(&url.target) }
}
