//! Times as FTP writes them: 14 digits, UTC.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY_SECONDS: u64 = 86_400;

/// `20260102030405`.
pub(super) fn digits(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    let rest = seconds % DAY_SECONDS;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// `Jan  2  2026`, as in the lines of LIST.
pub(super) fn of_listing(time: SystemTime) -> String {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let (year, month, day) = civil(seconds / DAY_SECONDS);
    let month = MONTHS[(month - 1) as usize % MONTHS.len()];
    format!("{month} {day:2}  {year}")
}

/// The time of 14 digits.
pub(super) fn parse(text: &str) -> Option<SystemTime> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u64>().ok();
    let (year, month, day) = (number(0..4)?, number(4..6)?, number(6..8)?);
    let (hour, minute, second) = (number(8..10)?, number(10..12)?, number(12..14)?);
    let days = (0..60_000).find(|&days| civil(days) == (year, month, day))?;
    let seconds = days * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    Some(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Year, month and day of a day since 1970.
fn civil(days: u64) -> (u64, u64, u64) {
    let (mut year, mut left) = (1970, days);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    while left >= 365 + u64::from(is_leap(year)) {
        left -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    for (month, length) in (1..).zip(lengths) {
        if left < length {
            return (year, month, left + 1);
        }
        left -= length;
    }
    (year, 12, 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_and_its_digits_name_each_other() {
        for (seconds, text) in [
            (0, "19700101000000"),
            (951_827_696, "20000229123456"),
            (1_767_322_645, "20260102025725"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!((digits(time).as_str(), parse(text)), (text, Some(time)));
        }
    }
}
