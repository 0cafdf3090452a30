//! Parsing of a decimal number followed by a unit, the common form of all quantities here.

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

/// The text is not a value of the expected quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseUnitError {
    /// It is none at all.
    Other {
        /// As it was typed.
        text: String,
        /// A description of the quantity.
        wanted: &'static str,
    },
    /// It is a rate, but has no unit, and programs disagree about bare numbers.
    NoUnit {
        /// As it was typed.
        text: String,
    },
    /// It is a rate, but its unit may be of bits or of bytes.
    Unclear {
        /// As it was typed.
        text: String,
        /// The number and its prefix, without the unit.
        amount: String,
    },
}

impl ParseUnitError {
    pub(crate) fn new(text: &str, wanted: &'static str) -> Self {
        Self::Other { text: text.to_string(), wanted }
    }

    /// The text to type instead, if that is known.
    pub fn remedy(&self) -> Option<String> {
        match self {
            Self::Other { .. } => None,
            Self::NoUnit { text } => Some(format!("{text}mbit or {text}MB")),
            Self::Unclear { amount, .. } => {
                let bytes = amount.to_uppercase().replace('I', "i");
                Some(format!("{amount}bit or {bytes}B"))
            }
        }
    }
}

impl fmt::Display for ParseUnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { text, wanted } => write!(f, "'{text}' is not {wanted}")?,
            Self::NoUnit { text } => write!(f, "{text} needs a unit")?,
            Self::Unclear { text, .. } => write!(f, "{text} may be bits or bytes")?,
        }
        self.remedy().map_or(Ok(()), |remedy| write!(f, ": {remedy}"))
    }
}

impl core::error::Error for ParseUnitError {}

/// A decimal number that is not negative: `digits` divided by a power of ten.
#[derive(Clone, Copy)]
pub(crate) struct Decimal {
    digits: u128,
    divisor: u128,
}

/// Digits behind a decimal point that count.
const DIGITS_MAX: usize = 18;

impl Decimal {
    fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if whole.len() + part.len() == 0 || !are_digits(whole) || !are_digits(part) {
            return None;
        }
        let part = &part[..part.len().min(DIGITS_MAX)];
        let divisor = 10_u128.pow(u32::try_from(part.len()).ok()?);
        let value = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
        let whole: u64 = value(whole)?;
        let part: u64 = value(part)?;
        Some(Self { digits: u128::from(whole) * divisor + u128::from(part), divisor })
    }

    /// The number times `factor` without what is behind the decimal point; `None` if it exceeds a u64.
    pub(crate) fn times(self, factor: u64) -> Option<u64> {
        let product = self.digits.checked_mul(u128::from(factor))?;
        u64::try_from(product / self.divisor).ok()
    }

    pub(crate) const fn is_zero(self) -> bool {
        self.digits == 0
    }

    pub(crate) fn value(self) -> f64 {
        self.digits as f64 / self.divisor as f64
    }
}

/// Splits `text` into its number and the unit after it.
pub(crate) fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((Decimal::parse(number)?, unit.trim()))
}
