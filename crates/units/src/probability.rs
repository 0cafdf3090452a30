//! A probability, typed as `1%` or `0.01`.

use crate::number::{self, ParseUnitError};
use core::fmt;
use core::str::FromStr;

/// A probability from 0 to 1.
#[derive(Clone, Copy, PartialEq, PartialOrd, Debug, Default)]
pub struct Probability(f64);

impl Probability {
    /// The impossible event.
    pub const ZERO: Self = Self(0.0);

    /// `value` clamped to 0..=1. Not-a-number becomes 0.
    pub fn new(value: f64) -> Self {
        Self(if value.is_nan() { 0.0 } else { value.clamp(0.0, 1.0) })
    }

    /// The value, 0..=1.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl FromStr for Probability {
    type Err = ParseUnitError;
    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let error = || ParseUnitError::new(text, "a probability (1%, 0.01)");
        let (value, unit) = number::split(text).ok_or_else(error)?;
        let value = match unit {
            "%" => value.value() / 100.0,
            "" => value.value(),
            _ => return Err(error()),
        };
        if value <= 1.0 { Ok(Self(value)) } else { Err(error()) }
    }
}

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.2}%", self.0 * 100.0)
    }
}
