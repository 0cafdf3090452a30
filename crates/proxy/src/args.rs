//! The command line of `hikyaku proxy`, in the words of ssh(1).

mod far;
mod help;
mod listen;
#[cfg(test)]
mod tests;

pub(crate) use far::{DESTINATION_HELP, FarArgs, FarEnd, FarWay, TransportArgs, far_end, way};
pub(crate) use listen::{Bind, Forward, Leads, Listen, Place, Remote};

use crate::guests::Ssh;
use crate::pac::Site;
use crate::switch::WhenDown;
use crate::transparent::{Clients, Interface, Network, Taken};
use anyhow::Result;
use clap::{ArgGroup, Args, Subcommand};
use hikyaku_console::{Form, FormArgs, NoiseArgs, OtherArgs, Scope, misuse};
use hikyaku_units::DataSize;
use std::ffi::OsString;
use std::str::FromStr;

/// Options of `hikyaku proxy`.
#[derive(Clone, Debug, Args)]
#[command(after_help = help::EXAMPLES, disable_version_flag = true)]
#[command(group = ArgGroup::new("listener").required(true).multiple(true))]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ProxyArgs {
    #[command(subcommand)]
    pub(crate) action: Option<Action>,
    /// Where the far gateway runs.
    #[arg(value_name = "HOST", required = true, help = DESTINATION_HELP)]
    destination: Option<OsString>,
    /// Carry connections to PORT here to HOST:HOSTPORT, as seen from the far side. Both may be paths of Unix sockets:
    /// PORT:PATH, PATH:HOST:HOSTPORT, PATH:PATH
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:HOSTPORT", group = "listener")]
    #[arg(value_parser = Forward::parse)]
    local: Vec<Forward>,
    /// Carry connections to PORT of the far side to HOST:HOSTPORT, as seen from here; Unix sockets as with -L. With PORT alone
    /// be a SOCKS proxy there, from which programs of the far side reach what is reached from here. The far side listens
    /// on loopback, and a daemon only where the key has listen=
    #[arg(short = 'R', value_name = "[BIND:]PORT[:HOST:HOSTPORT]", group = "listener")]
    #[arg(value_parser = Remote::parse)]
    remote: Vec<Remote>,
    /// Be a SOCKS proxy (versions 4, 4a and 5) at PORT here
    #[arg(short = 'D', value_name = "[BIND:]PORT", group = "listener", value_parser = Listen::parse)]
    dynamic: Vec<Listen>,
    /// Be an HTTP proxy at PORT here: CONNECT, and requests for http:// addresses
    #[arg(long, value_name = "[BIND:]PORT", group = "listener", value_parser = Listen::parse)]
    http: Vec<Listen>,
    /// Take in TCP connections that other hosts make through this one: those that come in at INTERFACE, to the
    /// networks of --to. Needs root, nftables, and that this host forwards packets
    #[arg(long, value_name = "INTERFACE", groups = ["listener", "taking"], requires = "to")]
    #[arg(value_parser = Interface::from_str)]
    transparent: Option<Interface>,
    /// Run COMMAND, and take in the TCP connections that it and the programs that it starts make, to the networks of --to
    /// [default: all but this host]. Ends with COMMAND, with its exit code. Needs root, nftables and control groups
    /// (cgroup v2)
    #[arg(long, groups = ["listener", "taking"], requires = "command")]
    #[arg(conflicts_with_all = ["transparent", "json", "json_lines", "background"])]
    for_command: bool,
    /// A network of servers, such as 10.0.0.0/8 or 2001:db8::/32, for --transparent and --for-command
    #[arg(long, value_name = "NETWORK", requires = "taking", value_parser = Network::from_str)]
    to: Vec<Network>,
    #[command(flatten)]
    form: FormArgs,
    /// Let other hosts use the listeners: without BIND they listen on all addresses
    #[arg(short = 'g')]
    gateway_ports: bool,
    /// Let programs of other users of this machine use the listeners
    #[arg(long)]
    any_user: bool,
    /// Let programs reach loopback addresses of the far side through -D and --http as well
    #[arg(long)]
    far_loopback: bool,
    /// Nothing: no command is ever run on the far side. Accepted because ssh has it
    #[arg(short = 'N')]
    _no_command: bool,
    /// Go to the background, when the far gateway is connected and all listeners are there
    #[arg(short = 'f', conflicts_with_all = ["json", "json_lines"])]
    pub(crate) background: bool,
    /// The messages about each connection.
    #[command(flatten)]
    pub noise: NoiseArgs,
    #[command(flatten)]
    far: FarArgs,
    #[command(flatten)]
    transport: TransportArgs,
    /// The command of --for-command, and its arguments
    #[arg(value_name = "COMMAND", last = true, requires = "for_command")]
    command: Vec<OsString>,
    #[command(flatten)]
    pub(crate) others: OtherArgs<Ssh>,
}

