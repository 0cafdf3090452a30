//! A data rate in bits per second.

use crate::data_unit::{Counts, DataUnit};
use crate::number::{self, ParseUnitError};
use crate::size::DataSize;
use alloc::format;
use alloc::string::ToString;
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

/// How a rate is read. All rules read `100mbit`, `100Mb` and `100Mbit/s` as bits, and `10MB` and `10MiB` as bytes; `10mb`
/// is refused except by rsync's rule. They differ in bare numbers and in prefixes alone (`10m`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateRule {
    /// Of this program: `10m` is in bits. A bare number is refused, except 0.
    Native,
    /// Of scp and sftp: `10` is 10 kbit/s, `10m` is in bits.
    Scp,
    /// Of iperf3: `10` is 10 bit/s, `10m` is in bits.
    Iperf3,
    /// Of rsync: `10` is 10 KiB/s, `10m` is in bytes and a power of 1024, and `10mb` and `10Mb` are in bytes.
    Rsync,
    /// Of curl and wget: `10` is 10 bytes a second, `10m` is in bytes and a power of 1024.
    Curl,
}

impl Rate {
    /// Parses a rate by the rule of an option.
    ///
    /// # Errors
    ///
    /// It is no rate, has no unit where one is needed, or may be of bits or bytes.
    // fuzz: none, the user's own words
    pub fn parse(text: &str, rule: RateRule) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError::new(text, WANTED);
        let (number, typed) = number::split(text).ok_or_else(error)?;
        let bare = typed.strip_suffix("/s").or_else(|| typed.strip_suffix("ps")).unwrap_or(typed);
        let unit = DataUnit::parse(bare).ok_or_else(error)?;
        let counts = match (rule, unit.counts) {
            // rsync reads both cases alike, and so does curl the single letter.
            (RateRule::Rsync, _) if bare.ends_with('b') => Counts::Bytes,
            (RateRule::Curl, _) if bare == "b" => Counts::Bytes,
            (_, counts) => counts,
        };
        let bits_per_unit = match (counts, rule) {
            (Counts::Bits, _) => unit.decimal(),
            (Counts::Bytes, _) => unit.decimal().saturating_mul(8),
            (Counts::Unclear, _) => {
                let amount = text.trim().trim_end_matches(typed).trim_end();
                let prefix = bare.trim_end_matches('b');
                let amount = format!("{amount}{prefix}");
                return Err(ParseUnitError::Unclear { text: text.trim().to_string(), amount });
            }
            (Counts::Unsaid, _) if typed.len() > bare.len() && !unit.has_prefix() => {
                return Err(error());
            }
            (Counts::Unsaid, RateRule::Native) if !unit.has_prefix() && !number.is_zero() => {
                return Err(ParseUnitError::NoUnit { text: text.trim().to_string() });
            }
            (Counts::Unsaid, RateRule::Scp) if !unit.has_prefix() => 1000,
            (Counts::Unsaid, RateRule::Rsync) if !unit.has_prefix() => 8 * 1024,
            (Counts::Unsaid, RateRule::Rsync | RateRule::Curl) => {
                unit.binary_if_unsaid().saturating_mul(8)
            }
            (Counts::Unsaid, RateRule::Native | RateRule::Scp | RateRule::Iperf3) => unit.decimal(),
        };
        number.times(bits_per_unit).map(Self).ok_or_else(error)
    }

    /// Parses a limit by the rule of an option: a rate that is more than nothing, since no data would pass below a limit of
    /// zero.
    ///
    /// # Errors
    ///
    /// As for [`parse`](Self::parse); or it is zero.
    // fuzz: none, the user's own words
    pub fn parse_limit(text: &str, rule: RateRule) -> Result<Self, ParseUnitError> {
        match Self::parse(text, rule)? {
            Self::ZERO => Err(ParseUnitError::new(text, "a limit, which is more than nothing")),
            rate => Ok(rate),
        }
    }
}

/// Parses a limit by this program's own rule.
///
/// # Errors
///
/// As for [`Rate::parse_limit`].
// fuzz: none, the user's own words
pub fn parse_limit(text: &str) -> Result<Rate, ParseUnitError> {
    Rate::parse_limit(text, RateRule::Native)
}

const WANTED: &str = "a rate (100mbit, 1gbit, 10MB)";

impl FromStr for Rate {
    type Err = ParseUnitError;
    /// Parses a rate by this program's own rule.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        Self::parse(text, RateRule::Native)
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
