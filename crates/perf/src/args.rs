//! What users type after `hikyaku perf`, and what follows from it.

mod help;
mod values;

use crate::compete::{Compete, Group, Kind as CompetitorKind};
use crate::output::Format;
use crate::plan::{Direction, Handling, Kind, Limit, MAX_STREAMS, Plan, Stall};
use anyhow::{Result, bail};
use clap::{ArgGroup, Args};
use hikyaku_crypto::Fingerprint;
use hikyaku_net::{Config, EndpointConfig, Memory, Policy};
use hikyaku_udp::Family;
use hikyaku_units::{DataSize, Rate};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use values::{Cipher, Local};

#[cfg(test)]
mod tests;

/// Measures what the transport moves between two hosts, as iperf3 does for TCP.
#[derive(Clone, Debug, Args)]
#[command(after_help = help::EXAMPLES, disable_version_flag = true)]
#[command(group = ArgGroup::new("role").required(true).args(["server", "client"]))]
pub struct PerfArgs {
    /// Wait for clients and measure with each, several at once if they come so
    #[arg(short = 's', long)]
    server: bool,
    /// Measure with the server there
    #[arg(short = 'c', long, value_name = "HOST")]
    client: Option<String>,
    /// UDP port of the server; not iperf3's 5201, so that both can run
    #[arg(short = 'p', long, value_name = "PORT", default_value_t = DEFAULT_PORT)]
    port: u16,
    /// Use this local address, and with %DEV this interface
    #[arg(short = 'B', long, value_name = "ADDR[%DEV]")]
    bind: Option<Local>,
    /// Mark packets for the routers: a number to 63, or a name (ef, cs1, af41, le)
    #[arg(long, value_name = "CLASS", value_parser = values::dscp)]
    dscp: Option<u8>,
    /// Only IPv4
    #[arg(short = '4', long, conflicts_with = "version6")]
    version4: bool,
    /// Only IPv6
    #[arg(short = '6', long)]
    version6: bool,
    /// End after one test
    #[arg(short = '1', long, conflicts_with = "client")]
    one_off: bool,
    /// Refuse tests with competitors (--compete): they need a TCP port, for some seconds
    #[arg(long, conflicts_with = "client")]
    no_compete: bool,

    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    printing: Printing,
}

/// What a client asks for.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load (client)")]
struct Load {
    /// Seconds to measure
    #[arg(short = 't', long, value_name = "SECS", default_value = "10", conflicts_with = "server")]
    #[arg(value_parser = values::measured_seconds)]
    time: f64,
    /// Bytes to move in place of a time, in all streams together (1G, 500MB)
    #[arg(short = 'n', long, value_name = "BYTES", conflicts_with_all = ["time", "server"])]
    #[arg(value_parser = values::some_bytes)]
    bytes: Option<DataSize>,
    /// Seconds between lines, at least 0.1
    #[arg(short = 'i', long, value_name = "SECS", default_value = "1")]
    #[arg(value_parser = values::interval_seconds)]
    interval: f64,
    /// Seconds at the start that do not count [default: 0; with --compete a quarter of each part]
    #[arg(short = 'O', long, value_name = "SECS", value_parser = values::omitted_seconds)]
    omit: Option<f64>,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "server")]
    reverse: bool,
    /// Connections at once, each with one stream
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STREAMS)))]
    parallel: u32,
    /// Most payload of each stream, retransmissions not counted (100M, 1gbit); 0 is no limit
    #[arg(short = 'b', long, value_name = "RATE", conflicts_with = "server")]
    #[arg(value_parser = values::target)]
    bitrate: Option<Rate>,
    /// Bytes of one write, at most 1 MiB
    #[arg(short = 'l', long, visible_alias = "one-chunk-size", value_name = "SIZE")]
    #[arg(default_value = "256KiB", value_parser = values::length)]
    length: u32,
    /// Streams that keep order, or objects whose bytes are read as they come
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Kind::Ordered)]
    streams: Kind,
    /// Copy the data at both ends, as write() and read() do
    #[arg(long, conflicts_with = "server")]
    copy: bool,
    /// The reader rests for SECS when the test is SECS old (2@5)
    #[arg(long, value_name = "SECS@SECS", conflicts_with = "server")]
    #[arg(value_parser = values::stall)]
    stall: Option<Stall>,
    /// Run N TCP flows (`tcp:N[:ALGORITHM]`) or N of ours (`hikyaku:N[:POLICY]`, several by commas)
    /// beside this test: -t SECS they alone, as long all together, as long this test alone; at the
    /// end the share of each and what they lose (harm)
    #[arg(long, value_name = "KIND:N[:HOW]", conflicts_with_all = ["bytes", "stall", "server"])]
    compete: Option<Compete>,
    /// Accept only the server with this key
    #[arg(long, value_name = "SHA256:...", conflicts_with = "server")]
    peer_key: Option<Fingerprint>,
}

