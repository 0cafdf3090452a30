//! Times as servers write them (RFC 3659, section 2.3): `20260102030405.678`, UTC.

const DAY_SECONDS: i64 = 86_400;

/// Seconds since 1970, and nanoseconds.
// fuzz: ftp_replies
pub(crate) fn parse(text: &str) -> Option<(i64, u32)> {
    let (digits, fraction) = text.split_once('.').unwrap_or((text, ""));
    if digits.len() != 14 || !digits.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number = |from: usize, to: usize| digits[from..to].parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(4, 6)?, number(6, 8)?);
    let (hour, minute, second) = (number(8, 10)?, number(10, 12)?, number(12, 14)?);
    // A leap second is the sixtieth.
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * DAY_SECONDS + hour * 3600 + minute * 60 + second;
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    Some((seconds, nanos.parse().ok()?))
}

/// The 14 digits of a time since 1970. `None` before 1970 and after 9999.
pub(crate) fn digits(seconds: i64) -> Option<String> {
    if !(0..253_402_300_800).contains(&seconds) {
        return None;
    }
    let (day, rest) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let year = (1970..=9999).rev().find(|&year| days(year, 1, 1) <= day)?;
    let month = (1..=12).rev().find(|&month| days(year, month, 1) <= day)?;
    let of_month = day - days(year, month, 1) + 1;
    let (hour, minute, second) = (rest / 3600, rest / 60 % 60, rest % 60);
    Some(format!("{year:04}{month:02}{of_month:02}{hour:02}{minute:02}{second:02}"))
}

/// Days from 1970-01-01 to a day of the Gregorian calendar. The year is counted from March, so that a leap day ends it.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let of_year = (153 * month + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
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
            (253_402_300_799, "99991231235959"),
        ] {
            assert_eq!(parse(text), Some((seconds, 0)));
            assert_eq!(digits(seconds).as_deref(), Some(text));
        }
        assert_eq!(parse("20260102025725.25"), Some((1_767_322_645, 250_000_000)));
        assert_eq!([digits(-1), digits(253_402_300_800)], [None, None]);
        for text in
            ["", "2026", "20261302025725", "20260102255725", "2026010202572x", "+0260102025725"]
        {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
