//! The settings that there are.

use crate::args::{limit, ports, silence};
use hikyaku_crypto::parse_cipher;
use hikyaku_net::Policy;
use hikyaku_reach::is_harmless;
use hikyaku_units::{DataSize, parse_duration};
use std::fmt::Display;

/// One of them.
pub(super) struct Key {
    pub(super) name: &'static str,
    /// The flag that overrides it.
    pub(super) flag: &'static str,
    /// What it is if nobody says anything.
    pub(super) default: &'static str,
    pub(super) check: fn(&str) -> Result<(), String>,
}

pub(super) const KEYS: [Key; 10] = [
    Key { name: "rate", flag: "-l", default: "no limit", check: |text| done(limit(text)) },
    Key {
        name: "policy",
        flag: "--policy",
        default: "fair",
        check: |text| done(text.parse::<Policy>()),
    },
    Key { name: "window", flag: "--window", default: "512MB", check: |text| done(size(text)) },
    Key { name: "buffer", flag: "--buffer", default: "32MiB", check: |text| done(size(text)) },
    Key {
        name: "cipher",
        flag: "--cipher",
        default: "the fastest of both ends",
        check: |text| done(parse_cipher(text)),
    },
    Key {
        name: "udp-ports",
        flag: "--udp-ports",
        default: "60001-60999",
        check: |text| done(ports(text)),
    },
    Key { name: "timeout", flag: "--timeout", default: "3m", check: |text| done(silence(text)) },
    Key {
        name: "retry-for",
        flag: "--retry-for",
        default: "24h",
        check: |text| done(parse_duration(text)),
    },
    Key { name: "udp", flag: "--no-udp", default: "true", check: |text| done(yes(text)) },
    Key {
        name: "remote-path",
        flag: "--remote-path",
        default: "hikyaku in PATH, ~/.local/bin, ~/.cargo/bin",
        check: |text| done(is_harmless(text)),
    },
];

fn done<T, E: Display>(read: Result<T, E>) -> Result<(), String> {
    read.map(drop).map_err(|error| error.to_string())
}

/// At least a mebibyte: less holds no more than a few packets.
pub(crate) fn size(text: &str) -> Result<DataSize, String> {
    let size: DataSize = text.parse().map_err(|_| "must be a size, such as 256MB".to_owned())?;
    if size.bytes() >= 1 << 20 { Ok(size) } else { Err("must be 1 MiB or more".to_owned()) }
}

/// `true` or `false`.
pub(crate) fn yes(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "must be true or false".to_owned())
}
