//! The hosts that a command about keys names, and work on several of them at the same time.

use super::login::Prompts;
use anyhow::Result;
use hikyaku_console::{ExitCode, Noise, Settings, misuse, print};
use hikyaku_reach::dial::{Address, PORT};
use hikyaku_reach::{Destination, for_each_host};
use hikyaku_units::counted;
use std::num::NonZeroU16;

/// A host with a daemon.
#[derive(Clone, Debug)]
pub(super) struct Host {
    /// Where ssh logs in.
    pub(super) login: Destination,
    /// Where its daemon listens.
    pub(super) daemon: Address,
}

/// The hosts of `names`: clusters of the settings, or `[USER@]HOST[:PORT]` with the port of the daemon. `port` is that of all
/// daemons, if it is given.
///
/// # Errors
///
/// A name is neither a cluster nor a host.
pub(super) fn named(
    names: &[String],
    port: Option<NonZeroU16>,
    settings: &Settings,
) -> Result<Vec<Host>> {
    let mut all = Vec::new();
    for name in names {
        match settings.cluster(name) {
            Some(cluster) => {
                let port = port.or(cluster.port).map_or(PORT, Into::into);
                for host in &cluster.hosts {
                    let login = Destination { user: None, host: host.clone(), port: None };
                    all.push(Host { login, daemon: Address { host: host.clone(), port } });
                }
            }
            None => all.push(one(name, port).map_err(|_| {
                let text = format!("'{name}' is neither a cluster of the settings nor a host");
                misuse(text, "[USER@]HOST or [USER@]HOST:PORT, with the port of its daemon")
            })?),
        }
    }
    Ok(all)
}

fn one(name: &str, port: Option<NonZeroU16>) -> Result<Host> {
    let (user, host) = match name.rsplit_once('@') {
        Some((user, host)) => (format!("{user}@"), host),
        None => (String::new(), name),
    };
    let mut daemon: Address = host.parse()?;
    daemon.port = port.map_or(daemon.port, Into::into);
    // The port in the name is that of the daemon, not that of ssh.
    Ok(Host { login: Destination::parse(format!("{user}{}", daemon.host).as_bytes())?, daemon })
}

/// Does `work` for all hosts, eight at a time, and prints what it returns in the order of the hosts.
///
/// # Errors
///
/// The error of the only host, or the number of hosts that failed. Their errors have been printed.
pub(super) fn each(
    hosts: &[Host],
    work: impl Fn(&Host, Prompts) -> Result<String> + Sync,
) -> Result<()> {
    let prompts = if hosts.len() > 1 { Prompts::Refused } else { Prompts::Allowed };
    let mut codes = Vec::new();
    for result in for_each_host(hosts, |host| work(host, prompts)) {
        match result {
            Ok(_) if Noise::chosen() == Noise::Quiet => {}
            Ok(text) => print(text)?,
            Err(error) if hosts.len() == 1 => return Err(error),
            Err(error) => {
                let failure = crate::failure(&error);
                codes.push(failure.code());
                failure.print();
            }
        }
    }
    match codes.len() {
        0 => Ok(()),
        failed => {
            let text = format!("{} of {} failed", failed, counted(hosts.len(), "host"));
            Err(ExitCode::of_pieces(codes).error(text))
        }
    }
}
