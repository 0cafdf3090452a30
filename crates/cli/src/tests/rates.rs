//! Every option that takes a rate or a size reads it by the parsers of `hikyaku_units`.
//!
//! The options are found in the definition of the command line by what they accept: one that accepts `10mbit` and refuses
//! a word without meaning takes a rate, whatever its name is. So one that is named after a rate and does not is found too.
//! Settings, and the lines of keys of a daemon, are held to the same rule.

use super::leaves;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use hikyaku_units::{DataSize, Rate, RateRule};

/// Options that follow the rule of another program. All others follow this program's own.
const GUESTS: [(&str, RateRule); 7] = [
    ("cp -l", RateRule::Scp),
    ("hscp -l", RateRule::Scp),
    ("sftp -l", RateRule::Scp),
    ("hsftp -l", RateRule::Scp),
    ("sync --bwlimit", RateRule::Rsync),
    ("get --limit-rate", RateRule::Curl),
    ("perf --bitrate", RateRule::Iperf3),
];

/// Options that every list of rates must have: the detection works.
const KNOWN_RATES: [&str; 9] = [
    "cp -l",
    "cp --policy",
    "cp --server-rate",
    "lab run --rate",
    "perf --sweep",
    "perf --wire-rate",
    "proxy --rate",
    "serve --rate",
    "sync --bwlimit",
];
const KNOWN_SIZES: [&str; 5] =
    ["cp --window", "guc --bs", "mount --cache", "perf --bytes", "sync --max-size"];

/// How a rate stands in the value of an option.
const FORMS: [&str; 3] = ["{}", "fixed:{}", "{}:1MB"];

/// An option that takes a rate or a size.
struct Valued {
    name: String,
    flag: String,
    /// As the help calls its value.
    value: String,
    command: Command,
    id: String,
}

impl Valued {
    fn of(path: &str, command: &Command, arg: &Arg) -> Option<Self> {
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(short)) => format!("-{short}"),
            (None, None) => return None,
        };
        let takes_value = arg.get_num_args().is_some_and(|number| number.takes_values());
        takes_value.then(|| Self {
            name: format!("{path} {flag}"),
            flag,
            value: arg.get_value_names().unwrap_or_default().join(" "),
            command: command.clone().no_binary_name(true),
            id: arg.get_id().to_string(),
        })
    }

    /// The error about the value alone, if the option refuses it.
    fn refusal(&self, value: &str) -> Option<String> {
        let words = match self.flag.starts_with("--") {
            true => vec![format!("{}={value}", self.flag)],
            false => vec![self.flag.clone(), value.to_owned()],
        };
        // Values are parsed before anything is found to be missing.
        let error = self.command.clone().try_get_matches_from(words).err()?;
        let is_refusal =
            matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
        is_refusal.then(|| error.to_string())
    }

    fn accepts(&self, value: &str) -> bool {
        self.refusal(value).is_none()
    }

    /// The form in which the option takes a rate, if it takes one.
    fn rate_form(&self) -> Option<&'static str> {
        let is_checked = !self.accepts("gibberish") && !self.accepts("gibberish:1MB");
        FORMS
            .into_iter()
            .filter(|_| is_checked)
            .find(|form| self.accepts(&form.replace("{}", "10mbit")))
    }

    fn takes_size(&self) -> bool {
        !self.accepts("gibberish") && self.accepts("256MiB") && !self.accepts("10mbit")
            || !self.accepts("gibberish") && self.accepts("256KiB") && !self.accepts("10mbit")
    }

    fn parsed<T: Copy + Send + Sync + 'static>(&self, value: &str) -> Option<T> {
        let words = [self.flag.as_str(), value];
        let matches = self.command.clone().ignore_errors(true).try_get_matches_from(words).ok()?;
        matches.try_get_one::<T>(&self.id).ok().flatten().copied()
    }
}

fn options() -> Vec<Valued> {
    let of = |(path, command): (String, Command)| {
        let arguments: Vec<Arg> = command.get_arguments().cloned().collect();
        arguments
            .into_iter()
            .filter_map(move |arg| Valued::of(&path, &command, &arg))
            .collect::<Vec<_>>()
    };
    leaves().into_iter().flat_map(of).collect()
}

