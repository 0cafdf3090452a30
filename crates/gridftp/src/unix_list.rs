//! Listings as `ls -l` prints them, which is the form of LIST at nearly all servers: `-rw-r--r-- 1 ftp ftp 5 Jan  2 2026 name`.
//!
//! RFC 959 gives LIST no form. A line of another form is an entry with an error.

use crate::facts::{EntryError, Facts, Kind, Listed};
use hikyaku_fs::{Name, Shown};

#[cfg(test)]
mod tests;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
/// Bytes of an unreadable line in an error.
const SHOWN_BYTES_MAX: usize = 200;

/// Reads the lines of a listing, without the listed directory itself.
// fuzz: ftp_replies
pub(crate) fn listing(text: &[u8]) -> Vec<Listed> {
    lines(text).filter_map(entry).collect()
}

/// Whether the listed directory itself is among the lines: the server lists names that begin with a dot.
// fuzz: ftp_replies
pub(crate) fn has_itself(text: &[u8]) -> bool {
    lines(text).any(|line| parse(line).is_some_and(|(_, name)| name == b"."))
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = text.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty() && !line.starts_with(b"total "))
}

/// `None` for the listed directory itself, and for the one above it.
fn entry(line: &[u8]) -> Option<Listed> {
    let Some((facts, name)) = parse(line) else {
        let shown = Shown::new(&line[..line.len().min(SHOWN_BYTES_MAX)]).to_string();
        let (name, facts) = (Err(EntryError::Line(shown)), Facts::of(Kind::Other));
        return Some(Listed { name, facts });
    };
    let name = match name {
        b"." | b".." => return None,
        name => Name::new(name).map_err(EntryError::Name),
    };
    Some(Listed { name, facts })
}

/// The facts and the name in a line. The time is left out: it is that of an unknown zone, and has no seconds.
// fuzz: ftp_replies
fn parse(line: &[u8]) -> Option<(Facts, &[u8])> {
    let kind = match line.first()? {
        b'-' => Kind::File,
        b'd' => Kind::Directory,
        b'l' => Kind::Link,
        b'b' | b'c' | b'p' | b's' => Kind::Other,
        _ => return None,
    };
    let mode = mode(line.get(1..10)?)?;
    let words = words(line);
    // Owners and groups may be missing, or of several words. The size is before the month.
    let is_date = |at: &usize| {
        let word = |after: usize| words.get(at + after).map(|(word, _)| *word);
        let is_month = word(0).is_some_and(|word| MONTHS.contains(&&*word.to_ascii_lowercase()));
        let is_day = word(1).is_some_and(|word| matches!(word.parse(), Ok(1..=31_u8)));
        is_month && is_day && word(2).is_some_and(is_year_or_time)
    };
    let month = (2..words.len()).find(is_date)?;
    let size = words[month - 1].0.parse().ok();
    if kind == Kind::File && size.is_none() {
        return None;
    }
    // One space is before the name; others are its own.
    let name = line.get(words[month + 2].1 + 1..).filter(|name| !name.is_empty())?;
    let name = match kind {
        // The text of the link is behind the name. A name that has an arrow itself is cut at it.
        Kind::Link => &name[..name.windows(4).position(|four| four == b" -> ")?],
        _ => name,
    };
    Some((Facts { size, mode: Some(mode), ..Facts::of(kind) }, name))
}

/// Permission bits from nine letters.
fn mode(letters: &[u8]) -> Option<u32> {
    let bit = |(at, letter): (usize, &u8)| match letter {
        b'-' | b'S' | b'T' => Some(0),
        b'r' | b'w' | b'x' | b's' | b't' => Some(0o400 >> at),
        _ => None,
    };
    letters.iter().enumerate().map(bit).sum()
}

/// The words of a line in ASCII with the offsets of their ends, up to the first that is not.
fn words(line: &[u8]) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut at = 0;
    for word in line.split(|&byte| byte == b' ') {
        let end = at + word.len();
        if !word.is_empty() {
            match str::from_utf8(word) {
                Ok(word) => words.push((word, end)),
                // It may be the name of a group: it takes its place.
                Err(_) => words.push(("", end)),
            }
        }
        at = end + 1;
    }
    words
}

/// `2026`, or `13:05`.
fn is_year_or_time(word: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match word.split_once(':') {
        Some((hour, minute)) => {
            is_number(hour) && is_number(minute) && hour.len() <= 2 && minute.len() == 2
        }
        None => is_number(word) && word.len() == 4,
    }
}
