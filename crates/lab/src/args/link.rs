//! Link options: one for each setting of `hikyaku-link`, and one for each direction of it.

use anyhow::{Result, anyhow};
use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use hikyaku_link::Setting;

/// Link settings as typed: `--rate`, `--rate-up`, `--rate-down`, and the same for every other
/// setting.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkOptions {
    /// Keys and values; settings for both directions come before those for one.
    pub(crate) pairs: Vec<(String, String)>,
}

struct LinkOption {
    /// The option for both directions, for client to server ("up"), and for server to client
    /// ("down").
    keys: [&'static str; 3],
    value: &'static str,
    help: &'static str,
}

macro_rules! option {
    ($key:literal, $value:literal, $help:literal) => {
        LinkOption {
            keys: [$key, concat!($key, "-up"), concat!($key, "-down")],
            value: $value,
            help: $help,
        }
    };
}

const OPTIONS: [LinkOption; 16] = [
    option!(
        "rate",
        "RATE",
        "Bottleneck rate, Ethernet framing included: 1gbit, 300mbit [default: unlimited]"
    ),
    option!(
        "rtt",
        "TIME",
        "Round-trip propagation delay, half of it in each direction: 200ms [default: 0]"
    ),
    option!("delay", "TIME", "One-way propagation delay, of both directions"),
    option!(
        "queue",
        "SIZE",
        "Capacity of the bottleneck's queue: 5MB, 500p (packets), 0.25bdp, unlimited [default: 0.25bdp, at most 5MB]"
    ),
    option!("loss", "SHARE", "Random loss: 1%, or every:100 for exactly every hundredth segment"),
    option!("burst", "N", "Mean length of loss bursts, in segments [default: 1]"),
    option!(
        "jitter",
        "TIME",
        "Largest extra delay; it varies between zero and TIME without reordering"
    ),
    option!(
        "reorder",
        "SHARE:TIME",
        "Share of segments that are delayed and so reordered, and by how long: 1%:20ms"
    ),
    option!("dup", "SHARE", "Share of segments that are duplicated"),
    option!("corrupt", "SHARE", "Share of segments that arrive with one bit flipped"),
    option!(
        "mtu",
        "BYTES",
        "Largest packet of the link [default: 1500]. 'lab set' changes the link but not the devices, \
         which makes a path MTU black hole"
    ),
    option!(
        "outage",
        "[START+]TIME",
        "Drop all packets for TIME, from START on: 10s+5s begins at the tenth second, 5s at once"
    ),
    option!("ecn", "SIZE", "Mark ECN-capable packets (CE) while the queue is longer than SIZE"),
    option!(
        "aqm",
        "KIND",
        "Active queue management: codel drops, codel-ecn marks ECN-capable packets; both take \
         [:TARGET[:INTERVAL]] [default: 5ms, 100ms]"
    ),
    option!(
        "police",
        "RATE:BURST",
        "Police with a token bucket before the queue: drop packets beyond RATE and BURST: 500mbit:1MB"
    ),
    option!(
        "background",
        "KIND:SHARE",
        "Cross traffic in the queue, as a share of the rate: udp:30% is unresponsive UDP"
    ),
];

impl LinkOptions {
    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let parse = |(key, value): &(String, String)| {
            Setting::parse(key, value).map_err(|error| anyhow!("--{key}: {error}"))
        };
        self.pairs.iter().map(parse).collect()
    }

    /// All options: those for both directions first, so that those for one direction override them.
    fn all() -> impl Iterator<Item = (usize, &'static LinkOption)> {
        // A round-trip time has no direction.
        (0..3)
            .flat_map(|way| OPTIONS.iter().map(move |option| (way, option)))
            .filter(|(way, option)| *way == 0 || option.keys[0] != "rtt")
    }
}

impl Args for LinkOptions {
    fn augment_args(command: Command) -> Command {
        Self::all().fold(command, |command, (way, option)| {
            let help = match way {
                0 => option.help.to_owned(),
                1 => format!("--{} for the direction from client to server only", option.keys[0]),
                _ => format!("--{} for the direction from server to client only", option.keys[0]),
            };
            let key = option.keys[way];
            let check = move |text: &str| Setting::parse(key, text).map(|_| text.to_owned());
            let arg = Arg::new(key)
                .long(key)
                .value_name(option.value)
                .value_parser(ValueParser::new(check))
                .help(help)
                .help_heading(if way == 0 { "Link" } else { "Link, one way" })
                .hide_short_help(way != 0);
            command.arg(arg)
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for LinkOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let pair = |(way, option): (usize, &LinkOption)| {
            let key = option.keys[way];
            Some((key.to_owned(), matches.get_one::<String>(key)?.clone()))
        };
        Ok(Self { pairs: Self::all().filter_map(pair).collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
