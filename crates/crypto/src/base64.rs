//! Base64 without padding (RFC 4648, section 4), for fingerprints. These are public, so the code
//! need not run in constant time.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(crate) fn encode(bytes: &[u8]) -> String {
    let mut out = String::new();
    for group in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let bits = u32::from_be_bytes(word);
        for index in 0..=group.len() {
            out.push(char::from(ALPHABET[(bits >> (18 - 6 * index)) as usize & 63]));
        }
    }
    out
}

/// `None` unless `text` is the canonical encoding of some bytes.
// fuzz: none, the user's own key
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for group in text.as_bytes().chunks(4) {
        let mut bits = 0;
        for (index, letter) in group.iter().enumerate() {
            let value = ALPHABET.iter().position(|known| known == letter)?;
            bits |= (value as u32) << (18 - 6 * index);
        }
        out.extend_from_slice(bits.to_be_bytes().get(1..group.len())?);
    }
    // The comparison rejects non-zero bits after the last byte, and a last group of one character.
    (encode(&out) == text).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_rfc_hold() {
        for (bytes, text) in
            [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")]
        {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["Z", "Zh", "Zg==", "Zm9vY", "Zm 9", "Zm-_", "Zm9\u{e9}"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