#[test]
fn every_rate_is_read_by_one_parser() {
    let options = options();
    let rates: Vec<_> =
        options.iter().filter_map(|option| Some((option, option.rate_form()?))).collect();
    for known in KNOWN_RATES.into_iter().chain(GUESTS.map(|(name, _)| name)) {
        assert!(rates.iter().any(|(option, _)| option.name == known), "{known}");
    }
    let named = options.iter().filter(|option| {
        let is_guests = GUESTS.iter().any(|(guest, _)| *guest == option.name);
        is_guests || option.value.contains("RATE")
    });
    for option in named {
        let is_rate = rates.iter().any(|(rate, _)| rate.name == option.name);
        assert!(is_rate, "{} {} reads no rate", option.name, option.value);
    }
    for (option, form) in rates {
        let name = &option.name;
        let guest = GUESTS.iter().find(|(guest, _)| guest == name);
        let rule = guest.map_or(RateRule::Native, |(_, rule)| *rule);
        let refusal = |text: &str| option.refusal(&form.replace("{}", text));
        for text in ["10mbit", "10Mb", "10Mbit/s", "10MB", "10MB/s", "10MiB"] {
            assert_eq!(refusal(text), None, "{name} {text}");
        }
        for text in ["10mb", "10"] {
            let is_understood = match rule {
                RateRule::Native => false,
                RateRule::Rsync => true,
                // perf refuses 10 bit/s since it is too little.
                RateRule::Iperf3 => false,
                RateRule::Scp | RateRule::Curl => text == "10",
            };
            assert_eq!(refusal(text).is_none(), is_understood, "{name} {text}");
        }
        if rule != RateRule::Rsync {
            let text = refusal("10mb").unwrap_or_default();
            assert!(text.contains("10mbit or 10MB"), "{name}: {text}");
        }
        if rule == RateRule::Native {
            let text = refusal("100").unwrap_or_default();
            assert!(text.contains("100mbit or 100MB"), "{name}: {text}");
        }
        if let Some(rate) = option.parsed::<Rate>("10MB") {
            assert_eq!(rate, Rate::from_bits_per_sec(80_000_000), "{name}");
        }
    }
}

/// Checks a parser that follows this program's own rule. `refusal` is its error for a text.
fn check_native(name: &str, refusal: impl Fn(&str) -> Option<String>) {
    for text in ["10mbit", "10Mb", "10Mbit/s", "10MB", "10MB/s", "10MiB"] {
        assert_eq!(refusal(text), None, "{name} {text}");
    }
    let ambiguous = refusal("10mb").unwrap_or_default();
    assert!(ambiguous.contains("10mbit or 10MB"), "{name}: {ambiguous}");
    let bare = refusal("100").unwrap_or_default();
    assert!(bare.contains("100mbit or 100MB"), "{name}: {bare}");
}

#[test]
fn every_rate_of_the_settings_is_read_by_the_same_parser() {
    let keys = hikyaku_reach::settings::keys();
    let form = |name: &str| {
        let is_checked = keys.refusal(name, "gibberish").is_some();
        let takes = |form: &&str| keys.refusal(name, &form.replace("{}", "10mbit")).is_none();
        FORMS.into_iter().filter(|_| is_checked).find(takes)
    };
    let rates: Vec<_> = keys.names().filter_map(|name| Some((name, form(name)?))).collect();
    assert_eq!(rates, [("rate", "{}"), ("policy", "fixed:{}")]);
    for (name, form) in rates {
        check_native(name, |text| keys.refusal(name, &form.replace("{}", text)));
    }
    let sizes = keys.names().filter(|name| {
        let takes = |text| keys.refusal(name, text).is_none();
        !takes("gibberish") && takes("4MiB") && !takes("10mbit")
    });
    let sizes: Vec<_> = sizes.collect();
    assert_eq!(sizes, ["window", "buffer"]);
    for name in sizes {
        for text in ["4mb", "4MB", "4M", "4194304"] {
            assert_eq!(keys.refusal(name, text), None, "{name} {text}");
        }
    }
}

#[test]
fn every_size_is_in_bytes() {
    let options = options();
    let (sizes, others): (Vec<_>, Vec<_>) = options.into_iter().partition(Valued::takes_size);
    for option in others {
        let is_size = option.value.split([' ', '|']).any(|name| name == "SIZE");
        assert!(!is_size, "{} {} reads no size", option.name, option.value);
    }
    for known in KNOWN_SIZES {
        assert!(sizes.iter().any(|option| option.name == known), "{known}");
    }
    for option in sizes {
        for text in ["512kb", "512KB", "512KiB", "512k", "524288", "10mb"] {
            // Some have a least or a greatest size.
            let refusal = option.refusal(text).unwrap_or_default();
            assert!(!refusal.contains("is not a size"), "{} {text}: {refusal}", option.name);
        }
        for (text, bytes) in [("300MB", 300_000_000), ("300mb", 300_000_000), ("300M", 300 << 20)] {
            if let Some(size) = option.parsed::<DataSize>(text) {
                assert_eq!(size, DataSize::from_bytes(bytes), "{} {text}", option.name);
            }
        }
    }
}
