//! Parsers for option values, with the ranges that they accept.

use crate::plan::Stall;
use anyhow::Error;
use hikyaku_console::misuse;
use hikyaku_crypto::{UnknownCipher, parse_cipher};
use hikyaku_reach::{BadDestination, Destination};
use hikyaku_units::{DataSize, ParseUnitError, Rate, RateRule, parse_duration};
use std::net::IpAddr;
use std::str::FromStr;

/// A local address as typed: `ADDR`, `ADDR%DEV` or `%DEV`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Local {
    pub(crate) address: Option<IpAddr>,
    pub(crate) device: Option<String>,
}

/// A server as typed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Peer {
    /// `HOST`, `HOST:PORT` or `[ADDRESS]:PORT`: one that waits for clients.
    Listening {
        /// An IPv6 address is stored without brackets.
        host: String,
        port: Option<u16>,
    },
    /// `USER@HOST`, `ssh://[USER@]HOST[:PORT]`: one that is started through ssh.
    Ssh(Destination),
}

/// A cipher, parsed from its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Cipher(pub(crate) hikyaku_wire::CipherId);

impl FromStr for Local {
    type Err = String;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, device) = text.split_once('%').unwrap_or((text, ""));
        let device = (!device.is_empty()).then(|| device.to_owned());
        let address = match address {
            "" if device.is_some() => None,
            address => {
                Some(address.parse().map_err(|_| format!("'{address}' is not an IP address"))?)
            }
        };
        Ok(Self { address, device })
    }
}

impl FromStr for Peer {
    type Err = String;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, String> {
        let named = |read: Result<Destination, BadDestination>| {
            read.map(Self::Ssh).map_err(|error| error.to_string())
        };
        if let Some(rest) = text.strip_prefix("ssh://") {
            let authority = rest.strip_suffix('/').unwrap_or(rest);
            return named(Destination::parse_authority(authority.as_bytes()));
        }
        if text.contains('@') {
            return named(Destination::parse(text.as_bytes()));
        }
        let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
            Some(Some((address, ""))) => (address, None),
            Some(Some((address, rest))) => (
                address,
                Some(rest.strip_prefix(':').ok_or("expected ':PORT' or nothing after ']'")?),
            ),
            Some(None) => return Err("'[' without a matching ']'".to_owned()),
            // More than one colon means an IPv6 address without a port.
            None => match text.split_once(':') {
                Some((host, port)) if !port.contains(':') => (host, Some(port)),
                _ => (text, None),
            },
        };
        if host.is_empty() {
            return Err("no host is given".to_owned());
        }
        let number = |port: &str| match port.parse() {
            Ok(port @ 1..) => Ok(port),
            _ => Err(format!("'{port}' is not a port")),
        };
        Ok(Self::Listening { host: host.to_owned(), port: port.map(number).transpose()? })
    }
}

impl FromStr for Cipher {
    type Err = UnknownCipher;
    // fuzz: none, input comes from the local user
    fn from_str(text: &str) -> Result<Self, UnknownCipher> {
        parse_cipher(text).map(Self)
    }
}

pub(super) fn measured_seconds(text: &str) -> Result<f64, String> {
    seconds(text, 0.1, 86_400.0)
}

pub(super) fn interval_seconds(text: &str) -> Result<f64, String> {
    seconds(text, 0.1, 86_400.0)
}

pub(super) fn omitted_seconds(text: &str) -> Result<f64, String> {
    seconds(text, 0.0, 3600.0)
}

fn seconds(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let seconds = parse_duration(text).map_err(|error| error.to_string())?.as_secs_f64();
    if (least..=most).contains(&seconds) {
        Ok(seconds)
    } else {
        Err(format!("must be from {least} to {most} seconds"))
    }
}

pub(super) fn some_bytes(text: &str) -> Result<DataSize, String> {
    let size: DataSize = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    if size > DataSize::ZERO { Ok(size) } else { Err("must be at least 1 byte".to_owned()) }
}

/// The rate of a stream, by iperf3's rule; zero means no limit.
pub(super) fn bitrate(text: &str) -> Result<Rate, String> {
    in_range(Rate::parse(text, RateRule::Iperf3))
}

