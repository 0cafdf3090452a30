//! The columns of ls(1): modes, times and sizes.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// A file that is older shows its year in place of the time of day: half a year.
const RECENT_SECS: i64 = 365 * 24 * 3600 / 2;

/// The ten letters that ls(1) prints for a mode with the bits of the file's kind (stat(2)).
pub fn mode_text(mode: u32) -> String {
    let kind = match mode & 0o170_000 {
        0o040_000 => 'd',
        0o120_000 => 'l',
        0o100_000 => '-',
        0o060_000 => 'b',
        0o020_000 => 'c',
        0o010_000 => 'p',
        0o140_000 => 's',
        _ => '?',
    };
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// A time in seconds since 1970, in the user's time zone.
pub fn time_text(seconds: i64) -> String {
    time_at(seconds, Timestamp::now())
}

fn time_at(seconds: i64, now: Timestamp) -> String {
    let age = now.as_second() - seconds;
    // A time in the future shows its year, for it is none that a recent file has.
    let format = if (0..RECENT_SECS).contains(&age) { "%b %e %H:%M" } else { "%b %e  %Y" };
    match Timestamp::from_second(seconds) {
        Ok(time) => time.to_zoned(TimeZone::system()).strftime(format).to_string(),
        Err(_) => seconds.to_string(),
    }
}

/// A size with a unit that fits: at most three digits before it.
pub fn scaled(bytes: u64) -> String {
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes;
    let mut rest = 0;
    let mut unit = ' ';
    for letter in "KMGTPE".chars() {
        if value < 1024 {
            break;
        }
        (rest, value, unit) = (value & 1023, value >> 10, letter);
    }
    // Tenths, rounded.
    let tenths = (rest * 10 + 512) >> 10;
    let (value, tenths) = if tenths == 10 { (value + 1, 0) } else { (value, tenths) };
    if value >= 100 {
        let value = value + u64::from(tenths >= 5);
        return format!("{value}{unit}");
    }
    format!("{value}.{tenths}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_ten_letters() {
        let cases = [
            (0o100_644, "-rw-r--r--"),
            (0o041_777, "drwxrwxrwt"),
            (0o104_755, "-rwsr-xr-x"),
            (0o102_640, "-rw-r-S---"),
            (0o120_777, "lrwxrwxrwx"),
        ];
        for (mode, text) in cases {
            assert_eq!(mode_text(mode), text);
        }
    }

    #[test]
    fn sizes_have_three_digits_and_a_unit() {
        let cases = [
            (0, "0B"),
            (1023, "1023B"),
            (1024, "1.0K"),
            (1536, "1.5K"),
            (102_400, "100K"),
            (1_048_576, "1.0M"),
            (5 << 30, "5.0G"),
        ];
        for (bytes, text) in cases {
            assert_eq!(scaled(bytes), text);
        }
    }

    #[test]
    fn an_old_file_shows_its_year() {
        let now = Timestamp::from_second(1_750_000_000).unwrap();
        assert!(time_at(1_000_000_000, now).ends_with("  2001"));
        assert!(time_at(1_749_999_000, now).contains(':'));
        assert!(time_at(1_800_000_000, now).ends_with("  2027"));
    }
}
