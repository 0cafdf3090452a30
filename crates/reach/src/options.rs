//! Values of options that all front ends read alike.

use hikyaku_units::parse_duration;
use std::ops::RangeInclusive;
use std::time::Duration;

/// UDP ports of which each end takes one: mosh's, which firewalls are most likely to know of.
pub const UDP_PORTS: RangeInclusive<u16> = 60001..=60999;
/// A path of many lost packets and round trips of a second is not given up within this.
const SILENCE_MIN: Duration = Duration::from_secs(5);

/// Reads `60001-60999` or `60001`.
///
/// # Errors
///
/// A number is no port, or the first one is the larger.
// fuzz: none, the user's own words
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, String> {
    let (from, to) = text.split_once('-').unwrap_or((text, text));
    let port = |text: &str| text.parse::<u16>().ok().filter(|&port| port != 0);
    match (port(from), port(to)) {
        (Some(from), Some(to)) if from <= to => Ok(from..=to),
        _ => Err("ports are two numbers, the smaller first: 60001-60999".to_owned()),
    }
}

/// Reads how long a far side may be silent, such as `30s`.
///
/// # Errors
///
/// It is no time, or less than 5 s.
// fuzz: none, the user's own words
pub fn silence(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(time) if time >= SILENCE_MIN => Ok(time),
        Ok(_) => Err("must be 5 s or more".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
