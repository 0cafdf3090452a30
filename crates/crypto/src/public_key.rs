//! The public key of an identity, as people exchange it.

use crate::base64;
use crate::fingerprint::Fingerprint;
use std::fmt;
use std::str::FromStr;

/// An Ed25519 public key. Its text is `ed25519:` and 43 base64 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// What comes before the key in a `SubjectPublicKeyInfo` (RFC 8410, section 4).
const INFO_HEAD: [u8; 12] =
    [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
const PREFIX: &str = "ed25519:";

/// The text is no public key.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "`{0}` is not a public key: expected ed25519: and 43 base64 characters, as hikyaku keys show prints"
)]
pub struct NotAPublicKey(String);

impl PublicKey {
    /// The key in a DER-encoded `SubjectPublicKeyInfo`; `None` if that is of another kind.
    pub(crate) fn of_info(info: &[u8]) -> Option<Self> {
        info.strip_prefix(&INFO_HEAD)?.try_into().ok().map(Self)
    }

    /// Its fingerprint, by which a handshake knows it.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&[&INFO_HEAD[..], &self.0].concat())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", base64::encode(&self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = NotAPublicKey;

    // fuzz: none, an administrator's own file, or what ssh brought
    fn from_str(text: &str) -> Result<Self, NotAPublicKey> {
        text.strip_prefix(PREFIX)
            .and_then(base64::decode)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| NotAPublicKey(text.chars().take(80).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Identity;

    #[test]
    fn the_text_stands_for_the_key_of_the_handshake() {
        let identity = Identity::generate().unwrap();
        let key = identity.public_key();
        assert_eq!(key.to_string().parse(), Ok(key));
        assert_eq!(key.fingerprint(), identity.fingerprint());
        assert!("SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU".parse::<PublicKey>().is_err());
        assert!("ed25519:AAAA".parse::<PublicKey>().is_err());
    }
}
