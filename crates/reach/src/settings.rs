//! What users may set once for each host, and what counts where the command line does not say it.

use crate::bootstrap::Consent;
use crate::near::Carriers;
use crate::options::{UDP_PORTS as USUAL_PORTS, cipher, policy, ports, silence, size};
use crate::ssh::is_harmless;
use crate::tuning::Tuning;
use hikyaku_console::{Key, Keys, Mistake, Settings, SettingsError};
use hikyaku_units::{DataSize, Rate, parse_duration, parse_limit};
use std::ops::RangeInclusive;
use std::time::Duration;

/// All settings of the program.
pub fn keys() -> Keys {
    let keys = Keys::default().with(&RATE).with(&POLICY).with(&WINDOW).with(&BUFFER).with(&CIPHER);
    keys.with(&UDP_PORTS)
        .with(&TIMEOUT)
        .with(&RETRY_FOR)
        .with(&UDP)
        .with(&REMOTE_PATH)
        .with(&BOOTSTRAP)
}

/// What the user of this process has set.
///
/// # Errors
///
/// The file cannot be read, or has a mistake.
pub fn of_user() -> Result<Settings, SettingsError> {
    Settings::of_user(&keys())
}

/// What a command line says of the way to a host, where it says it.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// The most that is sent in a second.
    pub rate: Option<Rate>,
    /// The cipher of data over UDP.
    pub cipher: Option<String>,
    /// How the path is shared.
    pub policy: Option<String>,
    /// The most memory for data under way.
    pub window: Option<DataSize>,
    /// What the kernel is asked for to hold datagrams.
    pub buffer: Option<DataSize>,
    /// The longest silence that is sat out.
    pub timeout: Option<Duration>,
    /// UDP ports of which each end takes one.
    pub ports: Option<RangeInclusive<u16>>,
    /// Whether UDP may carry data.
    pub udp: Option<bool>,
    /// Where the program is at the host.
    pub remote_path: Option<String>,
}

/// The same, complete.
#[derive(Clone, Debug)]
pub struct Chosen {
    /// What is set of the transport.
    pub tuning: Tuning,
    /// UDP ports of which each end takes one.
    pub ports: RangeInclusive<u16>,
    /// What may carry data.
    pub carriers: Carriers,
    /// Where the program is at the host, if it is not to be looked for.
    pub remote_path: Option<String>,
}

impl Typed {
    /// The typed options that hold for data over UDP only. A copy without UDP is refused with them, because it would not do
    /// what its user has asked for.
    pub fn needs_udp(&self) -> Vec<&'static str> {
        let typed = [("--cipher", self.cipher.is_some()), ("--policy", self.policy.is_some())];
        typed.into_iter().filter(|(_, is_typed)| *is_typed).map(|(flag, _)| flag).collect()
    }

    /// Completes it by what is set for `host`.
    ///
    /// # Errors
    ///
    /// A value of the settings is none.
    pub fn or_set(self, settings: &Settings, host: &str) -> Result<Chosen, Mistake> {
        let rate = settings.resolve(self.rate, &RATE, host)?;
        let window = settings.resolve(self.window, &WINDOW, host)?;
        let buffer = settings.resolve(self.buffer, &BUFFER, host)?;
        let timeout = settings.resolve(self.timeout, &TIMEOUT, host)?;
        let ports = settings.resolve(self.ports, &UDP_PORTS, host)?;
        Ok(Chosen {
            tuning: Tuning {
                cipher: settings.resolve(self.cipher, &CIPHER, host)?,
                policy: settings.resolve(self.policy, &POLICY, host)?,
                rate: rate.map(Rate::bits_per_sec),
                window: window.map(DataSize::bytes),
                buffer: buffer.map(DataSize::bytes),
                timeout: timeout.map(|time| time.as_secs()),
            },
            ports: ports.unwrap_or(USUAL_PORTS),
            carriers: match settings.resolve(self.udp, &UDP, host)? {
                Some(false) => Carriers::NoUdp,
                Some(true) | None => Carriers::Auto,
            },
            remote_path: settings.resolve(self.remote_path, &REMOTE_PATH, host)?,
        })
    }
}

