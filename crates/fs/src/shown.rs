//! Escaping of untrusted text for a terminal. Nothing in it may move the cursor, ring the bell or
//! change the reading direction (CVE-2019-6109, CVE-2019-6110).

use std::fmt::{self, Write};

/// Bytes from a peer, displayed with everything but plain text escaped (`\n`, `\u{1b}`, `\xff`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shown<'a>(&'a [u8]);

impl<'a> Shown<'a> {
    /// Wraps a text, a name or a path.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

/// Makes a message of the peer safe for a terminal: control characters become U+FFFD. Backslashes
/// are kept, because the peer has already escaped the names in its message.
pub fn sentence(text: &str) -> String {
    let plain = |c: char| if c == '\\' || is_plain(c) { c } else { char::REPLACEMENT_CHARACTER };
    text.chars().map(plain).collect()
}

/// The longest text that [`brief`] returns, in bytes: a path of `PATH_MAX` bytes fits unless much
/// of it is escaped.
const BRIEF_BYTES_MAX: usize = 4096;

/// A message that may contain a peer's text, made safe for a terminal, without line breaks, and cut
/// to 4,096 bytes.
pub fn brief(text: &str) -> String {
    cut(sentence(text))
}

/// Cuts a text to 4,096 bytes at a character boundary and marks the cut by `...`.
pub fn cut(mut text: String) -> String {
    if text.len() > BRIEF_BYTES_MAX {
        let end =
            (0..=BRIEF_BYTES_MAX - 3).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push_str("...");
        text.shrink_to_fit();
    }
    text
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

/// Whether a character may be printed as it is. Control characters, invisible ones and those that
/// change the reading direction may not. The backslash may not either, so that a peer cannot forge
/// an escape.
fn is_plain(c: char) -> bool {
    let changes_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let invisible = matches!(c, '\u{00ad}' | '\u{200b}'..='\u{200d}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}');
    !(c.is_control() || c == '\\' || changes_direction || invisible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_of_a_peer_has_no_control_characters() {
        assert_eq!(sentence("a\\nb: \u{1b}[2J\n\u{202e}x"), "a\\nb: \u{fffd}[2J\u{fffd}\u{fffd}x");
    }

    #[test]
    fn a_brief_text_is_one_line_of_bounded_length() {
        assert_eq!(brief("a\nb\u{1b}c"), "a\u{fffd}b\u{fffd}c");
        let long = brief(&"ä".repeat(100_000));
        assert!(long.len() <= BRIEF_BYTES_MAX && long.ends_with("ä..."), "{}", long.len());
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