/// A rate; zero means no limit.
pub(super) fn rate(text: &str) -> Result<Rate, String> {
    in_range(text.parse())
}

fn in_range(rate: Result<Rate, ParseUnitError>) -> Result<Rate, String> {
    let rate = rate.map_err(|error| error.to_string())?;
    match rate.bits_per_sec() {
        0 | 8000..=1_000_000_000_000 => Ok(rate),
        _ => Err("must be from 8 kbit/s to 1 Tbit/s".to_owned()),
    }
}

pub(super) fn some_rate(text: &str) -> Result<Rate, String> {
    let rate = rate(text)?;
    if rate > Rate::ZERO { Ok(rate) } else { Err("must be from 8 kbit/s to 1 Tbit/s".to_owned()) }
}

/// Smallest memory limit, in bytes: what a server takes before its first client connects.
const MEMORY_BYTES_MIN: u64 = 128 << 20;

pub(super) fn memory(text: &str) -> Result<DataSize, String> {
    let size = some_bytes(text)?;
    if size.bytes() >= MEMORY_BYTES_MIN {
        Ok(size)
    } else {
        Err("must be at least 128 MiB".to_owned())
    }
}

/// A DSCP by number or by name (RFC 4594; `le` is from RFC 8622).
pub(super) fn dscp(text: &str) -> Result<u8, String> {
    let text = text.to_ascii_lowercase();
    let digit = |text: &str, most: u8| text.parse::<u8>().ok().filter(|&digit| digit <= most);
    let named = match text.as_str() {
        "ef" => Some(46),
        "va" | "voice-admit" => Some(44),
        "le" => Some(1),
        "df" | "be" => Some(0),
        text => {
            let selector = text.strip_prefix("cs").and_then(|class| digit(class, 7));
            let assured = text
                .strip_prefix("af")
                .and_then(|class| digit(class, 43))
                .filter(|class| (1..=4).contains(&(class / 10)) && (1..=3).contains(&(class % 10)));
            let assured = assured.map(|class| 8 * (class / 10) + 2 * (class % 10));
            selector.map(|class| 8 * class).or(assured).or_else(|| digit(text, 63))
        }
    };
    named.ok_or_else(|| "must be a number from 0 to 63, or ef, le, cs0-cs7, af11-af43".to_owned())
}

pub(super) fn length(text: &str) -> Result<u32, String> {
    let size: DataSize = text.parse().map_err(|error: ParseUnitError| error.to_string())?;
    match u32::try_from(size.bytes()) {
        Ok(bytes @ 1..=0x10_0000) => Ok(bytes),
        _ => Err("must be from 1 byte to 1 MiB".to_owned()),
    }
}

pub(super) fn stall(text: &str) -> Result<Stall, String> {
    let (length, at) = text.split_once('@').ok_or("must be SECS@SECS, such as 2@5")?;
    Ok(Stall { seconds: seconds(length, 0.0, 86_400.0)?, at: seconds(at, 0.0, 86_400.0)? })
}

/// The port of a server, which is given with the host, by `-p`, or by both.
pub(super) fn one_port(of_host: Option<u16>, of_option: Option<u16>) -> Result<Option<u16>, Error> {
    match (of_host, of_option) {
        (_, Some(0)) => Err(misuse("-p 0: no server has this port", "a port from 1 to 65535")),
        (Some(of_host), Some(of_option)) if of_host != of_option => {
            let text = format!("two ports are given: {of_host} with the host, {of_option} with -p");
            Err(misuse(text, "one of them"))
        }
        (of_host, of_option) => Ok(of_host.or(of_option)),
    }
}

/// The error for an option that needs a server which waits for clients.
pub(super) fn needs_listening(option: &str, host: &str) -> Error {
    let text = format!(
        "{option} needs a server that waits for clients; ssh starts one for one connection"
    );
    misuse(
        text,
        format_args!("hikyaku perf -s on {host}, then hikyaku perf {option} ... -c {host}"),
    )
}

/// The error for an option that has no effect at this end, because the other end does that part.
pub(super) fn misplaced(option: &str, what: &str) -> Error {
    let text = format!("{option} has no effect at the client: in this test the server {what}");
    misuse(text, format_args!("hikyaku perf -s {option} ... at the server"))
}
