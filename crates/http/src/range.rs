//! `Content-Range` (RFC 9110, section 14.4).

use std::ops::Range;

/// The part of a file that a body has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContentRange {
    /// Its bytes.
    pub range: Range<u64>,
    /// Bytes of the whole file, if the server sends that.
    pub total: Option<u64>,
}

impl ContentRange {
    /// Parses `bytes 0-99/1000` or `bytes 0-99/*`.
    // fuzz: web
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, rest) = text.trim().split_once(' ')?;
        if !unit.eq_ignore_ascii_case("bytes") {
            return None;
        }
        let (range, total) = rest.trim().split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (number(first)?, number(last)?);
        let end = last.checked_add(1).filter(|&end| first < end)?;
        let total = match total.trim() {
            "*" => None,
            total => Some(number(total).filter(|&total| end <= total)?),
        };
        Some(Self { range: first..end, total })
    }
}

/// Digits only: `parse` of the standard library accepts a sign.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|digit| digit.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_within_its_file() {
        let range = ContentRange::parse("bytes 10-19/100").unwrap();
        assert_eq!(range, ContentRange { range: 10..20, total: Some(100) });
        assert_eq!(ContentRange::parse("Bytes 0-0/*").unwrap().total, None);
        for text in [
            "bytes 10-9/100",
            "bytes 0-100/100",
            "bytes */100",
            "lines 0-9/100",
            "bytes 0-9",
            "bytes +0-9/100",
            "bytes 0-18446744073709551615/*",
        ] {
            assert_eq!(ContentRange::parse(text), None, "{text}");
        }
    }
}
