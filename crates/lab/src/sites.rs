//! A lab of sites: networks of hosts behind gateways, with a link between every two gateways.

mod network;
mod report;
mod rivals;

pub use report::{LinkReport, SitesReport};
pub use rivals::RivalSpec;

use crate::host::HostProfile;
use crate::lab::{check_privileges, largest_mtu, made_up_name};
use crate::namespace::Namespace;
use crate::relay::{Corruption, Handle, Relay, RelaySpec, Target, Topology};
use crate::running::{Change, Running, Status};
use crate::runtime::Claim;
use crate::site::{Host, Layout, PairName, pairs};
use crate::trouble;
use anyhow::{Context, Result};
use hikyaku_link::{PathSpec, Schedule, Setting};
use hikyaku_tun::in_namespace;
use hikyaku_units::Instant;
use network::Network;
use report::State;
use rivals::Rivals;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Description of a lab of sites.
#[derive(Clone, Debug)]
pub struct SitesSpec {
    /// The lab's name, unique among running labs; `None` generates one.
    pub name: Option<String>,
    /// The sites and their hosts.
    pub layout: Layout,
    /// The links: one for each pair of sites, in the order 0-1, 0-2, .., 1-2 and so on.
    pub links: Vec<PathSpec>,
    /// TCP cross traffic of each link, if any.
    pub rivals: Vec<Option<RivalFlows>>,
    /// Changes of all links over time.
    pub schedule: Schedule,
    /// TCP settings of all hosts.
    pub host: HostProfile,
    /// Which part of a segment corruption changes.
    pub corruption: Corruption,
    /// Seed of all random decisions.
    pub seed: u64,
}

impl SitesSpec {
    /// Sites with the same link between every two of them.
    pub fn new(layout: Layout, link: PathSpec) -> Self {
        let count = pairs::count(layout.count());
        Self {
            name: None,
            layout,
            links: vec![link; count],
            rivals: vec![None; count],
            schedule: Schedule::default(),
            host: HostProfile::default(),
            corruption: Corruption::default(),
            seed: 1,
        }
    }

    /// Changes a setting of the link between two sites.
    pub fn set(&mut self, pair: &PairName, setting: Setting) -> Result<(), String> {
        let (index, setting) = at_pair(&self.layout, pair, setting)?;
        setting.apply(&mut self.links[index], Instant::ZERO);
        Ok(())
    }

    /// Adds TCP cross traffic to every link, from the site with the lower index.
    pub fn set_rivals(&mut self, spec: RivalSpec) {
        let all = pairs::all(self.layout.count());
        self.rivals = all.map(|(from, to)| Some(RivalFlows { from, to, spec })).collect();
    }

    /// Adds TCP cross traffic to the link between two sites, from the first to the second.
    pub fn set_rivals_of(&mut self, pair: &PairName, spec: RivalSpec) -> Result<(), String> {
        let (from, to) = self.layout.pair(pair)?;
        self.rivals[pairs::index(self.layout.count(), from, to)] =
            Some(RivalFlows { from, to, spec });
        Ok(())
    }
}

/// TCP cross traffic on a link, with its direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RivalFlows {
    from: u32,
    to: u32,
    spec: RivalSpec,
}

/// The index of the link between two sites, and the setting with "up" as the direction from the
/// site with the lower index.
fn at_pair(layout: &Layout, pair: &PairName, setting: Setting) -> Result<(usize, Setting), String> {
    let (from, to) = layout.pair(pair)?;
    let setting = if from < to { setting } else { setting.mirrored() };
    Ok((pairs::index(layout.count(), from, to), setting))
}

/// A running lab of sites. Dropping it ends all programs in its namespaces and removes it.
#[derive(Debug)]
pub struct SiteLab {
    // Drop order: users of the relay end first, the relay stops before its namespaces are removed,
    // and the name is released last.
    rivals: Mutex<Vec<Option<Rivals>>>,
    rival_flows: Vec<Option<RivalFlows>>,
    relay: Handle,
    network: Network,
    claim: Claim,
    layout: Layout,
    host: HostProfile,
    /// Packets that the sites' networks had dropped when the clock was started.
    dropped_before: AtomicU64,
}

