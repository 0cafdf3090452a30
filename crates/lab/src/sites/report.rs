//! The report of a lab of sites.

use crate::host::HostProfile;
use crate::relay::Snapshot;
use crate::report::{
    DirectionReport, HostReport, RelayReport, directions, print_problems, problems,
};
use crate::site::{Layout, pairs};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The state of a lab of sites. All counters grow from the start of its clock, so that two reports
/// can be subtracted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SitesReport {
    /// The lab's name.
    pub lab: String,
    /// Seconds since the lab's clock was started.
    pub seconds: f64,
    /// Whether the relay kept up: no packet too late, none dropped by the lab itself.
    pub valid: bool,
    /// The reasons, if it did not.
    pub problems: Vec<String>,
    /// One entry for each pair of sites.
    pub links: Vec<LinkReport>,
    /// Packets dropped by the networks of the sites, not by the links.
    pub lan_drops: u64,
    /// Health of the relay.
    pub relay: RelayReport,
    /// The hosts' settings.
    pub host: HostReport,
}

/// The link between two sites.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LinkReport {
    /// The site at which the "up" direction starts.
    pub from: String,
    /// The site at which the direction "up" of the link ends.
    pub to: String,
    /// From the first site to the second.
    pub up: DirectionReport,
    /// From the second site to the first.
    pub down: DirectionReport,
    /// Number of flows of TCP cross traffic that have started.
    pub rivals: u32,
}

/// The inputs of a report.
pub(super) struct State<'a> {
    pub(super) lab: &'a str,
    pub(super) layout: &'a Layout,
    pub(super) host: &'a HostProfile,
    /// Number of cross-traffic flows that have started on each link.
    pub(super) rivals: Vec<u32>,
    pub(super) lan_drops: u64,
    pub(super) snapshot: &'a Snapshot,
}

impl SitesReport {
    pub(super) fn new(state: &State<'_>) -> Self {
        let State { lab, layout, host, rivals, lan_drops, snapshot } = state;
        let mut problems = problems(snapshot);
        if *lan_drops > 0 {
            problems.push(format!("the networks of the sites dropped {lan_drops} packets"));
        }
        let name = |site: u32| layout.sites()[site as usize].name().to_owned();
        let states = snapshot.paths.iter().zip(rivals);
        let links = pairs::all(layout.count()).zip(states).map(|((from, to), (state, rivals))| {
            let (up, down) = directions(state);
            LinkReport { from: name(from), to: name(to), up, down, rivals: *rivals }
        });
        Self {
            lab: (*lab).to_owned(),
            seconds: snapshot.at.as_secs_f64(),
            valid: problems.is_empty(),
            problems,
            links: links.collect(),
            lan_drops: *lan_drops,
            relay: RelayReport::new(snapshot),
            host: HostReport::new(host),
        }
    }
}

impl fmt::Display for SitesReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "lab {}, {:.1} s", self.lab, self.seconds)?;
        for LinkReport { from, to, up, down, .. } in &self.links {
            for (from, to, way) in [(from, to, up), (to, from, down)] {
                // Idle links are left out, because a lab may have hundreds of links.
                if way.segments > 0 {
                    writeln!(f, "  {from} -> {to}  {way}")?;
                }
            }
        }
        self.relay.print(self.seconds, f)?;
        print_problems(&self.problems, f)
    }
}
