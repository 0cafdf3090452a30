//! Names in lines for the user, as rsync prints them: a byte that is not printed is `\#` and three octal digits.

use std::env;

/// Which bytes of names are printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Escape {
    /// Printable characters of UTF-8.
    Utf8,
    /// Printable characters of ASCII, as where the user's locale has no others.
    Ascii,
    /// All but control characters (`-8`).
    EightBit,
}

impl Escape {
    /// As the locale of this process wants it.
    pub(crate) fn of_locale() -> Self {
        let said = |name: &str| env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(said).unwrap_or_default();
        let is_utf8 = locale.to_ascii_lowercase().replace('-', "").contains("utf8");
        if is_utf8 { Self::Utf8 } else { Self::Ascii }
    }

    /// A line without its end.
    pub(crate) fn line(self, bytes: &[u8]) -> Vec<u8> {
        let mut line = Vec::with_capacity(bytes.len());
        let mut rest = bytes;
        while let Some((&first, after)) = rest.split_first() {
            let character = match first {
                b'\\' if looks_escaped(after) => Character::Hidden(1),
                b'\t' | b' '..=b'~' => Character::Plain(1),
                0x80.. if self == Self::EightBit => Character::Plain(1),
                0x80.. if self == Self::Utf8 => utf8(rest),
                _ => Character::Hidden(1),
            };
            let (Character::Plain(length) | Character::Hidden(length)) = character;
            let (taken, after) = rest.split_at(length);
            match character {
                Character::Plain(_) => line.extend_from_slice(taken),
                Character::Hidden(_) => {
                    taken.iter().for_each(|byte| line.extend(format!("\\#{byte:03o}").bytes()));
                }
            }
            rest = after;
        }
        line
    }
}

/// The next character and its bytes.
#[derive(Clone, Copy)]
enum Character {
    Plain(usize),
    Hidden(usize),
}

/// Whether a backslash before these bytes would read as an escape.
fn looks_escaped(after: &[u8]) -> bool {
    matches!(after, [b'#', digits @ ..] if digits.len() >= 3 && digits[..3].iter().all(u8::is_ascii_digit))
}

/// The first character of bytes that begin with none of ASCII. Control characters beyond ASCII are hidden, too.
fn utf8(bytes: &[u8]) -> Character {
    let chunk = bytes.utf8_chunks().next();
    match chunk.and_then(|chunk| chunk.valid().chars().next()) {
        Some(character) if character.is_control() => Character::Hidden(character.len_utf8()),
        Some(character) => Character::Plain(character.len_utf8()),
        None => Character::Hidden(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped_as_by_rsync() {
        let cases: [(&[u8], [&[u8]; 3]); 9] = [
            (br"a\b", [br"a\b"; 3]),
            (br"a\#123", [br"a\#134#123"; 3]),
            (br"a\#12", [br"a\#12"; 3]),
            (b"n\nl\r", [br"n\#012l\#015"; 3]),
            (b"t\tab ~", [b"t\tab ~"; 3]),
            (b"e\x1b[1m", [br"e\#033[1m"; 3]),
            ("é".as_bytes(), ["é".as_bytes(), br"\#303\#251", "é".as_bytes()]),
            (b"\xffx\xc3", [br"\#377x\#303", br"\#377x\#303", b"\xffx\xc3"]),
            ("\u{9b}".as_bytes(), [br"\#302\#233", br"\#302\#233", b"\xc2\x9b"]),
        ];
        for (name, wanted) in cases {
            for (escape, wanted) in
                [Escape::Utf8, Escape::Ascii, Escape::EightBit].iter().zip(wanted)
            {
                assert_eq!(escape.line(name), wanted, "{escape:?} {name:?}");
            }
        }
    }
}
