//! Names of many hosts in few words: `s[01-13].example.org`, `n[1,4-6]`.

use std::fmt::Display;
use std::ops::RangeInclusive;

/// Hosts that one list may name.
pub(super) const HOSTS_MAX: usize = 4096;

/// Why a text names no hosts.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(super) enum HostsError {
    #[error("'{0}' is not the name of a host")]
    Name(String),
    #[error("'{0}' has a bracket without its other half, or one within another")]
    Bracket(String),
    #[error("'{0}' is not a number or a range such as 01-13")]
    Range(String),
    #[error("'{0}' names more than {HOSTS_MAX} hosts")]
    TooMany(String),
}

/// The hosts that `text` names. Each pair of brackets holds numbers and ranges, separated by commas; the first number of a
/// range tells how many digits all of it have.
// fuzz: none, the user's own words
pub(super) fn expand(text: &str) -> Result<Vec<String>, HostsError> {
    let mut names = vec![String::new()];
    let mut rest = text;
    while let Some((literal, behind)) = rest.split_once('[') {
        let bracket = || HostsError::Bracket(text.to_owned());
        let (inside, after) = behind.split_once(']').ok_or_else(bracket)?;
        if literal.contains(']') || inside.contains('[') {
            return Err(bracket());
        }
        let numbers = numbers(inside, HOSTS_MAX / names.len())?;
        let numbers = numbers.ok_or_else(|| HostsError::TooMany(text.to_owned()))?;
        let with = |name: &String, number: &String| format!("{name}{literal}{number}");
        names = names
            .iter()
            .flat_map(|name| numbers.iter().map(move |number| with(name, number)))
            .collect();
        rest = after;
    }
    if rest.contains(']') {
        return Err(HostsError::Bracket(text.to_owned()));
    }
    names.iter_mut().for_each(|name| name.push_str(rest));
    match names.iter().find(|name| !is_host(name)) {
        Some(name) => Err(HostsError::Name(name.clone())),
        None => Ok(names),
    }
}

/// The numbers of a pair of brackets; `None`, if they are more than `max`.
fn numbers(inside: &str, max: usize) -> Result<Option<Vec<String>>, HostsError> {
    let mut all = Vec::new();
    for piece in inside.split(',') {
        let (range, digits) = range(piece).ok_or_else(|| HostsError::Range(piece.to_owned()))?;
        // The difference is below 2^32, so the sum does not overflow.
        let count = (*range.end() - *range.start()) as usize + 1;
        if all.len() + count > max {
            return Ok(None);
        }
        all.extend(range.map(|number| padded(number, digits)));
    }
    Ok(Some(all))
}

/// The numbers of `07` or `01-13`, and how many digits each has at least.
fn range(piece: &str) -> Option<(RangeInclusive<u32>, usize)> {
    let (first, last) = piece.split_once('-').unwrap_or((piece, piece));
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok()).flatten()
    };
    let range = number(first)?..=number(last)?;
    (!range.is_empty()).then_some((range, first.len()))
}

fn padded(number: impl Display, digits: usize) -> String {
    format!("{number:0digits$}")
}

/// Whether ssh and the resolver may be given this name: letters, digits, and what addresses consist of. A name that begins
/// with a hyphen would be an option.
fn is_host(name: &str) -> bool {
    let is_fine = |c: char| c.is_ascii_alphanumeric() || ".-_:%".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(is_fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn brackets_are_numbers_and_ranges() {
        let cases = [
            ("a", "a"),
            ("s[08-11].x", "s08.x s09.x s10.x s11.x"),
            ("s[8-11]", "s8 s9 s10 s11"),
            ("n[1,4-5]", "n1 n4 n5"),
            ("r[1-2]n[1-2]", "r1n1 r1n2 r2n1 r2n2"),
            ("192.0.2.[7-8]", "192.0.2.7 192.0.2.8"),
            ("2001:db8::1", "2001:db8::1"),
        ];
        for (text, wanted) in cases {
            assert_eq!(expand(text).unwrap().join(" "), wanted, "{text}");
        }
        assert_eq!(expand("s[1-4096]").unwrap().len(), HOSTS_MAX);
    }

    #[test]
    fn what_names_no_hosts_is_an_error() {
        let name = ["", "-oProxyCommand=x", "a b", "a/b", "a@b", "a;b", "ü", "a\n"];
        let bracket = ["s[1", "s1]", "s[[1]]", "s]1[", "s[1]]"];
        let range =
            ["s[]", "s[1-]", "s[-1]", "s[2-1]", "s[a-c]", "s[1,,2]", "s[+1-3]", "s[1-99999999999]"];
        let too_many = ["s[1-4097]", "s[0-4294967295]", "a[1-65]b[1-65]", "s[1-4096,5000]"];
        for text in name {
            assert!(matches!(expand(text), Err(HostsError::Name(_))), "{text}");
        }
        for text in bracket {
            assert!(matches!(expand(text), Err(HostsError::Bracket(_))), "{text}");
        }
        for text in range {
            assert!(matches!(expand(text), Err(HostsError::Range(_))), "{text}");
        }
        for text in too_many {
            assert!(matches!(expand(text), Err(HostsError::TooMany(_))), "{text}");
        }
    }
}