impl SiteLab {
    /// Creates the namespaces and devices and starts the relay. Needs root.
    pub fn up(spec: SitesSpec) -> Result<Self> {
        check_privileges()?;
        let claim = Claim::new(&spec.name.unwrap_or_else(made_up_name))?;
        spec.host.allow_congestion_control()?;
        claim.write_layout(&spec.layout)?;
        let mtu = spec.links.iter().map(largest_mtu).max().unwrap_or(1500);
        let (network, ports) = Network::up(claim.name(), &spec.layout, &spec.host, mtu)?;
        let relay = RelaySpec {
            topology: Topology::Mesh { sites: spec.layout.count() },
            paths: spec.links,
            schedule: spec.schedule,
            corruption: spec.corruption,
            rebind_every: None,
            seed: spec.seed,
        };
        let relay = Handle::start(|mailbox| Relay::new(relay, ports, mailbox))?;
        let dropped_before = AtomicU64::new(network.dropped());
        let lab = Self {
            rivals: Mutex::default(),
            rival_flows: spec.rivals,
            relay,
            network,
            claim,
            layout: spec.layout,
            host: spec.host,
            dropped_before,
        };
        lab.begin_rivals()?;
        Ok(lab)
    }

    /// Starts the TCP cross traffic anew.
    fn begin_rivals(&self) -> Result<()> {
        let mut rivals = self.rivals.lock().unwrap_or_else(PoisonError::into_inner);
        rivals.clear();
        for flows in &self.rival_flows {
            let begin = |flows: &RivalFlows| {
                let gateways = [flows.from, flows.to].map(Host::gateway);
                let places = gateways.map(|gateway| self.namespace(gateway));
                Rivals::start(places, gateways[1].ipv4(), flows.spec)
            };
            let begun = flows.as_ref().map(begin).transpose();
            rivals.push(begun.context("cannot start the TCP cross traffic")?);
        }
        Ok(())
    }

    /// The lab's name.
    pub fn name(&self) -> &str {
        self.claim.name()
    }

    /// Its sites and hosts.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// A command that runs `program` at `host`, with the hosts' addresses in its environment.
    ///
    /// # Panics
    /// If `host` is not of this lab's layout.
    pub fn command(&self, host: Host, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.network.at(host).command(program);
        command.envs(self.environment());
        command
    }

    /// The path of the namespace of `host`, for `setns`.
    ///
    /// # Panics
    /// If `host` is not of this lab's layout.
    pub fn namespace(&self, host: Host) -> PathBuf {
        self.network.at(host).path()
    }

    /// Runs `work` on a thread in the namespace of `host`. Sockets created there stay in that
    /// namespace.
    ///
    /// # Panics
    /// If `host` is not of this lab's layout, or if `work` panics.
    pub fn within<T: Send>(
        &self,
        host: Host,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> std::io::Result<T> {
        in_namespace(&self.namespace(host), work)
    }

    /// Restarts the clock, and with it the schedule, outages and counters. Packets in flight are
    /// discarded.
    pub fn restart(&self) -> Result<()> {
        self.dropped_before.store(self.network.dropped(), Ordering::Relaxed);
        self.relay.restart()?;
        self.begin_rivals()
    }

    /// Counters of the links since the clock was started.
    pub fn report(&self) -> Result<SitesReport> {
        let before = self.dropped_before.load(Ordering::Relaxed);
        let rivals = self.rivals.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = rivals.iter().map(|rivals| rivals.as_ref().map_or(0, Rivals::begun));
        let state = State {
            lab: self.name(),
            layout: &self.layout,
            host: &self.host,
            rivals: begun.collect(),
            lan_drops: self.network.dropped().saturating_sub(before),
            snapshot: &self.relay.snapshot()?,
        };
        Ok(SitesReport::new(&state))
    }
}

impl Running for SiteLab {
    fn socket(&self) -> PathBuf {
        self.claim.socket()
    }

    fn restart(&self) -> Result<()> {
        Self::restart(self)
    }

    fn status(&self) -> Result<Status> {
        Ok(Status::Sites(Box::new(self.report()?)))
    }

    fn change(&self, changes: &[Change]) -> Result<()> {
        let change = |change: &Change| {
            let setting = change.setting()?;
            let Some(pair) = &change.pair else { return Ok((Target::All, setting)) };
            let (index, setting) = at_pair(&self.layout, pair, setting)
                .map_err(|text| trouble::of(ErrorKind::NotFound, text))?;
            Ok((Target::Path(index), setting))
        };
        self.relay.set(changes.iter().map(change).collect::<Result<_>>()?)
    }

    fn first(&self) -> &Namespace {
        &self.network.hosts()[0]
    }

    fn servers(&self) -> Vec<&Namespace> {
        self.network.hosts()[1..].iter().collect()
    }

    fn environment(&self) -> Vec<(String, String)> {
        self.layout.environment(self.name())
    }
}
