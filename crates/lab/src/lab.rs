//! A lab of a client and servers: namespaces, devices and the relay between them.

use crate::address;
use crate::host::HostProfile;
use crate::namespace::{self, Namespace};
use crate::relay::{Corruption, Handle, Relay, RelaySpec, Snapshot, Target, Topology};
use crate::report::Report;
use crate::running::{Change, Running, Status};
use crate::runtime::Claim;
use crate::trouble;
use anyhow::Result;
use hikyaku_link::{PathSpec, Schedule, Setting};
use hikyaku_tun::in_namespace;
use hikyaku_units::Rate;
use std::ffi::OsStr;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Description of a lab. The default has one server behind a link without delay, loss or rate
/// limit.
#[derive(Clone, Debug)]
pub struct LabSpec {
    /// The lab's name, unique among running labs; `None` generates one.
    pub name: Option<String>,
    /// The common link between the client and the servers.
    pub path: PathSpec,
    /// The access link of each server, behind the common link.
    pub servers: Vec<Access>,
    /// Changes of the common link over time.
    pub schedule: Schedule,
    /// TCP settings of all hosts.
    pub host: HostProfile,
    /// Which part of a segment corruption changes.
    pub corruption: Corruption,
    /// Interval at which a NAT at the client's end gives its UDP flows new ports; `None` for no
    /// NAT.
    pub rebind_every: Option<Duration>,
    /// Seed of all random decisions.
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

/// A server's access link, the same in both directions. The default has no rate limit and no delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// Rate limit; `None` means unlimited.
    pub rate: Option<Rate>,
    /// One-way delay, in addition to that of the common link.
    pub delay: Duration,
}

/// The host at which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// In the client's namespace.
    Client,
    /// In the namespace of the server with this number, counted from 1.
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

/// A running lab. Dropping it ends all programs in its namespaces and removes it.
#[derive(Debug)]
pub struct Lab {
    // Drop order: the relay stops before its namespaces are removed, and the name is released last.
    relay: Handle,
    namespaces: Vec<Namespace>,
    claim: Claim,
    host: HostProfile,
}

impl Lab {
    /// Creates the namespaces and devices and starts the relay. Needs root.
    pub fn up(spec: LabSpec) -> Result<Self> {
        check_privileges()?;
        let servers = u32::try_from(spec.servers.len()).unwrap_or(u32::MAX);
        if !(1..=254).contains(&servers) {
            let text = format!("a lab has 1 to 254 servers, not {servers}");
            return Err(trouble::of(ErrorKind::InvalidInput, text));
        }
        let claim = Claim::new(&spec.name.unwrap_or_else(made_up_name))?;
        spec.host.allow_congestion_control()?;
        let mtu = largest_mtu(&spec.path);
        let mut namespaces = Vec::new();
        let mut ports = Vec::new();
        for port in 0..=servers {
            let name = namespace::name_of(claim.name(), port);
            let namespace = Namespace::create(&name, &spec.host)?;
            ports.push(namespace.connect(port, mtu, servers)?);
            namespaces.push(namespace);
        }
        let relay = RelaySpec {
            topology: Topology::Star { access: spec.servers },
            paths: vec![spec.path],
            schedule: spec.schedule,
            corruption: spec.corruption,
            rebind_every: spec.rebind_every,
            seed: spec.seed,
        };
        let relay = Handle::start(|mailbox| Relay::new(relay, ports, mailbox))?;
        Ok(Self { relay, namespaces, claim, host: spec.host })
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        self.namespaces.len() as u32 - 1
    }

    /// A command that runs `program` at `side`, with the hosts' addresses in its environment.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn command(&self, side: Side, program: impl AsRef<OsStr>) -> Command {
        let namespace = &self.namespaces[side.port() as usize];
        let mut command = namespace.command(program);
        command.envs(environment(self.servers()));
        command
    }

    /// The path of the namespace of `side`, for `setns`.
    ///
    /// # Panics
    /// If there is no such server.
    pub fn namespace(&self, side: Side) -> PathBuf {
        self.namespaces[side.port() as usize].path()
    }

    /// Runs `work` on a thread in the namespace of `side`. Sockets created there stay in that
    /// namespace.
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

    /// Changes the common link from now on.
    pub fn set(&self, settings: Vec<Setting>) -> Result<()> {
        self.relay.set(settings.into_iter().map(|setting| (Target::All, setting)).collect())
    }

    /// Restarts the clock, and with it the schedule, outages and counters. Packets in flight are
    /// discarded.
    pub fn restart(&self) -> Result<()> {
        self.relay.restart()
    }

    /// Counters of the link since the clock was started.
    pub fn report(&self) -> Result<Report> {
        Ok(Report::new(self.name(), &self.host, &self.snapshot()?))
    }

    pub(crate) fn snapshot(&self) -> Result<Snapshot> {
        self.relay.snapshot()
    }

    /// Waits until a program listens on TCP or UDP at `side`, for at most `patience`. Returns
    /// whether one does.
    pub fn wait_for_listener(&self, side: Side, patience: Duration) -> Result<bool> {
        let deadline = Instant::now() + patience;
        loop {
            if self.namespaces[side.port() as usize].has_listener()? {
                return Ok(true);
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            sleep(Duration::from_millis(20));
        }
    }
}

impl Running for Lab {
    fn socket(&self) -> PathBuf {
        self.claim.socket()
    }

    fn restart(&self) -> Result<()> {
        Self::restart(self)
    }

    fn status(&self) -> Result<Status> {
        Ok(Status::Ends(Box::new(self.report()?)))
    }

    fn change(&self, changes: &[Change]) -> Result<()> {
        if let Some(pair) = changes.iter().find_map(|change| change.pair.as_ref()) {
            let text = format!("this lab has a client and servers, and no sites such as {pair}");
            return Err(trouble::of(ErrorKind::InvalidInput, text));
        }
        let settings: Result<Vec<_>> = changes.iter().map(Change::setting).collect();
        self.set(settings?)
    }

    fn first(&self) -> &Namespace {
        &self.namespaces[0]
    }

    fn servers(&self) -> Vec<&Namespace> {
        vec![&self.namespaces[1]]
    }

    fn environment(&self) -> Vec<(String, String)> {
        environment(Self::servers(self))
    }
}

/// A generated name that this process has not used yet.
pub(crate) fn made_up_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("run-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

/// The MTU of the devices, chosen so that the link's MTU is the effective limit.
pub(crate) fn largest_mtu(path: &PathSpec) -> u32 {
    let mtu = |mtu: Option<u32>| mtu.unwrap_or(1500);
    mtu(path.up.mtu).max(mtu(path.down.mtu))
}

/// Environment variables with the addresses of all hosts.
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

pub(crate) fn check_privileges() -> Result<()> {
    const CAP_NET_ADMIN: u64 = 1 << 12;
    const CAP_SYS_ADMIN: u64 = 1 << 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let held = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    if held & CAP_NET_ADMIN == 0 || held & CAP_SYS_ADMIN == 0 {
        return Err(trouble::with_remedy(
            ErrorKind::PermissionDenied,
            "the lab needs root, to make network namespaces and TUN devices",
            "the same command as root (sudo), or as an ordinary user: unshare -rnm sh -c 'mount -t tmpfs none \
             /run && hikyaku lab ...'",
        ));
    }
    Ok(())
}
