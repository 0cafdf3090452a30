//! Command-line arguments of `hikyaku perf`, and the settings derived from them.

mod common;
mod help;
mod records;
mod role;
mod ssh;
mod values;

use crate::compete::Compete;
use crate::guests::Iperf3;
use crate::memory;
use crate::output::Format;
use crate::plan::{Direction, Handling, Kind, Limit, MAX_STREAMS, Plan, Stall};
use anyhow::Result;
use clap::{ArgGroup, Args};
pub(crate) use common::Common;
use hikyaku_console::{Form, FormArgs, NoiseArgs, OtherArgs};
use hikyaku_crypto::Fingerprint;
use hikyaku_net::{Config, EndpointConfig, Memory, OnDrop, Policy};
use hikyaku_reach::FamilyArgs;
use hikyaku_udp::Family;
use hikyaku_units::{DataSize, Rate};
pub(crate) use records::Records;
pub(crate) use role::{
    ClientArgs, Competitors, Lifetime, Mesh, Role, Rules, ServerArgs, Stalls, Tests, Ways,
};
use ssh::ThroughArgs;
pub(crate) use ssh::ThroughSsh;
use std::path::PathBuf;
use values::{Cipher, Local, Peer};

#[cfg(test)]
mod tests;

/// Measure goodput, round-trip time and loss between two hosts, as iperf3 does for TCP
#[derive(Clone, Debug, Args)]
#[command(after_help = help::EXAMPLES, disable_version_flag = true)]
#[command(mut_arg("verbose", |arg| arg.short_alias('V')))]
#[command(mut_arg("v4", |arg| arg.long("version4")), mut_arg("v6", |arg| arg.long("version6")))]
#[command(group = ArgGroup::new("role").required(true).args(["server", "client", "peer", "mesh"]))]
pub struct PerfArgs {
    /// Run as server: wait for clients and run their tests, several at once if they overlap
    #[arg(short = 's', long, conflicts_with_all = ["SshArgs", "BootstrapArgs"])]
    server: bool,
    /// Run as client: measure to the server at HOST. An IPv6 address with a port needs brackets:
    /// `[::1]:5208`
    #[arg(short = 'c', long, value_name = "HOST[:PORT]")]
    client: Option<Peer>,
    /// The same without -c. `USER@HOST` and `ssh://[USER@]HOST[:PORT]`, here and with -c, start the
    /// server of this one test through ssh; a plain HOST is the address of a server
    #[arg(value_name = "HOST")]
    peer: Option<Peer>,
    /// UDP port of the server. It differs from iperf3's 5201 so that both can run on one host
    /// [default: 5208]
    #[arg(short = 'p', long, value_name = "PORT")]
    port: Option<u16>,
    /// Bind to this local address; %DEV binds to that network interface
    #[arg(short = 'B', long, value_name = "ADDR[%DEV]")]
    bind: Option<Local>,
    /// Set the DSCP field of sent packets: a number from 0 to 63, or a name (ef, cs1, af41, le)
    #[arg(long, value_name = "CLASS", value_parser = values::dscp)]
    dscp: Option<u8>,
    #[command(flatten)]
    family: FamilyArgs,
    /// Server: exit after one test
    #[arg(short = '1', long, conflicts_with_all = ["client", "peer"])]
    one_off: bool,
    /// Server: exit when standard input ends, as --mesh wants it
    #[arg(long, hide = true, requires = "server")]
    while_stdin: bool,
    /// Server: refuse tests with competing flows (--compete), which open a TCP port for up to 15
    /// seconds
    #[arg(long, conflicts_with_all = ["client", "peer"])]
    no_compete: bool,

    #[command(flatten)]
    through: ThroughArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    load: Load,
    #[command(flatten)]
    transport: Transport,
    #[command(flatten)]
    printing: Printing,
    #[command(flatten)]
    records: Records,
    /// The messages beside the result.
    #[command(flatten)]
    pub noise: NoiseArgs,
    #[command(flatten)]
    pub(crate) others: OtherArgs<Iperf3>,
}

