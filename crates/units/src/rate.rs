//! A data rate in bits per second.

use crate::number::{self, ParseUnitError};
use crate::size::DataSize;
use core::fmt;
use core::str::FromStr;
use core::time::Duration;

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(u64);

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Self = Self(0);

    /// `bits` bits per second.
    pub const fn from_bits_per_sec(bits: u64) -> Self {
        Self(bits)
    }

    /// `bytes` bytes per second. Negative numbers and not-a-number become zero.
    pub fn from_bytes_per_sec(bytes: f64) -> Self {
        Self((bytes * 8.0) as u64)
    }

    /// The rate of `size` in `time`; zero if `time` is zero.
    pub fn of(size: DataSize, time: Duration) -> Self {
        if time.is_zero() {
            return Self::ZERO;
        }
        Self::from_bytes_per_sec(size.bytes() as f64 / time.as_secs_f64())
    }

    /// Bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// Bytes per second.
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / 8.0
    }

    /// The transmission time of `size` at this rate; `Duration::MAX` at rate zero.
    pub fn time_for(self, size: DataSize) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        let nanos = u128::from(size.bytes()) * 8_000_000_000 / u128::from(self.0);
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// The amount transmitted in `time` at this rate, rounded down.
    pub fn in_time(self, time: Duration) -> DataSize {
        let bytes = u128::from(self.0) * time.as_nanos() / 8_000_000_000;
        DataSize::from_bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// The rate times `factor`. Negative numbers and not-a-number give zero.
    pub fn scaled(self, factor: f64) -> Self {
        Self((self.0 as f64 * factor) as u64)
    }
}

/// Parses a limit: a rate that is more than nothing. Nothing would pass below a limit of zero, and whoever writes it may
/// mean no limit.
pub fn parse_limit(text: &str) -> Result<Rate, ParseUnitError> {
    let wanted = "a limit, which is more than nothing, in bits a second (1gbit, 110M, 500kbit)";
    let rate: Rate = text.parse()?;
    if rate == Rate::ZERO { Err(ParseUnitError::new(text, wanted)) } else { Ok(rate) }
}

impl FromStr for Rate {
    type Err = ParseUnitError;
    /// Parses `1gbit`, `1Gbit/s`, `110M`, `100kbps`, or a bare number of bits per second.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError::new(text, "a rate in bits a second (1gbit, 110M, 500kbit)");
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let unit = unit.strip_suffix("/s").or_else(|| unit.strip_suffix("ps")).unwrap_or(&unit);
        let unit = unit.strip_suffix("bit").or_else(|| unit.strip_suffix('b')).unwrap_or(unit);
        let factor = match unit {
            "" => 1.0,
            "k" => 1e3,
            "m" => 1e6,
            "g" => 1e9,
            "t" => 1e12,
            _ => return Err(error()),
        };
        number::scaled(value, factor).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = self.0 as f64;
        let (value, unit) = match bits {
            b if b >= 1e9 => (b / 1e9, "Gbit/s"),
            b if b >= 1e6 => (b / 1e6, "Mbit/s"),
            b if b >= 1e3 => (b / 1e3, "kbit/s"),
            b => (b, "bit/s"),
        };
        let decimals = if value >= 100.0 {
            0
        } else if value >= 10.0 {
            1
        } else {
            2
        };
        write!(f, "{value:.decimals$} {unit}")
    }
}
