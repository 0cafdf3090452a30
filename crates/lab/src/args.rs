//! Command-line arguments of `hikyaku lab`.

mod link;
mod sites;

use crate::host::HostProfile;
use crate::lab::{Access, Lab, LabSpec, Side};
use crate::relay::Corruption;
use crate::running::{Change, Running};
use crate::runtime::lab_name;
use crate::sites::{SiteLab, SitesSpec};
use crate::trouble::{self, usage};
use anyhow::Result;
use clap::{Args, Parser, Subcommand, ValueEnum};
use hikyaku_console::At;
use hikyaku_link::{PathSpec, Schedule, ScheduleError, parse_time};
use hikyaku_units::{Instant, Rate};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use link::LinkOptions;
use sites::{PairOptions, SiteOptions};

/// Emulate long fat links between network namespaces, to test programs on them
#[derive(Debug, Parser)]
pub struct LabArgs {
    #[command(subcommand)]
    pub(crate) command: LabCommand,
}

const RUN_EXAMPLES: &str = "\
Examples:
  hikyaku lab run --rtt 200ms --server-cmd 'iperf3 -s' -- iperf3 -c server
  hikyaku lab run --rtt 100ms -- ping -c 3 server
  hikyaku lab run --site tokyo:2 --site nict:1 --rtt 20ms -- ping -c 3 nict1";

const UP_EXAMPLES: &str = "\
Examples:
  hikyaku lab up atlantic --rate 1gbit --rtt 80ms
  hikyaku lab up asia --site tokyo:4 --site nict:2 --rate 1gbit --rtt 40ms";

const SET_EXAMPLES: &str = "\
Examples:
  hikyaku lab set atlantic --loss 1%
  hikyaku lab set asia --link tokyo-nict=rtt:300ms";

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// Run a command at the client of a temporary lab, or at the first host of its sites, and
    /// remove the lab afterwards
    Run(RunArgs),
    /// Create a lab that stays until 'lab down'
    Up(UpArgs),
    /// Run a command in a namespace of a running lab
    Exec(ExecArgs),
    /// Change the links of a running lab
    Set(SetArgs),
    /// Show the counters of a lab's links; without a name, list the running labs
    Status(StatusArgs),
    /// List the hosts of a lab of sites, with their addresses and namespaces
    Hosts(HostsArgs),
    /// Measure delay, rate and loss between all sites of a lab and compare them with the settings
    Check(CheckArgs),
    /// Remove a lab, or the remains of one whose process was killed, and end all programs in it
    Down(DownArgs),
}

#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) lab: LabOptions,
    /// Shell command to start in the background before COMMAND: at the first server, or at every
    /// host but the first
    #[arg(long, value_name = "COMMAND")]
    pub(crate) server_cmd: Option<String>,
    /// Write the counters of the links to FILE, as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// The command. It reaches the first server as 'server' or $HIKYAKU_LAB_SERVER (10.77.1.1), and
    /// server N as 'serverN' or $HIKYAKU_LAB_SERVER_N (10.77.N.1)
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = UP_EXAMPLES)]
pub(crate) struct UpArgs {
    /// Name of the lab: a-z, 0-9 and '-', at most 32 characters
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) lab: LabOptions,
    /// Stay in the foreground
    #[arg(long)]
    pub(crate) foreground: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// Name of the lab
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
    /// Where to run: 'client', 'server' or 'serverN'; in a lab of sites a host such as 'tokyo1', or
    /// the name of a site for its gateway
    pub(crate) host: String,
    /// The command
    #[arg(last = true, required = true, num_args = 1.., value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = SET_EXAMPLES)]
pub(crate) struct SetArgs {
    /// Name of the lab
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
    #[command(flatten)]
    link: LinkOptions,
    #[command(flatten)]
    pairs: PairOptions,
}

impl SetArgs {
    pub(crate) fn changes(&self) -> Result<Vec<Change>> {
        sites::changes(&self.link, &self.pairs)
    }
}

#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Name of the lab
    #[arg(value_parser = lab_name)]
    pub(crate) name: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct HostsArgs {
    /// Name of the lab
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Name of the lab. Nothing else may send traffic in it during the measurement
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
    /// Duration of the rate and loss measurement of each direction of each link
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_time)]
    pub(crate) each: Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    /// Name of the lab
    #[arg(value_parser = lab_name)]
    pub(crate) name: String,
}

