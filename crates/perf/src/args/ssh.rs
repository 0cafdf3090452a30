//! A server that is started through ssh: its options, and those that mean nothing to it.

use super::{PerfArgs, values};
use crate::mesh::{Hosts, MeshArgs};
use anyhow::Result;
use clap::Args;
use hikyaku_console::refuse_without_ssh;
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::{Destination, Letters, SshArgs, SshOptions, options};
use hikyaku_wire::CipherId;
use std::ops::RangeInclusive;

/// How a server is started through ssh.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server through ssh (USER@HOST)")]
pub(super) struct ThroughArgs {
    #[command(flatten)]
    pub(super) ssh: SshArgs,
    /// Where hikyaku is on the server's host [default: PATH, ~/.local/bin, ~/.cargo/bin]
    #[arg(long, value_name = "PATH", conflicts_with = "server")]
    remote_path: Option<String>,
    #[command(flatten)]
    bootstrap: BootstrapArgs,
    /// UDP ports of which each end takes one [default: 60001-60999]
    #[arg(long, value_name = "FROM-TO", conflicts_with = "server", value_parser = options::ports)]
    udp_ports: Option<RangeInclusive<u16>>,
}

/// How a server is started through ssh.
#[derive(Clone, Debug)]
pub(crate) struct ThroughSsh {
    pub(crate) destination: Destination,
    pub(crate) ssh: SshOptions,
    pub(crate) remote_path: Option<String>,
    pub(crate) bootstrap: BootstrapArgs,
    /// UDP ports of which each end takes one, if the user has chosen them.
    pub(crate) ports: Option<RangeInclusive<u16>>,
    /// The cipher of the data, if the user has chosen one.
    pub(crate) cipher: Option<CipherId>,
}

impl PerfArgs {
    pub(super) fn through_ssh(&self, destination: Destination) -> ThroughSsh {
        ThroughSsh {
            destination,
            ssh: SshOptions { family: self.family.family(), ..self.through.ssh.options() },
            remote_path: self.through.remote_path.clone(),
            bootstrap: self.through.bootstrap.clone(),
            ports: self.through.udp_ports.clone(),
            cipher: self.transport.cipher.map(|cipher| cipher.0),
        }
    }

    /// What a mesh needs to know.
    pub(super) fn mesh(&self, hosts: Hosts) -> MeshArgs {
        MeshArgs {
            hosts,
            seconds: self.load.time,
            ssh: self.through.ssh.options(),
            remote_path: self.through.remote_path.clone(),
            bootstrap: self.through.bootstrap.clone(),
            title: self.printing.title.clone(),
        }
    }

    /// Refuses options that mean nothing to a server that is started through ssh: it takes one connection, at a port
    /// and with a key that both ends agree on.
    pub(super) fn refuse_with_ssh(&self, host: &str) -> Result<()> {
        let refused = [
            ("-P", self.load.parallel > 1),
            ("--bidir", self.load.bidir),
            ("--latency", self.records.latency),
            ("--compete", self.load.compete.is_some()),
            ("--peer-key", self.load.peer_key.is_some()),
            ("-p", self.port.is_some()),
            ("-B", self.bind.is_some()),
            ("--dscp", self.dscp.is_some()),
            ("--wire-rate", self.transport.wire_rate.is_some()),
            ("--reuse-path", self.transport.reuse_path),
        ];
        match refused.into_iter().find(|(_, is_given)| *is_given) {
            Some((option, _)) => Err(values::needs_listening(option, host)),
            None => Ok(()),
        }
    }

    /// Refuses options of ssh with a server that is not started through it.
    pub(super) fn refuse_without_ssh(&self, host: &str) -> Result<()> {
        let through = &self.through;
        let own = [
            ("--remote-path", through.remote_path.is_some()),
            ("--udp-ports", through.udp_ports.is_some()),
        ];
        let of_ssh = through.ssh.given(Letters::None).into_iter();
        let options: Vec<_> = of_ssh.chain(own).chain(through.bootstrap.given()).collect();
        refuse_without_ssh(&options, format_args!("ssh://{host} in place of {host}"))
    }
}