/// How this end's transport works.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport of this end")]
struct Transport {
    /// Most that this end sends, headers and retransmissions counted
    #[arg(long, value_name = "RATE", value_parser = values::target)]
    wire_rate: Option<Rate>,
    /// How this end shares the path when it sends: 'fair', 'scavenger' (gives
    /// way to all others), or 'fixed:RATE' on a path of your own
    #[arg(long, value_name = "POLICY", default_value = "fair")]
    policy: Policy,
    /// The cipher of the data: aegis128l, aes128gcm or chacha20poly1305
    #[arg(long, value_name = "NAME")]
    cipher: Option<Cipher>,
    /// Most that this end holds when it receives (16MiB)
    #[arg(long, value_name = "SIZE")]
    window: Option<DataSize>,
    /// Start at the rate at which the last connection on this path ended
    #[arg(long, conflicts_with = "no_path_cache")]
    reuse_path: bool,
    /// Begin knowing nothing of the path, as is the default
    #[arg(long)]
    no_path_cache: bool,
    /// Run the thread that drives the socket on this processor
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
struct Printing {
    /// One JSON object at the end of the test, and nothing else on standard output
    #[arg(short = 'J', long, conflicts_with = "json_stream")]
    json: bool,
    /// A line of JSON for each event as it happens
    #[arg(long)]
    json_stream: bool,
    /// Append to FILE in place of standard output
    #[arg(long, value_name = "FILE")]
    logfile: Option<PathBuf>,
    /// The title in the JSON
    #[arg(short = 'T', long, value_name = "TEXT", default_value = "hikyaku perf")]
    title: String,
}

const DEFAULT_PORT: u16 = 5208;

/// What to do.
#[derive(Debug)]
pub(crate) enum Role {
    Client(ClientArgs),
    Server(ServerArgs),
}

/// What both ends are told.
#[derive(Clone, Debug)]
pub(crate) struct Common {
    pub(crate) port: u16,
    pub(crate) bind: Option<Local>,
    pub(crate) family: Option<IpFamily>,
    pub(crate) transport: Config,
    pub(crate) endpoint: EndpointConfig,
    pub(crate) cpu: Option<usize>,
    pub(crate) format: Format,
    pub(crate) logfile: Option<PathBuf>,
    pub(crate) title: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IpFamily {
    V4,
    V6,
}

#[derive(Debug)]
pub(crate) struct ClientArgs {
    pub(crate) common: Common,
    pub(crate) host: String,
    pub(crate) plan: Plan,
    pub(crate) pin: Option<Fingerprint>,
}

#[derive(Debug)]
pub(crate) struct ServerArgs {
    pub(crate) common: Common,
    pub(crate) tests: Tests,
    pub(crate) competitors: Competitors,
}

/// Whether a server runs competitors for its clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Competitors {
    Allowed,
    Refused,
}

/// How many tests a server does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tests {
    One,
    Any,
}

impl PerfArgs {
    /// What these arguments ask for.
    pub(crate) fn role(self) -> Result<Role> {
        let common = self.common();
        let Some(host) = self.client.clone() else {
            let tests = if self.one_off { Tests::One } else { Tests::Any };
            let competitors =
                if self.no_compete { Competitors::Refused } else { Competitors::Allowed };
            return Ok(Role::Server(ServerArgs { common, tests, competitors }));
        };
        let plan = self.load.plan();
        plan.check()?;
        self.transport.check(plan.direction)?;
        self.check_competitors(&plan)?;
        Ok(Role::Client(ClientArgs { common, host, plan, pin: self.load.peer_key }))
    }

    /// Refuses competitors that could not be as they are asked for.
    fn check_competitors(&self, plan: &Plan) -> Result<()> {
        let Some(compete) = &plan.compete else { return Ok(()) };
        let device = self.bind.as_ref().and_then(|local| local.device.as_ref());
        if device.is_some() && compete.count(CompetitorKind::Tcp) > 0 {
            bail!("--compete tcp goes by the address alone: give -B without %DEV");
        }
        let has_policy =
            |group: &Group| group.kind == CompetitorKind::Hikyaku && group.manner.is_some();
        if plan.direction == Direction::Download && compete.groups.iter().any(has_policy) {
            return Err(values::misplaced("--policy", "sends, competitors too"));
        }
        Ok(())
    }

