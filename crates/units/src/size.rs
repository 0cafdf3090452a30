//! An amount of data in bytes.

use crate::data_unit::DataUnit;
use crate::number::{self, ParseUnitError};
use core::fmt;
use core::ops::{Add, AddAssign};
use core::str::FromStr;

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct DataSize(u64);

impl DataSize {
    /// Zero bytes.
    pub const ZERO: Self = Self(0);

    /// `bytes` bytes.
    pub const fn from_bytes(bytes: u64) -> Self {
        Self(bytes)
    }

    /// The number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

impl Add for DataSize {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for DataSize {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl FromStr for DataSize {
    type Err = ParseUnitError;
    /// Parses a size, which is in bytes whatever the case of its letters. `5MB` is 5,000,000; `5MiB` and `5M` are
    /// 5,242,880, as in rsync, iperf3 and curl. As in rsync, `+1` or `-1` behind it is one byte more or less.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError::new(text, "a size in bytes (5MB, 64MiB, 1G)");
        let (size, more) = match text.strip_suffix("+1") {
            Some(size) => (size, 1),
            None => text.strip_suffix("-1").map_or((text, 0), |size| (size, -1)),
        };
        let (number, typed) = number::split(size).ok_or_else(error)?;
        let unit = DataUnit::parse(typed).filter(|_| !typed.contains("it")).ok_or_else(error)?;
        let bytes = number.times(unit.binary_if_unsaid());
        bytes.and_then(|bytes| bytes.checked_add_signed(more)).map(Self).ok_or_else(error)
    }
}

impl fmt::Display for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0 as f64;
        match bytes {
            b if b >= 1e12 => write!(f, "{:.2} TB", b / 1e12),
            b if b >= 1e9 => write!(f, "{:.2} GB", b / 1e9),
            b if b >= 1e6 => write!(f, "{:.1} MB", b / 1e6),
            b if b >= 1e3 => write!(f, "{:.1} kB", b / 1e3),
            b => write!(f, "{b:.0} B"),
        }
    }
}
