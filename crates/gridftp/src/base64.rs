//! Base64 with padding (RFC 4648, section 4), as ADAT and ENC carry TLS records.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * at)) as usize & 63];
            text.push(if at <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

/// `None` if `text` is not the encoding of any bytes. Padding may be missing.
// fuzz: ftp_replies
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let end = text.iter().rposition(|&letter| letter != b'=').map_or(0, |at| at + 1);
    let mut bytes = Vec::new();
    for group in text[..end].chunks(4) {
        let mut bits = 0;
        for (at, letter) in group.iter().enumerate() {
            let value = ALPHABET.iter().position(|known| known == letter)?;
            bits |= (value as u32) << (18 - 6 * at);
        }
        bytes.extend_from_slice(bits.to_be_bytes().get(1..group.len())?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_are_met() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        for (bytes, text) in cases {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decode(b"Zg=x"), None);
        assert_eq!(decode(b"Z"), Some(vec![]));
    }
}
