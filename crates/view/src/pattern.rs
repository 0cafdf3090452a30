//! Expands the user's arguments into names of pictures.

use anyhow::{Context, Result, ensure};
use globset::{GlobBuilder, GlobMatcher};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

/// Which names are meant: one, those that match a pattern, or numbered ones.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// The directory, which has no pattern in it: everything up to the last slash before one.
    pub(crate) dir: Vec<u8>,
    matcher: GlobMatcher,
}

impl Pattern {
    /// Reads `run/*.png` or `run/a.%05d.png`; `None` for a plain name.
    // fuzz: none, the user's own words
    pub(crate) fn parse(text: &[u8]) -> Result<Option<Self>> {
        let globbed = numbered(text);
        let is_pattern = globbed.iter().any(|byte| b"*?[{".contains(byte));
        if !is_pattern {
            return Ok(None);
        }
        let wild = globbed.iter().position(|byte| b"*?[{".contains(byte)).unwrap_or_default();
        let dir = globbed[..wild].iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
        let whole = str::from_utf8(&globbed).context("a pattern must be UTF-8")?;
        ensure!(!whole.contains("**"), "'{whole}': '**' is not supported");
        let glob = GlobBuilder::new(whole).literal_separator(true).build()?;
        let dir = globbed[..dir].strip_suffix(b"/").unwrap_or(&globbed[..dir]).to_vec();
        Ok(Some(Self { dir, matcher: glob.compile_matcher() }))
    }

    /// Whether the path is meant.
    pub(crate) fn matches(&self, path: &[u8]) -> bool {
        self.matcher.is_match(OsStr::from_bytes(path))
    }
}

/// Every `%d` and `%05d` as a pattern of digits.
fn numbered(text: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        pattern.extend_from_slice(&rest[..at]);
        let behind = &rest[at + 1..];
        let digits = behind.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let width = str::from_utf8(&behind[..digits]).ok().and_then(|text| text.parse().ok());
        if behind.get(digits) == Some(&b'd') && width.unwrap_or(0) <= WIDTH_MAX {
            match width {
                Some(width) if width > 0 => (0..width).for_each(|_| pattern.extend(b"[0-9]")),
                _ => pattern.extend(b"[0-9]*"),
            }
            rest = &behind[digits + 1..];
        } else {
            pattern.push(b'%');
            rest = behind;
        }
    }
    pattern.extend_from_slice(rest);
    pattern
}

/// Digits that a number in a pattern may have.
const WIDTH_MAX: usize = 20;

/// Orders names as people count: `a.9` before `a.10`.
pub(crate) fn natural(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let number = |text: &[u8]| text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let (in_a, in_b) = (number(a), number(b));
        let order = if in_a > 0 && in_b > 0 {
            let ((first, a_rest), (second, b_rest)) = (a.split_at(in_a), b.split_at(in_b));
            (a, b) = (a_rest, b_rest);
            let value = |digits: &[u8]| {
                let zeros = digits.iter().take_while(|&&byte| byte == b'0').count();
                digits[zeros..].to_vec()
            };
            let (first_value, second_value) = (value(first), value(second));
            let by_value =
                (first_value.len(), &first_value).cmp(&(second_value.len(), &second_value));
            by_value.then(first.len().cmp(&second.len()))
        } else {
            match (a.split_first(), b.split_first()) {
                (Some((first, a_rest)), Some((second, b_rest))) => {
                    (a, b) = (a_rest, b_rest);
                    first.cmp(second)
                }
                (first, second) => return first.is_some().cmp(&second.is_some()),
            }
        };
        if order.is_ne() {
            return order;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names_of_their_directory() {
        for (text, dir, yes, no) in [
            ("run/*.png", "run", "run/a.png", "run/b/a.png"),
            ("a.%05d.png", "", "a.00012.png", "a.12.png"),
            ("r/a%d", "r", "r/a7", "r/ab"),
            ("r*/[ab].png", "", "r7/a.png", "r7/c.png"),
        ] {
            let pattern = Pattern::parse(text.as_bytes()).unwrap().unwrap();
            assert_eq!(pattern.dir, dir.as_bytes(), "{text}");
            assert!(pattern.matches(yes.as_bytes()), "{text} {yes}");
            assert!(!pattern.matches(no.as_bytes()), "{text} {no}");
        }
        assert!(Pattern::parse(b"run/100%.png").unwrap().is_none());
        assert!(Pattern::parse(b"run/**/x").is_err());
    }

    #[test]
    fn names_are_ordered_as_people_count() {
        let mut names = vec!["a10", "a9", "a09", "b1", "a", "a9b"];
        names.sort_by(|a, b| natural(a.as_bytes(), b.as_bytes()));
        assert_eq!(names, ["a", "a9", "a9b", "a09", "a10", "b1"]);
    }
}