    fn common(&self) -> Common {
        let family = match (self.version4, self.version6) {
            (true, _) => Some(IpFamily::V4),
            (_, true) => Some(IpFamily::V6),
            _ => None,
        };
        let mut endpoint = EndpointConfig {
            memory: if self.transport.reuse_path { Memory::of_user() } else { Memory::Off },
            ..EndpointConfig::default()
        };
        if family == Some(IpFamily::V6) {
            endpoint.socket.family = Family::OnlyV6;
        }
        endpoint.socket.bind_device = self.bind.as_ref().and_then(|local| local.device.clone());
        endpoint.socket.dscp = self.dscp;
        let printing = &self.printing;
        Common {
            port: self.port,
            bind: self.bind.clone(),
            family,
            transport: self.transport.config(),
            endpoint,
            cpu: self.transport.cpu,
            format: match (printing.json, printing.json_stream) {
                (true, _) => Format::Json,
                (_, true) => Format::JsonStream,
                _ => Format::Text,
            },
            logfile: printing.logfile.clone(),
            title: printing.title.clone(),
        }
    }
}

impl Load {
    fn plan(&self) -> Plan {
        Plan {
            direction: if self.reverse { Direction::Download } else { Direction::Upload },
            limit: match self.bytes {
                Some(bytes) => Limit::Bytes(bytes.bytes()),
                None => Limit::Seconds(self.time),
            },
            streams: self.parallel,
            interval: self.interval,
            omit: self.omit.unwrap_or_else(|| self.usually_omitted()),
            target: self.bitrate.map(Rate::bits_per_sec).filter(|bits| *bits > 0),
            kind: self.streams,
            handling: if self.copy { Handling::Copy } else { Handling::ZeroCopy },
            length: self.length,
            stall: self.stall,
            compete: self.compete.clone(),
        }
    }

    /// TCP needs its time until it fills a path: what it does before says little of shares.
    fn usually_omitted(&self) -> f64 {
        if self.compete.is_some() { self.time / 4.0 } else { 0.0 }
    }
}

impl Transport {
    fn config(&self) -> Config {
        let default = Config::default();
        let ciphers = match &self.cipher {
            Some(cipher) => vec![cipher.0],
            None => hikyaku_crypto::preferred_ciphers(),
        };
        let window = self.window.unwrap_or(default.receive_window);
        Config {
            ciphers,
            policy: self.policy,
            wire_rate: self.wire_rate.filter(|rate| *rate > Rate::ZERO),
            receive_window: window,
            initial_window: default.initial_window.min(window),
            ..default
        }
    }

    /// Refuses what would have no effect at the client in a test of this direction.
    fn check(&self, direction: Direction) -> Result<()> {
        let policy = (self.policy != Policy::Fair).then_some("--policy");
        let wire = self.wire_rate.map(|_| "--wire-rate");
        let window = self.window.map(|_| "--window");
        let (option, what) = match direction {
            Direction::Upload => (window, "receives"),
            Direction::Download => (policy.or(wire), "sends"),
        };
        match option {
            Some(option) => Err(values::misplaced(option, what)),
            None => Ok(()),
        }
    }
}

impl Common {
    /// Addresses to bind to, the better first.
    pub(crate) fn addresses(&self, port: u16) -> Vec<SocketAddr> {
        let v4 = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), port);
        let v6 = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port);
        match (&self.bind, self.family) {
            (Some(Local { address: Some(address), .. }), _) => {
                vec![SocketAddr::new(*address, port)]
            }
            (_, Some(IpFamily::V4)) => vec![v4],
            (_, Some(IpFamily::V6)) => vec![v6],
            // A machine without IPv6 has no socket for it.
            (_, None) => vec![v6, v4],
        }
    }

    /// The most that this end puts on the wire, by a cap or by a fixed rate.
    pub(crate) fn wire_target(&self) -> Option<Rate> {
        let fixed = match self.transport.policy {
            Policy::Fixed(rate) => Some(rate),
            Policy::Fair | Policy::Scavenger => None,
        };
        [self.transport.wire_rate, fixed].into_iter().flatten().min()
    }

    pub(crate) fn policy(&self) -> String {
        self.transport.policy.to_string()
    }
}

impl IpFamily {
    pub(crate) fn has(self, address: IpAddr) -> bool {
        address.is_ipv4() == (self == Self::V4)
    }
}
