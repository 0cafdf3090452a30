//! What a command line says of the way to a far side, before the host is known. The settings of the host complete it.

use crate::bootstrap::{Asking, BootstrapArgs, Offer};
use crate::near::{Carriers, Way};
use crate::service::Service;
use crate::settings::Typed;
use crate::ssh::SshOptions;
use crate::tcp::{Decisions, Pipes};
use anyhow::Result;
use hikyaku_console::{Scope, Settings, misuse};
use hikyaku_units::DataSize;
use std::time::Duration;

/// How far sides are reached.
#[derive(Clone, Debug)]
pub struct WayPlan {
    /// Options of `ssh`. With `-v` the steps of the connection are printed.
    pub ssh: SshOptions,
    /// What the settings of a host complete.
    pub typed: Typed,
    /// The only carrier; `None` leaves the choice to the settings.
    pub carriers: Option<Carriers>,
    /// How many TCP connections carry the data, if TCP does.
    pub pipes: Pipes,
    /// Receives the decisions on their number, in common for all hosts.
    pub decisions: Decisions,
    /// The options for a far side without hikyaku.
    pub bootstrap: BootstrapArgs,
    /// Whether the user may be asked whether hikyaku is sent.
    pub asking: Asking,
}

impl Default for WayPlan {
    fn default() -> Self {
        Self {
            ssh: SshOptions::default(),
            typed: Typed::default(),
            carriers: None,
            pipes: Pipes::default(),
            decisions: Decisions::default(),
            bootstrap: BootstrapArgs::default(),
            asking: Asking::AtTerminal,
        }
    }
}

impl WayPlan {
    /// The way to a `service` at `host`. `memory` is that of this process; `scope` ends ssh while it logs in.
    ///
    /// # Errors
    ///
    /// A setting of the host is wrong, the program of `--far-binary` cannot be sent, or an option that holds for data over UDP
    /// only was typed, and UDP is not among the carriers.
    pub fn way(
        &self,
        (host, settings): (&str, &Settings),
        (service, memory): (Service, DataSize),
        scope: Scope,
    ) -> Result<Way> {
        let chosen = self.typed.clone().or_set(settings, host)?;
        let only_udp = self.typed.needs_udp();
        let carriers = match self.carriers.unwrap_or(chosen.carriers) {
            carriers if only_udp.is_empty() => carriers,
            Carriers::Auto | Carriers::Udp => Carriers::Udp,
            Carriers::NoUdp | Carriers::Tcp | Carriers::Ssh => {
                let only = only_udp.join(" and ");
                let text = format!("{only}: only UDP carries data so, and it may not carry these");
                return Err(misuse(text, format!("leave out {only}, or let UDP carry the data")));
            }
        };
        Ok(Way {
            service,
            ssh: SshOptions {
                silence: chosen.tuning.timeout.map(Duration::from_secs),
                ..self.ssh.clone()
            },
            remote_path: chosen.remote_path,
            offer: Offer { asking: self.asking, ..self.bootstrap.offer(settings, host)? },
            ports: chosen.ports,
            carriers,
            only_udp,
            pipes: self.pipes,
            decisions: self.decisions.clone(),
            tuning: chosen.tuning,
            memory,
            scope,
        })
    }
}
