//! Sizes and limits as rsync takes them.

use hikyaku_units::Rate;

/// A limit of the rate (`--bwlimit`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Limit {
    /// `0`: there is none.
    Unlimited,
    To(Rate),
}

impl Limit {
    pub(crate) const fn rate(self) -> Option<Rate> {
        match self {
            Self::Unlimited => None,
            Self::To(rate) => Some(rate),
        }
    }
}

/// The least limit that rsync takes, in bytes a second.
const LIMIT_MIN: u64 = 512;
/// Digits behind a decimal point that count.
const DIGITS_MAX: usize = 18;

/// A size of `--max-size` and `--min-size`, in bytes.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let error = "a size is a number of bytes, or one with a unit (10k, 1.5m, 2g, 10kb)";
    bytes(text, 'b').ok_or_else(|| error.to_owned())
}

/// rsync's limit: a bare number is KiB a second, and 0 is no limit.
pub(super) fn limit(text: &str) -> Result<Limit, String> {
    let bits = |bytes: u64| bytes.checked_mul(8);
    match bytes(text, 'k') {
        Some(0) => Ok(Limit::Unlimited),
        Some(bytes) if bytes < LIMIT_MIN => {
            Err("a limit is 512 bytes a second or more, or 0 for none".to_owned())
        }
        Some(bytes) if bits(bytes).is_some() => Ok(Limit::To(Rate::from_bits_per_sec(bytes * 8))),
        _ => {
            Err("a limit is a number of KiB a second, or one with a unit (5m), in bytes".to_owned())
        }
    }
}

/// A number, which may have decimals; a unit of 1024, or of 1000 with a B behind it (`10kb`); and one more or less
/// (`10k-1`).
fn bytes(text: &str, usual: char) -> Option<u64> {
    let (text, more) = match text.strip_suffix("+1") {
        Some(text) => (text, 1),
        None => text.strip_suffix("-1").map_or((text, 0), |text| (text, -1)),
    };
    let lower = text.to_ascii_lowercase();
    let number = lower.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let mut unit = lower[number.len()..].chars();
    let letter = unit.next().unwrap_or(usual);
    let base: u128 = match unit.as_str() {
        "" | "ib" => 1024,
        "b" => 1000,
        _ => return None,
    };
    let power = "bkmgtp".find(letter)?;
    let factor = base.pow(u32::try_from(power).ok()?);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(part) || whole.len() + part.len() == 0 {
        return None;
    }
    let part = &part[..part.len().min(DIGITS_MAX)];
    let value = |digits: &str| if digits.is_empty() { Some(0) } else { digits.parse().ok() };
    let (whole, parts): (u128, u128) = (value(whole)?, value(part)?);
    let parts = parts * factor / 10_u128.pow(u32::try_from(part.len()).ok()?);
    let bytes = whole.checked_mul(factor)?.checked_add(parts)?.checked_add_signed(more)?;
    u64::try_from(bytes).ok().filter(|bytes| i64::try_from(*bytes).is_ok())
}

#[cfg(test)]
mod tests;
