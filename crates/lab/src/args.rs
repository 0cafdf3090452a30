//! What users type after `hikyaku lab`.

use crate::host::HostProfile;
use crate::lab::{Access, LabSpec, Side};
use crate::relay::Corruption;
use anyhow::{Context, Result, anyhow, bail};
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use hikyaku_link::{PathSpec, Schedule, Setting};
use hikyaku_units::{Instant, Rate, parse_duration};
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// An emulated long fat link between network namespaces, for trying any program on it.
#[derive(Debug, Parser)]
pub struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a command at the client's end of a link that exists for as long as it runs
    Run(RunArgs),
    /// Make a lab that stays until 'lab down'
    Up(UpArgs),
    /// Run a command at one end of a lab
    Exec(ExecArgs),
    /// Change the link of a lab while it is in use
    Set(SetArgs),
    /// Show what the link of a lab has done; without a name, list the labs
    Status(StatusArgs),
    /// Remove a lab and end what runs in it
    Down(DownArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) lab: LabOptions,
    /// Run this at the first server's end before; by the shell
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server_cmd: Option<String>,
    /// Write what the link has done, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The command, which finds the servers at $HIKYAKU_LAB_SERVER (10.77.1.1, 'server') and
    /// $HIKYAKU_LAB_SERVER_1 to _N (10.77.N.1, 'serverN')
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// What to call the lab: a-z, 0-9 and '-'
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) lab: LabOptions,
    /// Stay in the foreground
    #[arg(long)]
    pub(crate) foreground: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The lab
    pub(crate) name: String,
    /// 'client', 'server' or 'serverN'
    pub(crate) side: Side,
    /// The command
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct SetArgs {
    /// The lab
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) link: LinkOptions,
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The lab
    pub(crate) name: Option<String>,
    /// For programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// The lab
    pub(crate) name: String,
}

/// What a lab is made of.
#[derive(Debug, Args)]
pub(crate) struct LabOptions {
    #[command(flatten)]
    link: LinkOptions,
    /// Change the link over time, by lines such as 'at 10s rate 300mbit'
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    schedule: Option<PathBuf>,
    /// Hit corrupted UDP segments before their checksum is made, so that only a check of the
    /// contents shows it
    #[arg(long, help_heading = "Link")]
    corrupt_past_checksum: bool,
    /// Decides which segments are hit
    #[arg(long, default_value_t = 1, help_heading = "Link")]
    seed: u64,
    /// How many servers there are
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Hosts")]
    servers: u32,
    /// Each server's own rate, behind the common link; one for all, or one for each by commas
    #[arg(long, value_name = "RATE", value_delimiter = ',', help_heading = "Hosts")]
    server_rate: Vec<Rate>,
    /// What the round trip to each server takes beside the common link; one for all, or one for each
    /// by commas
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_duration)]
    #[arg(help_heading = "Hosts")]
    server_rtt: Vec<Duration>,
    /// Put the client behind an address translator that forgets: its UDP flows get other ports this
    /// often, and what comes for the old ones is dropped
    #[arg(long, value_name = "TIME", value_parser = parse_duration, help_heading = "Hosts")]
    rebind_every: Option<Duration>,
    /// The TCP settings of the ends
    #[arg(long, value_enum, default_value_t = Host::Debian, help_heading = "Hosts")]
    host: Host,
    /// The TCP congestion control of the ends [default: cubic]
    #[arg(long, value_name = "NAME", help_heading = "Hosts")]
    cc: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Host {
    /// As installed: CUBIC, buffers of 6 MB and 4 MB
    Debian,
    /// For long fat networks: buffers of 1 GB
    Tuned,
}

impl LabOptions {
    pub(crate) fn spec(&self, name: Option<String>) -> Result<LabSpec> {
        let mut path = PathSpec::default();
        for setting in self.link.settings()? {
            setting.apply(&mut path, Instant::ZERO);
        }
        let schedule = match &self.schedule {
            Some(file) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read {}", file.display()))?
                .parse()?,
            None => Schedule::default(),
        };
        let rates = self.for_servers("--server-rate", &self.server_rate)?;
        let rtts = self.for_servers("--server-rtt", &self.server_rtt)?;
        let servers = rates
            .into_iter()
            .zip(rtts)
            .map(|(rate, rtt)| Access { rate, delay: rtt.unwrap_or_default() / 2 });
        let servers = servers.collect();
        let congestion_control = self.cc.clone();
        let host = match self.host {
            Host::Debian => HostProfile::Debian { congestion_control },
            Host::Tuned => HostProfile::Tuned { congestion_control },
        };
        let corruption = match self.corrupt_past_checksum {
            true => Corruption::PastChecksum,
            false => Corruption::Wire,
        };
        let (rebind_every, seed) = (self.rebind_every, self.seed);
        Ok(LabSpec { name, path, servers, schedule, host, corruption, rebind_every, seed })
    }

