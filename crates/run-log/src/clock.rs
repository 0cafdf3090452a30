//! The time of day as text.

use std::time::{SystemTime, UNIX_EPOCH};

/// The calendar date and the time of day in UTC.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Utc {
    year: i64,
    month: u32,
    day: u32,
    hour: u64,
    minute: u64,
    second: u64,
    milli: u32,
}

impl Utc {
    pub(crate) fn of(time: SystemTime) -> Self {
        let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
        let (year, month, day) = date(days as i64);
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        Self { year, month, day, hour, minute, second, milli: since.subsec_millis() }
    }

    /// As in RFC 3339: `2026-11-26T05:43:42.123Z`.
    pub(crate) fn rfc3339(self) -> String {
        let Self { year, month, day, hour, minute, second, milli } = self;
        format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }

    /// For names of files: `20261126-054342`.
    pub(crate) fn compact(self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}")
    }
}

/// The date of a day, counted from 1970-01-01, in the proleptic Gregorian calendar.
///
/// A year begins in March here, so that the leap day is its last day.
fn date(days: i64) -> (i64, u32, u32) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, wanted) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199, "2024-02-29T23:59:59.000Z"),
            (1_735_689_599, "2024-12-31T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(Utc::of(time).rfc3339(), wanted, "{seconds}");
        }
        let time = UNIX_EPOCH + Duration::from_millis(1_709_251_199_250);
        assert_eq!(Utc::of(time).compact(), "20240229-235959");
        assert!(Utc::of(time).rfc3339().ends_with(":59.250Z"));
    }
}