/// What is asked of gateways that run.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Action {
    /// Show what the gateways of this user carry, and what limits it
    ///
    /// A host of this name is ssh://status.
    Status(StatusArgs),
    /// Carry new connections again
    On(SwitchArgs),
    /// Let new connections go direct, by TCP connections of this machine
    ///
    /// Those that are carried go on.
    Off(SwitchArgs),
    /// Take in no new connections, and end with the last one that is open
    Drain(SwitchArgs),
}

/// Options of `hikyaku proxy on`, `off` and `drain`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SwitchArgs {
    /// Only the gateway with this process number, as status shows it [default: all of this user]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) process: Option<u32>,
}

/// Options of `hikyaku proxy status`.
#[derive(Clone, Debug, Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// What the command line asks for.
pub(crate) struct Plan {
    pub(crate) far: FarEnd,
    pub(crate) local: Vec<Forward>,
    /// What the far gateway is to listen on, and where flows go that come in there.
    pub(crate) remote: Vec<Remote>,
    pub(crate) socks: Vec<Listen>,
    pub(crate) http: Vec<Listen>,
    pub(crate) far_loopback: FarLoopback,
    pub(crate) users: AnyUser,
    /// Hosts for which there is a proxy configuration (PAC).
    pub(crate) sites: Vec<Site>,
    /// Connections of other hosts, or of a command, that are taken in.
    pub(crate) taken: Option<Taken>,
    /// What becomes of new connections while the far gateway is not there.
    pub(crate) when_down: WhenDown,
    /// The token of the page, if it is not to be a new one.
    pub(crate) token: Option<String>,
}

/// Whether programs of other users of this machine may use the listeners.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnyUser {
    Refused,
    Allowed,
}

/// Whether -D and --http reach loopback addresses of the far side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FarLoopback {
    Refused,
    Allowed,
}

impl ProxyArgs {
    /// What is printed.
    pub(crate) const fn output(&self) -> Form {
        self.form.form()
    }

    /// Reads the words that depend on each other.
    pub(crate) fn plan(&self) -> Result<Plan> {
        let mut plan = Plan {
            far: far_end(
                self.destination.as_deref().unwrap_or_default(),
                (&self.far, &self.transport),
            )?,
            local: self.local.clone(),
            remote: self.remote.clone(),
            socks: self.dynamic.clone(),
            http: self.http.clone(),
            users: if self.any_user { AnyUser::Allowed } else { AnyUser::Refused },
            sites: Vec::new(),
            taken: self.taken(),
            when_down: self.transport.when_down(),
            token: None,
            far_loopback: match self.far_loopback {
                true => FarLoopback::Allowed,
                false => FarLoopback::Refused,
            },
        };
        let local = plan.local.iter_mut().filter_map(|forward| match &mut forward.place {
            Place::Port(listen) => Some(listen),
            Place::Socket(_) => None,
        });
        for listen in local.chain(&mut plan.socks).chain(&mut plan.http) {
            match (self.gateway_ports, &listen.bind) {
                (true, Bind::Default) => listen.bind = Bind::All,
                (false, Bind::All) => return Err(needs_gateway_ports(listen)),
                (false, Bind::Address(address)) if !address.ip().is_loopback() => {
                    return Err(needs_gateway_ports(listen));
                }
                _ => {}
            }
        }
        Ok(plan)
    }

    /// Connections that are taken in.
    fn taken(&self) -> Option<Taken> {
        let to = if self.to.is_empty() { Network::all() } else { self.to.clone() };
        let from = match &self.transparent {
            Some(interface) => Clients::At(interface.clone()),
            None if self.for_command => Clients::OfCommand,
            None => return None,
        };
        Some(Taken { from, to })
    }

    /// The command of `--for-command`.
    pub(crate) fn command(&self) -> &[OsString] {
        &self.command
    }

    /// How the far side is reached.
    pub(crate) fn way(&self, far: &FarEnd, limits: (DataSize, Scope)) -> Result<FarWay> {
        way((&self.far, &self.transport), far, limits)
    }
}

fn needs_gateway_ports(listen: &Listen) -> anyhow::Error {
    let text = format!("{listen}: other hosts could use this listener, and -g is not given");
    misuse(text, "-g as well, or the bind address 127.0.0.1")
}
