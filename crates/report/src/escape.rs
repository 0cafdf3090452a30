//! Texts of a log in the page. A log has names that a peer or another user chose.

use hikyaku_fs::Shown;
use std::fmt::{self, Write};

/// A text in the page, as content or in an attribute between double quotes. Control characters and those that change the
/// reading direction are shown as escapes.
pub(crate) struct Text<'a>(pub(crate) &'a str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in Shown::new(self.0.as_bytes()).to_string().chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// A text of at most `most` characters. A mark stands for the part that is left out in the middle.
pub(crate) fn shortened(text: &str, most: usize) -> String {
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= most {
        return text.to_owned();
    }
    let (head, tail) = ((most - 1) / 3, (most - 1) - (most - 1) / 3);
    let (head, tail) = (&chars[..head], &chars[chars.len() - tail..]);
    head.iter().chain(&['\u{2026}']).chain(tail).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_markup() {
        let name = "\"><script>alert('1')</script>&\u{202e}gpj.\u{1b}[2J";
        let shown = Text(name).to_string();
        assert!(!shown.contains(['<', '>', '"', '\'', '\u{202e}', '\u{1b}']), "{shown}");
        assert!(shown.starts_with("&quot;&gt;&lt;script&gt;"), "{shown}");
    }

    #[test]
    fn a_long_name_keeps_its_begin_and_its_end() {
        assert_eq!(shortened("abc", 3), "abc");
        let short = shortened(&format!("run7/{}/file.dat", "x".repeat(300)), 30);
        assert_eq!(short.chars().count(), 30);
        assert!(short.starts_with("run7/") && short.ends_with("/file.dat"), "{short}");
    }
}
