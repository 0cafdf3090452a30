//! Paths in lines of text, in files of this user and in answers of servers: bytes that are no printable ASCII are written as
//! `%` and two digits.

use std::fmt::Write as _;

/// A path as text without line ends.
pub fn escaped(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            // Writing to a string cannot fail.
            _ => drop(write!(text, "%{byte:02x}")),
        }
    }
    text
}

/// The path that was [escaped]; `None` if the text is none.
// fuzz: ftp_replies
pub fn unescaped(text: &[u8]) -> Option<Vec<u8>> {
    let mut path = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            path.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2)?;
        let digits =
            str::from_utf8(digits).ok().filter(|_| digits.iter().all(u8::is_ascii_hexdigit))?;
        path.push(u8::from_str_radix(digits, 16).ok()?);
        rest = after;
    }
    Some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_one_line_and_comes_back() {
        for path in [&b"/a b/.c.hikyaku"[..], b"100%", b"\xff\n\r%41", b""] {
            let text = escaped(path);
            assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)), "{text}");
            assert_eq!(unescaped(text.as_bytes()).as_deref(), Some(path), "{text}");
        }
        for text in ["%", "%4", "%zz", "%+1"] {
            assert_eq!(unescaped(text.as_bytes()), None, "{text}");
        }
    }
}
