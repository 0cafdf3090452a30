//! The fingerprint of a public key.

use crate::base64;
use aws_lc_rs::digest;
use std::fmt;
use std::str::FromStr;

/// The SHA-256 of a key's `SubjectPublicKeyInfo`. Displayed as ssh does: `SHA256:` and unpadded
/// base64.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a DER-encoded `SubjectPublicKeyInfo`.
    pub fn of(key_info: &[u8]) -> Self {
        let digest = digest::digest(&digest::SHA256, key_info);
        Self(digest.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }

    /// The hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

const PREFIX: &str = "SHA256:";

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", base64::encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not a fingerprint.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a fingerprint: expected SHA256: and 43 base64 characters")]
pub struct NotAFingerprint(String);

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    // fuzz: lines
    fn from_str(text: &str) -> Result<Self, NotAFingerprint> {
        text.strip_prefix(PREFIX)
            .and_then(base64::decode)
            .and_then(|bytes| bytes.try_into().ok())
            .map(Self)
            .ok_or_else(|| NotAFingerprint(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_parse_from_their_text() {
        // The well-known SHA-256 of the empty string.
        let print = Fingerprint::of(b"");
        assert_eq!(print.to_string(), "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU");
        assert_eq!(print.to_string().parse(), Ok(print));
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "SHA256:", "SHA256:abcd", "MD5:47DEQpj8HBSa", "47DEQpj8HBSa+/TImW+5JCeu"] {
            assert_eq!(text.parse::<Fingerprint>(), Err(NotAFingerprint(text.to_owned())));
        }
    }
}
