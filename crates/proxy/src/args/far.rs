//! Where the far gateway is, how it is reached, and the options about that.

use crate::switch::WhenDown;
use anyhow::Result;
use clap::Args;
use hikyaku_console::{Scope, misuse, refuse_without_ssh};
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::dial::{Address, Servers};
use hikyaku_reach::options::{ports, silence};
use hikyaku_reach::settings::Typed;
use hikyaku_reach::{Destination, Letters, SshArgs, SshOptions, Way, WayPlan, settings};
use hikyaku_session::ConnectArgs;
use hikyaku_units::DataSize;
use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;

/// How the far gateway is started through ssh.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "ssh", mut_args(|arg| Letters::Ssh.added(arg)))]
pub(crate) struct FarArgs {
    #[command(flatten)]
    ssh: SshArgs,
    /// Where hikyaku is on the far side [default: PATH, ~/.local/bin, ~/.cargo/bin]
    #[arg(long, value_name = "PATH")]
    remote_path: Option<String>,
    #[command(flatten)]
    bootstrap: BootstrapArgs,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
#[command(next_help_heading = "Transport")]
pub(crate) struct TransportArgs {
    /// UDP ports of which each end takes one [default: 60001-60999]
    #[arg(long, value_name = "FROM-TO", value_parser = ports)]
    udp_ports: Option<RangeInclusive<u16>>,
    #[command(flatten)]
    connect: ConnectArgs,
    /// Give the far side up after a silence of this length, and connect again [default: 15m]
    #[arg(long, value_name = "TIME", value_parser = silence)]
    timeout: Option<Duration>,
    /// Let new connections go direct, by TCP connections of this machine, while the far gateway is not there. Otherwise
    /// they are refused
    #[arg(long)]
    direct_when_down: bool,
}

impl FarArgs {
    /// The options of ssh, and of the program that is started through it, each with whether it is given.
    fn given(&self, transport: &TransportArgs) -> Vec<(&'static str, bool)> {
        let own = [
            ("--remote-path", self.remote_path.is_some()),
            ("--udp-ports", transport.udp_ports.is_some()),
        ];
        let of_ssh = self.ssh.given(Letters::Ssh).into_iter();
        of_ssh.chain(own).chain(self.bootstrap.given()).collect()
    }
}

impl TransportArgs {
    /// What becomes of new connections while the far gateway is not there.
    pub(crate) const fn when_down(&self) -> WhenDown {
        match self.direct_when_down {
            true => WhenDown::Direct,
            false => WhenDown::Refuse,
        }
    }
}

/// Where the far gateway is.
#[derive(Clone)]
pub(crate) enum FarEnd {
    /// ssh starts it there.
    Ssh(Destination),
    /// A daemon that forwards (`hikyaku serve --allow`).
    Daemon(Address),
}

impl FarEnd {
    /// Its host.
    pub(crate) fn host(&self) -> &str {
        match self {
            Self::Ssh(destination) => &destination.host,
            Self::Daemon(address) => &address.host,
        }
    }
}

/// The help of the destination.
pub(crate) const DESTINATION_HELP: &str = "Where the far gateway runs: [USER@]HOST or ssh://[USER@]HOST[:PORT], where ssh starts it, or \
     hikyaku://HOST[:PORT] for a daemon (hikyaku serve --allow)";

/// A TCP connection of its own survives an outage of about so long: Linux gives up after 15 retransmissions
/// (`tcp_retries2`, tcp(7)).
const SILENCE: Duration = Duration::from_secs(15 * 60);

/// Reads `[USER@]HOST`, `ssh://[USER@]HOST[:PORT]` or `hikyaku://HOST[:PORT]`. Options of ssh beside a daemon are refused.
pub(crate) fn far_end(
    text: &OsStr,
    (far, transport): (&FarArgs, &TransportArgs),
) -> Result<FarEnd> {
    let text = text.as_bytes();
    if let Some(servers) = Servers::parse(text) {
        const INSTEAD: &str = "hikyaku://HOST or hikyaku://HOST:PORT";
        let Servers { servers, path, .. } =
            servers.map_err(|error| misuse(error.to_string(), INSTEAD))?;
        let Ok([address]) = <[Address; 1]>::try_from(servers) else {
            return Err(misuse("there are several servers, and one is the far gateway", INSTEAD));
        };
        if !path.is_empty() {
            return Err(misuse("a far gateway has no path", INSTEAD));
        }
        let instead = match far.ssh.port() {
            Some(port) => format!("hikyaku://{}:{port}", address.host),
            None => format!("ssh://{0} in place of hikyaku://{0}", address.host),
        };
        refuse_without_ssh(&far.given(transport), instead)?;
        return Ok(FarEnd::Daemon(address));
    }
    let parsed = match text.strip_prefix(b"ssh://") {
        Some(rest) => Destination::parse_authority(rest.strip_suffix(b"/").unwrap_or(rest)),
        None => Destination::parse(text),
    };
    let destination = parsed.map_err(|error| misuse(error.to_string(), "[USER@]HOST"))?;
    Ok(FarEnd::Ssh(destination))
}

/// How a far gateway is reached.
#[derive(Clone)]
pub(crate) struct FarWay {
    /// Through ssh. A daemon has its silence from it.
    pub(crate) way: Way,
    /// To a daemon.
    pub(crate) connect: ConnectArgs,
    /// The time for which a daemon may be silent over TCP, if the user has set it.
    pub(crate) silence: Option<Duration>,
}

/// How the far side is reached. An option overrides the settings of its host.
pub(crate) fn way(
    (far, transport): (&FarArgs, &TransportArgs),
    end: &FarEnd,
    (memory, scope): (DataSize, Scope),
) -> Result<FarWay> {
    let connect = transport.connect.clone();
    let plan = WayPlan {
        ssh: SshOptions { family: connect.family.family(), ..far.ssh.options() },
        typed: Typed {
            rate: connect.rate,
            timeout: transport.timeout,
            ports: transport.udp_ports.clone(),
            remote_path: far.remote_path.clone(),
            ..Typed::default()
        },
        carriers: connect.carriers(),
        pipes: connect.pipes.unwrap_or_default(),
        bootstrap: far.bootstrap.clone(),
        ..WayPlan::default()
    };
    let settings = settings::of_user()?;
    let mut way = plan.way((end.host(), &settings), (crate::SERVICE, memory), scope)?;
    let silence = way.tuning.timeout.map(Duration::from_secs);
    way.tuning.timeout.get_or_insert(SILENCE.as_secs());
    Ok(FarWay { way, connect, silence })
}
