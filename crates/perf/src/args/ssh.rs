//! A server that is started through ssh: its options, and those that mean nothing to it.

use super::{PerfArgs, values};
use crate::mesh::{Hosts, MeshArgs};
use anyhow::Result;
use clap::Args;
use hikyaku_console::refuse_without_ssh;
use hikyaku_reach::bootstrap::BootstrapArgs;
use hikyaku_reach::{Destination, Family as SshFamily, SshOptions, options};
use hikyaku_wire::CipherId;
use std::ffi::OsString;
use std::ops::RangeInclusive;

/// How a server is started through ssh.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Server through ssh (USER@HOST)")]
pub(super) struct SshArgs {
    /// Program in place of ssh
    #[arg(long = "ssh", value_name = "PROGRAM", conflicts_with = "server")]
    ssh_program: Option<OsString>,
    /// Option of ssh, as its -o takes it; may be given several times
    #[arg(long, value_name = "OPTION", conflicts_with = "server")]
    ssh_option: Vec<OsString>,
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
    pub(crate) program: Option<OsString>,
    pub(crate) options: Vec<OsString>,
    pub(crate) family: Option<SshFamily>,
    pub(crate) remote_path: Option<String>,
    pub(crate) bootstrap: BootstrapArgs,
    pub(crate) ports: RangeInclusive<u16>,
    /// The cipher of the data, if the user has chosen one.
    pub(crate) cipher: Option<CipherId>,
}

impl PerfArgs {
    pub(super) fn through_ssh(&self, destination: Destination) -> ThroughSsh {
        ThroughSsh {
            destination,
            program: self.ssh.ssh_program.clone(),
            options: self.ssh.ssh_option.clone(),
            family: match (self.version4, self.version6) {
                (true, _) => Some(SshFamily::V4),
                (_, true) => Some(SshFamily::V6),
                _ => None,
            },
            remote_path: self.ssh.remote_path.clone(),
            bootstrap: self.ssh.bootstrap.clone(),
            ports: self.ssh.udp_ports.clone().unwrap_or(options::UDP_PORTS),
            cipher: self.transport.cipher.map(|cipher| cipher.0),
        }
    }

    /// What a mesh needs to know.
    pub(super) fn mesh(&self, hosts: Hosts) -> MeshArgs {
        MeshArgs {
            hosts,
            seconds: self.load.time,
            ssh: SshOptions {
                program: self.ssh.ssh_program.clone(),
                options: self.ssh.ssh_option.clone(),
                ..SshOptions::default()
            },
            remote_path: self.ssh.remote_path.clone(),
            bootstrap: self.ssh.bootstrap.clone(),
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
        let options = [
            ("--ssh", self.ssh.ssh_program.is_some()),
            ("--ssh-option", !self.ssh.ssh_option.is_empty()),
            ("--remote-path", self.ssh.remote_path.is_some()),
            ("--udp-ports", self.ssh.udp_ports.is_some()),
        ];
        let options: Vec<_> = options.into_iter().chain(self.ssh.bootstrap.given()).collect();
        refuse_without_ssh(&options, format_args!("ssh://{host} in place of {host}"))
    }
}
