//! An amount of data in bytes.

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
    /// Parses a size in bytes. `5MB` is decimal; `5MiB` and bare `5M` are binary, as in iperf3 and
    /// rsync.
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError::new(text, "a size in bytes (5MB, 64MiB, 1G)");
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let factor = match unit.as_str() {
            "" | "b" => 1.0,
            "kb" => 1e3,
            "mb" => 1e6,
            "gb" => 1e9,
            "tb" => 1e12,
            "k" | "kib" => 1024.0,
            "m" | "mib" => 1_048_576.0,
            "g" | "gib" => 1_073_741_824.0,
            "t" | "tib" => 1_099_511_627_776.0,
            _ => return Err(error()),
        };
        number::scaled(value, factor).map(Self).ok_or_else(error)
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
