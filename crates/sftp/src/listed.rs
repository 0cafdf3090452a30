//! The time of an entry. Version 3 tells times in 32 bits, so that one before 1970 looks like one after 2038. The line
//! that `ls -l` prints of an entry tells the year, or the time of day for the last half of a year and what is to come.

use crate::attributes::{Attributes, Kind};
use crate::client::{Asked, Client};
use crate::packet::{Entry, Request};

/// Why some times cannot be set.
pub const NO_SUCH_TIME: &str = "SFTP has no times before 1970 or after 2106";

/// Seconds after which version 3 begins anew.
const ERA: i64 = 1 << 32;
/// Seconds of a year, in the mean.
const YEAR: i64 = 31_556_952;
/// What servers take for lately: less than half a year is told with the time of day.
const LATELY: i64 = YEAR / 2 + 2 * 86_400;

/// The last time that looks like no other one: servers that have 32 bits with a sign end here.
const PLAIN_MAX: u32 = i32::MAX as u32;

impl Client {
    /// When what is at `path` was changed, in seconds since 1970. `found` is what the server has told of it, by
    /// [`Request::Stat`] or, for a link, [`Request::LStat`]. Only where that may mean a time before 1970, the directory is
    /// listed. `None` if the server has told no time, or the directory cannot be listed.
    ///
    /// # Errors
    ///
    /// The connection has ended.
    pub fn modified(&self, path: &[u8], found: &Attributes, now: i64) -> Asked<Option<i64>> {
        match found.times {
            Some((_, told)) if told > PLAIN_MAX => {}
            times => return Ok(times.map(|(_, told)| told.into())),
        }
        match self.line_of(path, found) {
            Ok(entry) => {
                // The directory has been read, which may have changed its other time.
                let modified = |attributes: &Attributes| attributes.times.map(|(_, time)| time);
                let same = entry.filter(|entry| modified(&entry.attributes) == modified(found));
                Ok(same.and_then(|entry| entry.modified(now)))
            }
            Err(error) if error.is_end() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// The entry that a listing has of a path. A directory has one of itself.
    fn line_of(&self, path: &[u8], found: &Attributes) -> Asked<Option<Entry>> {
        if found.kind() == Some(Kind::Dir) {
            return self.entry_in(path, b".");
        }
        let whole = match found.kind() {
            Some(Kind::Link) => path.to_vec(),
            _ => self.name(&Request::RealPath(path))?,
        };
        match whole.iter().rposition(|&byte| byte == b'/') {
            Some(0) => self.entry_in(b"/", &whole[1..]),
            Some(at) => self.entry_in(&whole[..at], &whole[at + 1..]),
            None => self.entry_in(b".", &whole),
        }
    }

    fn entry_in(&self, dir: &[u8], name: &[u8]) -> Asked<Option<Entry>> {
        let handle = self.open(&Request::OpenDir(dir))?;
        let found = loop {
            match self.entries(&handle) {
                Ok(Some(entries)) => {
                    if let Some(entry) = entries.into_iter().find(|entry| entry.name == name) {
                        break Ok(Some(entry));
                    }
                }
                Ok(None) => break Ok(None),
                Err(error) => break Err(error),
            }
        };
        let closed = self.close(&handle);
        let found = found?;
        closed.map(|()| found)
    }
}

impl Entry {
    /// When it was changed, in seconds since 1970, by the server's number and its line. `now` is in the same form.
    pub fn modified(&self, now: i64) -> Option<i64> {
        let told = i64::from(self.attributes.times?.1);
        Some(match field(&self.line) {
            Some(Field::Year(year)) => {
                let is_it = |&time: &i64| (1970 + time.div_euclid(YEAR) - year).abs() <= 1;
                [told, told - ERA, told + ERA].into_iter().find(is_it).unwrap_or(told)
            }
            Some(Field::Clock) if told < now - LATELY => told + ERA,
            Some(Field::Clock) | None => told,
        })
    }
}

/// What stands in a line behind month and day.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Year(i64),
    Clock,
}

/// `-rw-r--r--    1 user     group        12 Jul  4  1969 name`.
// fuzz: sftp
fn field(line: &[u8]) -> Option<Field> {
    let mut fields = line.split(|&byte| byte == b' ').filter(|field| !field.is_empty());
    let text = str::from_utf8(fields.nth(7)?).ok()?;
    match text.split_once(':') {
        Some((hour, _)) => hour.parse::<u8>().is_ok().then_some(Field::Clock),
        None => text.parse().ok().filter(|_| text.len() == 4).map(Field::Year),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_tells_the_century() {
        let now = 1_790_000_000;
        // What stands in the line, and the time.
        let cases = [
            ("Jul  4  1969", -15_552_000),
            ("Dec 31  1901", -2_145_916_800),
            ("Jan  1  1970", 0),
            ("May  3  2001", 988_848_000),
            ("Sep 21 12:00", now - 3600),
            ("Jan 19 03:14", 2_147_483_648),
            ("Feb  6 07:28", 4_294_967_295),
            ("Mar  1 00:00", 4_294_967_296 + 1_000),
            ("Jan  1  2446", 15_020_000_000),
        ];
        for (text, time) in cases {
            let line = format!("drwxr-xr-x    2 root     root         4096 {text} a 12:00 name");
            let told = (time as u32, time as u32);
            let attributes = Attributes { times: Some(told), ..Attributes::default() };
            let entry = Entry { name: Vec::new(), line: line.into_bytes(), attributes };
            let wanted = if time > 2 * ERA { i64::from(time as u32) } else { time };
            assert_eq!(entry.modified(now), Some(wanted), "{text}");
        }
        for line in ["", "a line of another kind of server", "1 2 3 4 5 6 7 20x1 n"] {
            let attributes = Attributes { times: Some((7, 7)), ..Attributes::default() };
            let entry = Entry { name: Vec::new(), line: line.as_bytes().to_vec(), attributes };
            assert_eq!(entry.modified(now), Some(7), "{line}");
        }
    }
}
