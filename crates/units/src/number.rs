//! Parsing of a decimal number followed by a unit, the common form of all quantities here.

use alloc::string::{String, ToString};
use core::fmt;

/// The text is not a value of the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseUnitError {
    text: String,
    wanted: &'static str,
}

impl ParseUnitError {
    pub(crate) fn new(text: &str, wanted: &'static str) -> Self {
        Self { text: text.to_string(), wanted }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not {}", self.text, self.wanted)
    }
}

impl core::error::Error for ParseUnitError {}

/// Splits `text` into a finite non-negative number and the unit after it in lower case.
pub(crate) fn split(text: &str) -> Option<(f64, String)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let value: f64 = number.parse().ok()?;
    value.is_finite().then(|| (value, unit.trim().to_lowercase()))
}

/// `value` x `factor` rounded to a whole number; `None` if it exceeds a u64.
pub(crate) fn scaled(value: f64, factor: f64) -> Option<u64> {
    let product = value * factor;
    (product < u64::MAX as f64).then_some((product + 0.5) as u64)
}
