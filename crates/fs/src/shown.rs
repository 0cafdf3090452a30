//! Text from elsewhere on a terminal: nothing in it may move the cursor, ring a bell or turn the
//! reading direction (CVE-2019-6109, CVE-2019-6110).

use std::fmt::{self, Write};

/// Bytes from a peer, to be printed: what is not plain text appears escaped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown<'a>(&'a [u8]);

impl<'a> Shown<'a> {
    /// Text, a name or a path.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// A sentence of the other end, in which names are escaped already: nothing else of it may do
/// anything to a terminal either.
pub fn sentence(text: &str) -> String {
    let plain = |c: char| if c == '\\' || is_plain(c) { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(plain).collect()
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                if is_plain(c) { f.write_char(c)? } else { write!(f, "{}", c.escape_default())? }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Neither a control character, nor one that is invisible or changes what stands around it. The
/// backslash is escaped so that an escape cannot be forged.
fn is_plain(c: char) -> bool {
    let changes_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !(c.is_control() || c == '\\' || changes_direction || invisible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_of_a_peer_is_text() {
        assert_eq!(sentence("a\\nb: \u{1b}[2J\n\u{202e}x"), "a\\nb: \u{fffd}[2J\u{fffd}\u{fffd}x");
    }

    #[test]
    fn no_byte_of_a_peer_reaches_the_terminal_raw() {
        let cases: [(&[u8], &str); 7] = [
            (b"run7/a b.dat", "run7/a b.dat"),
            ("名前.dat".as_bytes(), "名前.dat"),
            (b"a\x1b[2Jb", "a\\u{1b}[2Jb"),
            (b"a\nb\r", "a\\nb\\r"),
            (b"\xff\xc2\x9b", "\\xff\\u{9b}"),
            ("a\u{202e}gpj.exe".as_bytes(), "a\\u{202e}gpj.exe"),
            (b"\\x1b", "\\\\x1b"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Shown::new(bytes).to_string(), text);
        }
    }
}
