//! Base64 without padding (RFC 4648, section 4), for fingerprints and keys.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;

pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

/// `None` unless `text` is the canonical encoding of some bytes.
// fuzz: none, the user's own key
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    STANDARD_NO_PAD.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_canonical_texts_are_read() {
        for (bytes, text) in [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        for text in ["Z", "Zh", "Zg==", "Zm9vY", "Zm 9", "Zm-_", "Zm9\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
