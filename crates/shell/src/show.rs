//! Names and texts for a terminal.

use std::fmt::{self, Write};

/// Bytes, displayed with everything but plain text escaped. A backslash stays as it is, as in OpenSSH's sftp, so that a
/// script finds the name that it knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Shown<'a>(&'a [u8]);

impl<'a> Shown<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = self.0.split(|&byte| byte == b'\\');
        if let Some(first) = parts.next() {
            hikyaku_fs::Shown::new(first).fmt(f)?;
        }
        for part in parts {
            f.write_char('\\')?;
            hikyaku_fs::Shown::new(part).fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_printed_as_it_is_but_for_what_moves_the_cursor() {
        let cases: [(&[u8], &str); 4] = [
            (b"a b", "a b"),
            (br"a\b\", r"a\b\"),
            ("名前".as_bytes(), "名前"),
            (b"a\x1b[2J\xff", r"a\u{1b}[2J\xff"),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(Shown::new(bytes).to_string(), wanted);
        }
    }
}