/// `rate`: the most that is copied in a second.
pub static RATE: Key<Rate> = Key {
    name: "rate",
    flag: "-l",
    default: "no limit",
    help: "The most that is copied in a second: a rate with its unit (300mbit, 10MB)",
    read: |text| parse_limit(text).map_err(|error| error.to_string()),
};
/// `policy`: how the path is shared.
pub static POLICY: Key<String> = Key {
    name: "policy",
    flag: "--policy",
    default: "fair",
    help: "How to share the path: fair, scavenger, or fixed:RATE",
    read: policy,
};
/// `window`: the most memory for data under way.
pub static WINDOW: Key<DataSize> = Key {
    name: "window",
    flag: "--window",
    default: "512MB",
    help: "The most memory for data under way at each end",
    read: size,
};
/// `buffer`: what the kernel is asked for to hold datagrams.
pub static BUFFER: Key<DataSize> = Key {
    name: "buffer",
    flag: "--buffer",
    default: "32MiB",
    help: "Receive buffer to ask the kernel for at each end",
    read: size,
};
/// `cipher`: the cipher of data over UDP.
pub static CIPHER: Key<String> = Key {
    name: "cipher",
    flag: "--cipher",
    default: "the fastest of both ends",
    help: "Cipher of the data: aegis128l, aes128gcm or chacha20poly1305",
    read: cipher,
};
/// `udp-ports`: UDP ports of which each end takes one.
pub static UDP_PORTS: Key<RangeInclusive<u16>> = Key {
    name: "udp-ports",
    flag: "--udp-ports",
    default: "60001-60999",
    help: "UDP ports of which each end uses one",
    read: ports,
};
/// `timeout`: the longest silence that is sat out.
pub static TIMEOUT: Key<Duration> = Key {
    name: "timeout",
    flag: "--timeout",
    default: "3m",
    help: "A connection that was silent for so long is given up",
    read: silence,
};
/// `retry-for`: for how long a lost copy tries to go on.
pub static RETRY_FOR: Key<Duration> = Key {
    name: "retry-for",
    flag: "--retry-for",
    default: "24h",
    help: "For how long a lost copy tries to go on by a new connection",
    read: |text| parse_duration(text).map_err(|error| error.to_string()),
};
/// `udp`: whether UDP may carry data.
pub static UDP: Key<bool> = Key {
    name: "udp",
    flag: "--no-udp",
    default: "true",
    help: "Whether the data go by UDP where they can; otherwise over TCP, or through ssh",
    read: |text| text.parse().map_err(|_| "must be true or false".to_owned()),
};
/// `remote-path`: where the program is at the host.
pub static REMOTE_PATH: Key<String> = Key {
    name: "remote-path",
    flag: "--remote-path",
    default: "hikyaku in PATH, ~/.local/bin, ~/.cargo/bin",
    help: "Where hikyaku is on the far side",
    read: |text| match is_harmless(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(error) => Err(error.to_string()),
    },
};
/// `bootstrap`: whether the program may be put there.
pub static BOOTSTRAP: Key<Consent> = Key {
    name: "bootstrap",
    flag: "--bootstrap",
    default: "ask",
    help: "Whether hikyaku is put on a far side that has none: ask (only at a terminal), always, never",
    read: |text| text.parse().map_err(str::to_owned),
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_those_of_the_flags() {
        let settings = Settings::parse(
            "[default]\nrate = \"100m\"\nwindow = 64000000\nudp = false\n\
             [host.\"*.example.org\"]\nudp-ports = \"9\"\npolicy = \"fixed:150m\"\n",
            &keys(),
        )
        .unwrap();
        let host = "a.example.org";
        assert_eq!(settings.get(&RATE, host).unwrap(), Some(Rate::from_bits_per_sec(100_000_000)));
        assert_eq!(settings.get(&WINDOW, host).unwrap(), Some(DataSize::from_bytes(64_000_000)));
        assert_eq!(settings.get(&UDP, host).unwrap(), Some(false));
        assert_eq!(settings.get(&UDP_PORTS, host).unwrap(), Some(9..=9));
        assert_eq!(settings.get(&POLICY, host).unwrap().as_deref(), Some("fixed:150000000bit"));
        assert_eq!(settings.get(&CIPHER, host).unwrap(), None);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let cases = [
            ("rat = \"1g\"", "udp-ports"),
            ("rate = \"fast\"", "rate = \"fast\""),
            ("rate = 8000", "8000 needs a unit"),
            ("rate = \"10mb\"", "10mbit or 10MB"),
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
            let error = Settings::parse(&text, &keys()).expect_err(&text);
            assert!(error.to_string().contains(wanted), "{text}: {error}");
        }
    }
}
