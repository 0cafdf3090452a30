//! The date in `Expires`, in any of the forms that servers use (RFC 6265, section 5.1.1).

use std::time::{Duration, SystemTime};

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Parses a date. `None` if it is none. A date before 1970 is that of 1970.
// fuzz: web
pub(super) fn date(text: &str) -> Option<SystemTime> {
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == ':' || !c.is_ascii();
    for word in text.split(|c| !is_of_word(c)).filter(|word| !word.is_empty()) {
        if time.is_none()
            && let Some(found) = time_of(word)
        {
            time = Some(found);
        } else if day.is_none()
            && let Some(found) = number(word, 1..=2)
        {
            day = Some(found);
        } else if month.is_none()
            && let Some(found) = month_of(word)
        {
            month = Some(found);
        } else if year.is_none()
            && let Some(found) = number(word, 2..=4)
        {
            year = Some(match found {
                0..=69 => found + 2000,
                70..=99 => found + 1900,
                year => year,
            });
        }
    }
    let ((hour, minute, second), day, month, year) = (time?, day?, month?, year?);
    let is_valid =
        (1..=31).contains(&day) && year >= 1601 && hour <= 23 && minute <= 59 && second <= 59;
    if !is_valid {
        return None;
    }
    let days = days(year, month, day);
    let seconds = days * 86_400 + i64::from(hour * 3600 + minute * 60 + second);
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// The digits at the beginning of a word, if there are that many.
fn number(word: &str, count: std::ops::RangeInclusive<usize>) -> Option<u32> {
    let digits = word.bytes().take_while(u8::is_ascii_digit).count();
    if count.contains(&digits) { word[..digits].parse().ok() } else { None }
}

fn time_of(word: &str) -> Option<(u32, u32, u32)> {
    let mut parts = word.splitn(3, ':').map(|part| number(part, 1..=2));
    Some((parts.next()??, parts.next()??, parts.next()??))
}

/// The number of a month, from 1.
fn month_of(word: &str) -> Option<u32> {
    let begin = word.get(..3)?.to_ascii_lowercase();
    let at = MONTHS.iter().position(|month| *month == begin)?;
    u32::try_from(at + 1).ok()
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. The year begins with March, so that a leap day is its last.
fn days(year: u32, month: u32, day: u32) -> i64 {
    let year = i64::from(year) - i64::from(month <= 2);
    let month = i64::from((month + 9) % 12);
    let of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let leap_days = year / 4 - year / 100 + year / 400;
    year * 365 + leap_days + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_in_the_forms_that_servers_use() {
        let seconds = |text| {
            let time: Option<SystemTime> = date(text);
            time.map(|time| time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs())
        };
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "Sun, 06-Nov-1994 08:49:37 GMT",
            "6 nov 94 8:49:37",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        assert_eq!(seconds("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(seconds("Tue, 29 Feb 2028 12:00:00 GMT"), Some(1_835_438_400));
        assert_eq!(seconds("Mon, 01 Jan 1601 00:00:00 GMT"), Some(0));
        for text in ["", "Sun", "0", "Sun, 06 Nov 1994", "32 Nov 1994 1:1:1", "1 Nov 1994 24:0:0"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }
}
