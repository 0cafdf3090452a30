//! Values of options that all front ends read alike.

use crate::tcp::{PIPES_MAX, Pipes};
use hikyaku_crypto::parse_cipher;
use hikyaku_net::Policy;
use hikyaku_units::{DataSize, ParseUnitError, Rate, RateRule, parse_duration};
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

/// Reads how many TCP connections carry a connection: `auto` or a number.
///
/// # Errors
///
/// It is neither, or more than [`PIPES_MAX`].
// fuzz: none, the user's own words
pub fn pipes(text: &str) -> Result<Pipes, String> {
    match (text, text.parse()) {
        ("auto", _) => Ok(Pipes::Auto),
        (_, Ok(n)) if (1..=PIPES_MAX).contains(&n) => Ok(Pipes::Fixed(n)),
        _ => Err(format!("must be auto, or a number from 1 to {PIPES_MAX}")),
    }
}

/// The limit of scp and sftp: a bare number is kbit/s.
///
/// # Errors
///
/// It is no rate, or nothing.
// fuzz: none, the user's own words
pub fn limit(text: &str) -> Result<Rate, ParseUnitError> {
    Rate::parse_limit(text, RateRule::Scp)
}

/// Reads the name of a cipher.
///
/// # Errors
///
/// There is none of this name.
// fuzz: none, the user's own words
pub fn cipher(text: &str) -> Result<String, String> {
    parse_cipher(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Reads how the path is shared: `fair`, `scavenger` or `fixed:RATE`.
///
/// # Errors
///
/// It is none of them.
// fuzz: none, the user's own words
pub fn policy(text: &str) -> Result<String, String> {
    text.parse().map(Policy::text).map_err(|error| error.to_string())
}

/// Reads a size of memory: less than a mebibyte holds no more than a few packets.
///
/// # Errors
///
/// It is no size, or less than a mebibyte.
// fuzz: none, the user's own words
pub fn size(text: &str) -> Result<DataSize, String> {
    let size: DataSize = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if size.bytes() >= 1 << 20 { Ok(size) } else { Err("must be 1 MiB or more".to_owned()) }
}
