//! Base64 with padding (RFC 4648, section 4), as ADAT and ENC carry TLS records.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Servers leave the padding out, or not.
const CONFIG: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ENGINE: GeneralPurpose = GeneralPurpose::new(&STANDARD, CONFIG);

pub(crate) fn encode(bytes: &[u8]) -> String {
    ENGINE.encode(bytes)
}

/// `None` if `text` is not the encoding of any bytes. Padding may be missing.
// fuzz: ftp_replies
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    ENGINE.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padding_is_written_and_may_be_missing() {
        for (bytes, text) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foobar", "Zm9vYmFy")] {
            assert_eq!(encode(bytes.as_bytes()), text);
            for text in [text, text.trim_end_matches('=')] {
                assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()), "{text}");
            }
        }
        assert_eq!((decode(b"Zg=x"), decode(b"Z")), (None, None));
    }
}