    /// What an option says of each server.
    fn for_servers<T: Copy>(&self, option: &str, values: &[T]) -> Result<Vec<Option<T>>> {
        let count = self.servers as usize;
        match *values {
            [] => Ok(vec![None; count]),
            [value] => Ok(vec![Some(value); count]),
            ref each if each.len() == count => Ok(each.iter().copied().map(Some).collect()),
            ref each => bail!("{option} names {} values for {count} servers", each.len()),
        }
    }
}

/// The settings of the link: `--rate`, `--rate-up`, `--rate-down` and so on for each.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkOptions {
    /// Keys and values, the general before the directional.
    pub(crate) pairs: Vec<(String, String)>,
}

struct LinkOption {
    /// For both directions, for the way up, for the way down.
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

const OPTIONS: [LinkOption; 15] = [
    option!("rate", "RATE", "What the link passes, with Ethernet framing: 1gbit, 300mbit"),
    option!("rtt", "TIME", "The delay there and back: 200ms is 100 ms each way"),
    option!("delay", "TIME", "The delay of each way"),
    option!(
        "queue",
        "SIZE",
        "What the bottleneck holds: 5MB, 0.25bdp, unlimited [default: 0.25bdp, but at most 5MB]"
    ),
    option!("loss", "SHARE", "How much is lost: 1%, or every:100 for each hundredth segment"),
    option!("burst", "N", "Losses come in runs of N segments on average"),
    option!("jitter", "TIME", "Extra delay that wanders between zero and this, keeping order"),
    option!("reorder", "SHARE:TIME", "How much is held back, and for how long: 1%:20ms"),
    option!("dup", "SHARE", "How much arrives twice"),
    option!("corrupt", "SHARE", "How much arrives with a bit flipped"),
    option!(
        "mtu",
        "BYTES",
        "The largest packet [default: 1500]; 'set' changes the link but not the devices, which \
         makes a black hole"
    ),
    option!("outage", "[START+]TIME", "The link is cut: 10s+5s from the tenth second, 5s at once"),
    option!("ecn", "SIZE", "Mark congestion experienced beyond this queue"),
    option!(
        "aqm",
        "KIND",
        "Manage the queue: codel drops, codel-ecn marks where senders understand that, both \
         [:TARGET[:INTERVAL]] [default: 5ms, 100ms]"
    ),
    option!(
        "police",
        "RATE:BURST",
        "Drop before the queue what exceeds this rate by more than this burst: 500mbit:1MB"
    ),
];

impl LinkOptions {
    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let parse = |(key, value): &(String, String)| {
            Setting::parse(key, value).map_err(|error| anyhow!("--{key}: {error}"))
        };
        self.pairs.iter().map(parse).collect()
    }

    /// All options, the general before the directional, which override them.
    fn all() -> impl Iterator<Item = (usize, &'static LinkOption)> {
        // A round trip has no direction.
        (0..3)
            .flat_map(|way| OPTIONS.iter().map(move |option| (way, option)))
            .filter(|(way, option)| *way == 0 || option.keys[0] != "rtt")
    }
}

impl Args for LinkOptions {
    fn augment_args(command: Command) -> Command {
        Self::all().fold(command, |command, (way, option)| {
            let help = match way {
                0 => option.help,
                1 => "The same, from client to server",
                _ => "The same, from server to client",
            };
            let arg = Arg::new(option.keys[way])
                .long(option.keys[way])
                .value_name(option.value)
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

impl FromStr for Side {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "client" => Ok(Self::Client),
            "server" => Ok(Self::Server(1)),
            _ => match text.strip_prefix("server").and_then(|number| number.parse().ok()) {
                Some(number @ 1..=254) => Ok(Self::Server(number)),
                _ => Err(format!("'{text}' is not 'client', 'server' or 'serverN'")),
            },
        }
    }
}

#[cfg(test)]
mod tests;
