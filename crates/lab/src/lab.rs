//! A lab: namespaces, devices and the relay between them.

use crate::address;
use crate::host::HostProfile;
use crate::namespace::{self, Namespace};
use crate::relay::{Corruption, Handle, Relay, RelaySpec, Snapshot};
use crate::report::Report;
use crate::runtime::Claim;
use anyhow::{Context, Result, bail};
use hikyaku_link::{PathSpec, Schedule, Setting};
use hikyaku_tun::in_namespace;
use hikyaku_units::Rate;
use std::ffi::OsStr;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What a lab is to be like. The default is one server behind a perfect link.
#[derive(Clone, Debug)]
pub struct LabSpec {
    /// Its name, which no other living lab may have; `None` makes one up.
    pub name: Option<String>,
    /// The link between client and servers.
    pub path: PathSpec,
    /// One for each server: what its own line behind the common link adds.
    pub servers: Vec<Access>,
    /// Changes to the link over time.
    pub schedule: Schedule,
    /// The TCP settings at both ends.
    pub host: HostProfile,
    /// Where corrupted segments are hit.
    pub corruption: Corruption,
    /// The client is behind an address translator that gives its UDP flows other ports this often.
    pub rebind_every: Option<Duration>,
    /// Decides all chance.
    pub seed: u64,
}

impl Default for LabSpec {
    fn default() -> Self {
        Self {
            name: None,
            path: PathSpec::default(),
            servers: vec![Access::default()],
            schedule: Schedule::default(),
            host: HostProfile::default(),
            corruption: Corruption::default(),
            rebind_every: None,
            seed: 1,
        }
    }
}

/// A server's own line, the same both ways. The default adds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// What it passes; `None` is as much as comes.
    pub rate: Option<Rate>,
    /// How long each way takes, beside the common link.
    pub delay: Duration,
}

/// Where a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In the client's namespace.
    Client,
    /// In the namespace of this server, counted from 1.
    Server(u32),
}

impl Side {
    pub(crate) fn port(self) -> u32 {
        match self {
            Self::Client => 0,
            Self::Server(number) => number,
        }
    }
}

/// A running lab. Dropping it ends what runs in its namespaces and removes everything.
#[derive(Debug)]
pub struct Lab {
    // In this order: the relay must stop before its namespaces go, and the name is free last.
    relay: Handle,
    namespaces: Vec<Namespace>,
    claim: Claim,
    host: HostProfile,
}

/// Makes up names that this process has not used.
static NEXT_NAME: AtomicU32 = AtomicU32::new(0);

impl Lab {
    /// Makes the namespaces and the devices, and starts the relay. Needs root.
    pub fn up(spec: LabSpec) -> Result<Self> {
        check_privileges()?;
        let servers = u32::try_from(spec.servers.len()).unwrap_or(u32::MAX);
        if !(1..=254).contains(&servers) {
            bail!("a lab has 1 to 254 servers, not {servers}");
        }
        let made_up = || {
            let number = NEXT_NAME.fetch_add(1, Ordering::Relaxed);
            format!("run-{}-{number}", std::process::id())
        };
        let claim = Claim::new(&spec.name.unwrap_or_else(made_up))?;
        spec.host.allow_congestion_control()?;
        let mtu = |mtu: Option<u32>| mtu.unwrap_or(1500);
        let mtu = mtu(spec.path.up.mtu).max(mtu(spec.path.down.mtu));
        let mut namespaces = Vec::new();
        let mut ports = Vec::new();
        for port in 0..=servers {
            let name = namespace::name_of(claim.name(), port);
            let namespace = Namespace::create(&name, &spec.host)?;
            ports.push(namespace.connect(port, mtu, servers)?);
            namespaces.push(namespace);
        }
        let relay = RelaySpec {
            path: spec.path,
            access: spec.servers,
            schedule: spec.schedule,
            corruption: spec.corruption,
            rebind_every: spec.rebind_every,
            seed: spec.seed,
        };
        let relay = Handle::start(|mailbox| Relay::new(relay, ports, mailbox))?;
        Ok(Self { relay, namespaces, claim, host: spec.host })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// How many servers there are.
    pub fn servers(&self) -> u32 {
        self.namespaces.len() as u32 - 1
    }

    /// `program`, to be run at `side`, with the addresses in its environment.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn command(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        let namespace = &self.namespaces[side.port() as usize];
        let mut command = namespace::command(namespace.name(), program);
        command.envs(environment(self.servers()));
        command
    }

    /// The namespace of `side`, as a path that `setns` takes.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn namespace(&self, side: Side) -> PathBuf {
        self.namespaces[side.port() as usize].path()
    }

    /// Runs `work` on a thread inside the namespace of `side`. Sockets made there stay there.
    ///
    /// # Panics
    /// If there is no such server, or if `work` panics.
    pub fn within<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> std::io::Result<T> {
        in_namespace(&self.namespace(side), work)
    }

    /// Changes the link from now on.
    pub fn set(&self, settings: Vec<Setting>) -> Result<()> {
        self.relay.set(settings)
    }

    /// Starts the clock anew, and with it schedule, outages and counters. What is on its way is
    /// forgotten.
    pub fn restart(&self) -> Result<()> {
        self.relay.restart()
    }

    /// What the link has done so far.
    pub fn report(&self) -> Result<Report> {
        Ok(Report::new(self.name(), &self.host, &self.snapshot()?))
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.relay.snapshot()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.claim.socket()
    }

    /// Waits until a program listens at `side`, on TCP or UDP, or `patience` ends. Returns whether
    /// one does.
    pub fn wait_for_listener(&self, side: Side, patience: Duration) -> Result<bool> {
        let deadline = Instant::now() + patience;
        loop {
            if self.within(side, has_listener).context("cannot look at the sockets")? {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Tells programs where the others are.
pub(crate) fn environment(servers: u32) -> Vec<(String, String)> {
    let mut variables = vec![
        ("HIKYAKU_LAB_CLIENT".to_owned(), address::ipv4(0).to_string()),
        ("HIKYAKU_LAB_SERVER".to_owned(), address::ipv4(1).to_string()),
    ];
    for port in 1..=servers {
        let key = format!("HIKYAKU_LAB_SERVER_{port}");
        variables.push((key, address::ipv4(port).to_string()));
    }
    variables
}

/// Whether a TCP socket listens or a UDP socket is bound in this thread's namespace.
fn has_listener() -> std::io::Result<bool> {
    let table = |name: &str| fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    for name in ["tcp", "tcp6"] {
        let listens = |line: &str| line.split_whitespace().nth(3) == Some("0A");
        if table(name).unwrap_or_default().lines().skip(1).any(listens) {
            return Ok(true);
        }
    }
    Ok(["udp", "udp6"].iter().any(|name| table(name).unwrap_or_default().lines().count() > 1))
}

fn check_privileges() -> Result<()> {
    const CAP_NET_ADMIN: u64 = 1 << 12;
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    if held & CAP_NET_ADMIN == 0 || held & CAP_SYS_ADMIN == 0 {
        bail!(
            "the lab needs root, to make network namespaces and TUN devices: run it with sudo, or \
             as an ordinary user by\n  unshare -rnm sh -c 'mount -t tmpfs none /run && hikyaku lab \
             ...'"
        );
    }
    Ok(())
}