/// Options by which a client describes the test.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Load (client)")]
struct Load {
    /// Duration of the measurement in seconds
    #[arg(short = 't', long, value_name = "SECS", default_value = "10", conflicts_with = "server")]
    #[arg(value_parser = values::measured_seconds)]
    time: f64,
    /// Send this many bytes in total over all streams, then stop; replaces -t (1G, 500MB)
    #[arg(short = 'n', long, value_name = "BYTES", conflicts_with_all = ["time", "server"])]
    #[arg(value_parser = values::some_bytes)]
    bytes: Option<DataSize>,
    /// Seconds between two reports, at least 0.1
    #[arg(short = 'i', long, value_name = "SECS", default_value = "1")]
    #[arg(value_parser = values::interval_seconds)]
    interval: f64,
    /// Leave the first SECS seconds out of the result [default: 0; with --compete a quarter of each
    /// part, with --sweep the start-up]
    #[arg(short = 'O', long, value_name = "SECS", value_parser = values::omitted_seconds)]
    omit: Option<f64>,
    /// Reverse the direction: the server sends, the client receives
    #[arg(short = 'R', long, conflicts_with = "server")]
    reverse: bool,
    /// Measure both directions at once, as two tests that start together
    #[arg(long, conflicts_with_all = ["reverse", "compete", "server"])]
    bidir: bool,
    /// Number of parallel connections, with one stream each
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_STREAMS)))]
    parallel: u32,
    /// Limit the payload rate of each stream, retransmissions not counted (100M, 1gbit, 10MB); a bare
    /// number is bits a second, as in iperf3; 0 means no limit [default: 0]
    #[arg(short = 'b', long, value_name = "RATE", conflicts_with = "server")]
    #[arg(value_parser = values::bitrate)]
    bitrate: Option<Rate>,
    /// Size of one write by the sending application, at most 1 MiB
    #[arg(short = 'l', long, visible_alias = "one-chunk-size", value_name = "SIZE")]
    #[arg(default_value = "256KiB", value_parser = values::length)]
    length: u32,
    /// Transport: 'ordered' for streams that deliver in order, 'object' for objects whose bytes are
    /// read in any order
    #[arg(long, value_enum, value_name = "KIND", default_value_t = Kind::Ordered)]
    streams: Kind,
    /// Copy the data at both ends as write() and read() do, in place of passing buffers without a
    /// copy
    #[arg(long, conflicts_with = "server")]
    copy: bool,
    /// Pause the receiving application once: 2@5 pauses it for 2 seconds, 5 seconds into the test.
    /// A server that receives has to allow it (--allow-stall)
    #[arg(long, value_name = "SECS@SECS", conflicts_with = "server")]
    #[arg(value_parser = values::stall)]
    stall: Option<Stall>,
    /// Run competing flows beside this test: N TCP flows (`tcp:N[:ALGORITHM]`) or N hikyaku flows
    /// (`hikyaku:N[:POLICY]`), several separated by commas. The test has three parts of -t seconds
    /// each: competitors alone, all together, this test alone. The result gives each flow's share
    /// and how much goodput it loses to the others (harm)
    #[arg(long, value_name = "KIND:N[:HOW]", conflicts_with_all = ["bytes", "stall", "server"])]
    compete: Option<Compete>,
    /// Accept only a server with this key fingerprint
    #[arg(long, value_name = "SHA256:...", conflicts_with = "server")]
    peer_key: Option<Fingerprint>,
}

/// Limits that a server sets for its clients.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Limits (server)")]
struct LimitArgs {
    /// Number of concurrent tests; if all places are taken, a test without progress is ended for a
    /// new one
    #[arg(long, value_name = "N", conflicts_with_all = ["client", "peer"], default_value_t = MAX_TESTS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1024))]
    max_tests: u32,
    /// Longest duration of a test in seconds, the omitted time included [default: 86400, one day]
    #[arg(long, value_name = "SECS", conflicts_with_all = ["client", "peer"])]
    #[arg(value_parser = values::measured_seconds)]
    max_time: Option<f64>,
    /// Limit the payload rate of each test, all its streams together [default: no limit]
    #[arg(long, value_name = "RATE", conflicts_with_all = ["client", "peer"], value_parser = values::some_rate)]
    max_rate: Option<Rate>,
    /// Memory limit of this server, at least 128 MiB [default: an eighth of the
    /// machine's memory, but at least 2 GiB, or half of it if that is less]
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["client", "peer"], value_parser = values::memory)]
    max_memory: Option<DataSize>,
    /// Allow --stall to pause this server's receiving application, which fills receive buffers
    #[arg(long, conflicts_with_all = ["client", "peer"])]
    allow_stall: bool,
}

