//! Shares and times of a link as users type them. They need a unit, because tools disagree
//! about bare numbers: a loss of `1` is 1 % in one tool and all packets in another, a delay of
//! `200` is seconds, milliseconds or microseconds. Zero is unambiguous and needs no unit.
//!
//! Rates and sizes are not parsed here: `hikyaku_units` refuses a rate without a unit for the same reason, and a bare size is
//! in bytes in all tools.

use alloc::format;
use alloc::string::{String, ToString};
use core::str::FromStr;
use core::time::Duration;
use hikyaku_units::{Probability, parse_duration};

/// Parses a share: `1%`.
pub fn parse_share(value: &str) -> Result<Probability, String> {
    with_unit(value, "1% is one in a hundred, 100% is all", Probability::from_str)
}

/// Parses a time: `200ms`.
pub fn parse_time(value: &str) -> Result<Duration, String> {
    with_unit(value, "such as 200ms or 10s", parse_duration)
}

fn with_unit<T, E: ToString>(
    value: &str,
    units: &str,
    parse: impl Fn(&str) -> Result<T, E>,
) -> Result<T, String> {
    let bare: Option<f64> = value.trim().parse().ok();
    if bare.is_some_and(|number| number != 0.0) {
        return Err(format!("'{value}' needs a unit: {units}"));
    }
    parse(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_refused() {
        for bare in ["1", "0.01", "200", "1e3"] {
            let refused = [parse_share(bare).err(), parse_time(bare).err()];
            for text in refused {
                let text = text.expect(bare);
                assert!(text.starts_with(&format!("'{bare}' needs a unit: ")), "{text}");
            }
        }
    }

    #[test]
    fn zero_and_numbers_with_a_unit_are_read() {
        assert_eq!(parse_share("1%"), Ok(Probability::new(0.01)));
        assert_eq!(parse_time("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_share("0"), Ok(Probability::ZERO));
        assert_eq!(parse_time("0.0"), Ok(Duration::ZERO));
        assert!(parse_share("120%").is_err() && parse_time("2 moons").is_err());
    }
}