/// Options that describe a lab.
#[derive(Debug, Args)]
pub(crate) struct LabOptions {
    #[command(flatten)]
    link: LinkOptions,
    #[command(flatten)]
    sites: SiteOptions,
    /// Change the links over time, by lines such as 'at 10s rate 300mbit'; in a lab of sites they
    /// apply to every link
    #[arg(long, value_name = "FILE", help_heading = "Link")]
    schedule: Option<PathBuf>,
    /// Corrupt UDP payload before its checksum is computed, so that only a check of the contents
    /// detects it
    #[arg(long, help_heading = "Link")]
    corrupt_past_checksum: bool,
    /// Seed of the random decisions: which segments are lost, corrupted, reordered or duplicated
    #[arg(long, default_value_t = 1, help_heading = "Link")]
    seed: u64,
    /// Number of servers
    #[arg(long, default_value_t = 1, value_name = "N", help_heading = "Hosts")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=254))]
    servers: u32,
    /// Rate of each server's access link, behind the common link: one value for all servers, or one
    /// for each, separated by commas [default: unlimited]
    #[arg(long, value_name = "RATE", value_delimiter = ',')]
    #[arg(help_heading = "Hosts")]
    server_rate: Vec<Rate>,
    /// Round-trip time of each server's access link, added to that of the common link: one value
    /// for all servers, or one for each, separated by commas [default: 0]
    #[arg(long, value_name = "TIME", value_delimiter = ',', value_parser = parse_time)]
    #[arg(help_heading = "Hosts")]
    server_rtt: Vec<Duration>,
    /// Put the client behind a NAT that rebinds: every TIME its UDP flows get new port numbers, and
    /// packets to the old ones are dropped
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = "Hosts")]
    rebind_every: Option<Duration>,
    /// TCP settings of all hosts
    #[arg(long, value_enum, default_value_t = Host::Debian, help_heading = "Hosts")]
    host: Host,
    /// TCP congestion control of all hosts [default: cubic]
    #[arg(long, value_name = "NAME", help_heading = "Hosts")]
    cc: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Host {
    /// Debian's defaults: CUBIC, receive buffer up to 6 MB, send buffer up to 4 MB
    Debian,
    /// Tuned for long fat networks: CUBIC, buffers up to 1 GB
    Tuned,
}

/// The description of a lab: client and servers, or sites.
#[derive(Clone, Debug)]
pub(crate) enum Spec {
    Ends(Box<LabSpec>),
    Sites(SitesSpec),
}

impl Spec {
    /// Creates the lab.
    pub(crate) fn up(self) -> Result<Box<dyn Running>> {
        Ok(match self {
            Self::Ends(spec) => Box::new(Lab::up(*spec)?),
            Self::Sites(spec) => Box::new(SiteLab::up(spec)?),
        })
    }
}

impl LabOptions {
    pub(crate) fn spec(&self, name: Option<String>) -> Result<Spec> {
        let mut path = PathSpec::default();
        for setting in self.link.settings()? {
            setting.apply(&mut path, Instant::ZERO);
        }
        let schedule = match &self.schedule {
            Some(file) => std::fs::read_to_string(file).at(file.display())?.parse().map_err(
                |error: ScheduleError| {
                    let text = format!("{}: {error}", file.display());
                    trouble::of(ErrorKind::InvalidInput, text)
                },
            )?,
            None => Schedule::default(),
        };
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
        if let Some(sites) = self.sites.spec(&path)? {
            return Ok(Spec::Sites(SitesSpec { name, schedule, host, corruption, seed, ..sites }));
        }
        let rates = self.for_servers("--server-rate", &self.server_rate)?;
        let rtts = self.for_servers("--server-rtt", &self.server_rtt)?;
        let servers = rates
            .into_iter()
            .zip(rtts)
            .map(|(rate, rtt)| Access { rate, delay: rtt.unwrap_or_default() / 2 });
        let servers = servers.collect();
        let spec = LabSpec { name, path, servers, schedule, host, corruption, rebind_every, seed };
        Ok(Spec::Ends(Box::new(spec)))
    }

    /// Spreads the values of a per-server option over the servers.
    fn for_servers<T: Copy>(&self, option: &str, values: &[T]) -> Result<Vec<Option<T>>> {
        let count = self.servers as usize;
        match *values {
            [] => Ok(vec![None; count]),
            [value] => Ok(vec![Some(value); count]),
            ref each if each.len() == count => Ok(each.iter().copied().map(Some).collect()),
            ref each => {
                Err(usage(format!("{option} has {} values for {count} servers", each.len())))
            }
        }
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