/// Transport settings of this end.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Transport of this end")]
struct Transport {
    /// Limit the rate that this end sends on the wire, headers and retransmissions included; 0
    /// means no limit [default: 0]
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    wire_rate: Option<Rate>,
    /// Congestion control policy of this end when it sends: 'fair', 'scavenger' (yields to all
    /// other traffic), or 'fixed:RATE' for a path without other traffic
    #[arg(long, value_name = "POLICY", default_value = "fair")]
    policy: Policy,
    /// AEAD cipher: aegis128l, aes128gcm or chacha20poly1305 [default: aegis128l, or
    /// chacha20poly1305 on processors without AES instructions]
    #[arg(long, value_name = "NAME")]
    cipher: Option<Cipher>,
    /// Largest receive window of this end, such as 16MiB; a server with little memory uses less
    /// [default: a sixteenth of the machine's memory, 512MB to 2GB]
    #[arg(long, value_name = "SIZE")]
    window: Option<DataSize>,
    /// Start at the rate at which the previous connection on this path ended
    #[arg(long, conflicts_with = "no_path_cache")]
    reuse_path: bool,
    /// Start without knowledge of the path; this is the default
    #[arg(long)]
    no_path_cache: bool,
    /// Pin the threads that drive the sockets to processor N and the next ones
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,
}

#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
#[command(mut_arg("json", |arg| arg.short('J')))]
#[command(mut_arg("json_lines", |arg| arg.alias("json-stream")))]
struct Printing {
    #[command(flatten)]
    form: FormArgs,
    /// Append the output to FILE, in place of standard output
    #[arg(long, value_name = "FILE")]
    logfile: Option<PathBuf>,
    /// Title in the JSON output
    #[arg(short = 'T', long, value_name = "TEXT", default_value = "hikyaku perf")]
    title: String,
}

const DEFAULT_PORT: u16 = 5208;
/// More tests than the users of one host usually start at once, and few enough for the threads that
/// a machine can have.
const MAX_TESTS: u32 = 64;

impl PerfArgs {
    fn common(&self) -> Common {
        let family = self.family.family();
        let mut endpoint = EndpointConfig::default();
        if self.transport.reuse_path {
            endpoint.memory = Memory::of_user();
        }
        // The process exits right after the endpoint is dropped.
        endpoint.on_drop = OnDrop::Wait;
        if family == Some(hikyaku_reach::Family::V6) {
            endpoint.socket.family = Family::OnlyV6;
        }
        endpoint.socket.bind_device = self.bind.as_ref().and_then(|local| local.device.clone());
        endpoint.socket.dscp = self.dscp;
        let printing = &self.printing;
        Common {
            port: self.port.unwrap_or(DEFAULT_PORT),
            bind: self.bind.clone(),
            family,
            transport: self.transport.config(),
            endpoint,
            cpu: self.transport.cpu,
            format: match printing.form.form() {
                Form::Document => Format::Json,
                Form::Lines => Format::JsonStream,
                Form::Words if self.records.csv => Format::Csv,
                Form::Words => Format::Text,
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
            omit: self.omit.unwrap_or_else(|| self.default_omitted_seconds()),
            target: self.bitrate.map(Rate::bits_per_sec).filter(|bits| *bits > 0),
            kind: self.streams,
            handling: if self.copy { Handling::Copy } else { Handling::ZeroCopy },
            length: self.length,
            stall: self.stall,
            compete: self.compete.clone(),
        }
    }

    /// With competitors a quarter of each part is omitted by default: before a TCP flow has filled
    /// the path its goodput says little about shares.
    fn default_omitted_seconds(&self) -> f64 {
        if self.compete.is_some() { self.time / 4.0 } else { 0.0 }
    }
}

impl Transport {
    /// That of a user who has chosen nothing.
    const fn usual() -> Self {
        Self {
            wire_rate: None,
            policy: Policy::Fair,
            cipher: None,
            window: None,
            reuse_path: false,
            no_path_cache: false,
            cpu: None,
        }
    }

    fn config(&self) -> Config {
        let default = Config::default();
        let ciphers = match &self.cipher {
            Some(cipher) => vec![cipher.0],
            None => hikyaku_crypto::preferred_ciphers(),
        };
        let window = self.window.unwrap_or_else(memory::of_window);
        Config {
            ciphers,
            policy: self.policy,
            wire_rate: self.wire_rate.filter(|rate| *rate > Rate::ZERO),
            receive_window: window,
            initial_window: default.initial_window.min(window),
            // One application reads all streams.
            stream_window: default.initial_window,
            ..default
        }
    }

    /// Refuses transport options that have no effect at the client in a test of this direction.
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
