//! The settings of a copy, which a settings file may have for each host.

use crate::args::{cipher, limit, policy};
use hikyaku_console::{Key, Keys};
use hikyaku_reach::bootstrap::Consent;
use hikyaku_reach::is_harmless;
use hikyaku_reach::options::{ports, silence};
use hikyaku_units::{DataSize, Rate, parse_duration};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Adds the settings of a copy to those of the program.
pub fn add_keys(keys: Keys) -> Keys {
    let keys = keys.with(&RATE).with(&POLICY).with(&WINDOW).with(&BUFFER).with(&CIPHER);
    keys.with(&UDP_PORTS)
        .with(&TIMEOUT)
        .with(&RETRY_FOR)
        .with(&UDP)
        .with(&REMOTE_PATH)
        .with(&BOOTSTRAP)
}

pub(crate) static RATE: Key<Rate> = Key {
    name: "rate",
    flag: "-l",
    default: "no limit",
    help: "The most that is copied in a second: Kbit/s, or a rate with its unit (300m)",
    read: limit,
};
pub(crate) static POLICY: Key<String> = Key {
    name: "policy",
    flag: "--policy",
    default: "fair",
    help: "How to share the path: fair, scavenger, or fixed:RATE",
    read: |text| policy(text).map_err(|error| error.to_string()),
};
pub(crate) static WINDOW: Key<DataSize> = Key {
    name: "window",
    flag: "--window",
    default: "512MB",
    help: "The most memory for data under way at each end",
    read: size,
};
pub(crate) static BUFFER: Key<DataSize> = Key {
    name: "buffer",
    flag: "--buffer",
    default: "32MiB",
    help: "Receive buffer to ask the kernel for at each end",
    read: size,
};
pub(crate) static CIPHER: Key<String> = Key {
    name: "cipher",
    flag: "--cipher",
    default: "the fastest of both ends",
    help: "Cipher of the data: aegis128l, aes128gcm or chacha20poly1305",
    read: |text| cipher(text).map_err(|error| error.to_string()),
};
pub(crate) static UDP_PORTS: Key<RangeInclusive<u16>> = Key {
    name: "udp-ports",
    flag: "--udp-ports",
    default: "60001-60999",
    help: "UDP ports of which each end uses one",
    read: ports,
};
pub(crate) static TIMEOUT: Key<Duration> = Key {
    name: "timeout",
    flag: "--timeout",
    default: "3m",
    help: "A connection that was silent for so long is given up",
    read: silence,
};
pub(crate) static RETRY_FOR: Key<Duration> = Key {
    name: "retry-for",
    flag: "--retry-for",
    default: "24h",
    help: "For how long a lost copy tries to go on by a new connection",
    read: |text| parse_duration(text).map_err(|error| error.to_string()),
};
pub(crate) static UDP: Key<bool> = Key {
    name: "udp",
    flag: "--no-udp",
    default: "true",
    help: "Whether the data go by UDP where they can; otherwise over TCP, or through ssh",
    read: |text| text.parse().map_err(|_| "must be true or false".to_owned()),
};
pub(crate) static REMOTE_PATH: Key<String> = Key {
    name: "remote-path",
    flag: "--remote-path",
    default: "hikyaku in PATH, ~/.local/bin, ~/.cargo/bin",
    help: "Where hikyaku is on the far side",
    read: |text| match is_harmless(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    },
};
pub(crate) static BOOTSTRAP: Key<Consent> = Key {
    name: "bootstrap",
    flag: "--bootstrap",
    default: "ask",
    help: "Whether hikyaku is put on a far side that has none: ask (only at a terminal), always, never",
    read: |text| text.parse().map_err(str::to_owned),
};

/// At least a mebibyte: less holds no more than a few packets.
pub(crate) fn size(text: &str) -> Result<DataSize, String> {
    let size: DataSize = text.parse().map_err(|_| "must be a size, such as 256MB".to_owned())?;
    if size.bytes() >= 1 << 20 { Ok(size) } else { Err("must be 1 MiB or more".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_console::Settings;

    #[test]
    fn values_are_those_of_the_flags() {
        let settings = Settings::parse(
            "[default]\nrate = \"100m\"\nwindow = 64000000\nudp = false\n\
             [host.\"*.example.org\"]\nudp-ports = \"9\"\npolicy = \"fixed:150m\"\n",
            &add_keys(Keys::default()),
        )
        .unwrap();
        let host = "a.example.org";
        assert_eq!(settings.get(&RATE, host).unwrap(), Some(Rate::from_bits_per_sec(100_000_000)));
        assert_eq!(settings.get(&WINDOW, host).unwrap(), Some(DataSize::from_bytes(64_000_000)));
        assert_eq!(settings.get(&UDP, host).unwrap(), Some(false));
        assert_eq!(settings.get(&UDP_PORTS, host).unwrap(), Some(9..=9));
        assert_eq!(settings.get(&POLICY, host).unwrap().as_deref(), Some("fixed:150m"));
        assert_eq!(settings.get(&CIPHER, host).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("rat = \"1g\"", "udp-ports"),
            ("rate = \"fast\"", "rate = \"fast\""),
            ("udp-ports = \"9-1\"", "smaller first"),
            ("udp = 1", "true or false"),
            ("cipher = \"rot13\"", "rot13"),
            ("policy = \"greedy\"", "fixed:RATE"),
            ("window = 1", "1 MiB or more"),
            ("timeout = \"1s\"", "5 s or more"),
            ("retry-for = \"soon\"", "retry-for"),
            ("remote-path = \"a b\"", "letters"),
            ("bootstrap = \"maybe\"", "ask, always or never"),
        ];
        for (text, wanted) in cases {
            let text = format!("[default]\n{text}\n");
            let error = Settings::parse(&text, &add_keys(Keys::default())).expect_err(&text);
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }
}
