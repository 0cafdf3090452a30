//! Text forms of durations: `200ms`, `10s`, `1.5s`, `250us`.

use crate::number::{self, ParseUnitError};
use core::fmt;
use core::time::Duration;

/// Parses a duration: a decimal number with the unit `ns`, `us`, `ms`, `s`, `m` or `h`. A bare
/// number is in seconds.
pub fn parse_duration(text: &str) -> Result<Duration, ParseUnitError> {
    let wanted = "a duration (200ms, 10s, 250us, 5m, 1h; a bare number is seconds)";
    let error = || ParseUnitError::new(text, wanted);
    let (value, unit) = number::split(text).ok_or_else(error)?;
    let nanos = match unit.to_lowercase().as_str() {
        "ns" => 1,
        "us" | "µs" => 1_000,
        "ms" => 1_000_000,
        "" | "s" | "sec" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return Err(error()),
    };
    value.times(nanos).map(Duration::from_nanos).ok_or_else(error)
}

/// Parses a time-out: a duration as [`parse_duration`] reads it, but not nothing.
pub fn parse_timeout(text: &str) -> Result<Duration, ParseUnitError> {
    let wanted = "a time that is more than nothing (200ms, 10s, 5m; a bare number is seconds)";
    let time = parse_duration(text)?;
    if time.is_zero() { Err(ParseUnitError::new(text, wanted)) } else { Ok(time) }
}

/// Displays a duration in the largest unit that it reaches: `1.50s`, `200.0ms`, `15us`.
#[derive(Clone, Copy, Debug)]
pub struct DurationText(pub Duration);

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secs = self.0.as_secs_f64();
        if secs >= 1.0 {
            write!(f, "{secs:.2}s")
        } else if secs >= 0.001 {
            write!(f, "{:.1}ms", secs * 1e3)
        } else {
            write!(f, "{:.0}us", secs * 1e6)
        }
    }
}
