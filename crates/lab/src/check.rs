//! Measures the links of a lab of sites between hosts and compares them with their settings.
//!
//! Each direction of each link is measured in turn. Single datagrams show the one-way delay: the
//! receiving kernel's timestamp less the time of sending. A flood at somewhat more than the link's
//! rate shows the rate, from the times of arrival, and the loss. Every datagram that does not
//! arrive has to appear in the link's counters: the lab itself must not lose any.

mod flow;
mod judge;

pub use judge::WayCheck;

use crate::control::{Answer, Request, ask};
use crate::report::DirectionReport;
use crate::running::Status;
use crate::site::{Host, Layout, Number, pairs};
use crate::sites::{SiteLab, SitesReport};
use crate::{namespace, runtime, trouble};
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// The result of measuring a lab of sites.
#[derive(Clone, Debug)]
pub struct Check {
    /// Both directions of every link.
    pub ways: Vec<WayCheck>,
    /// Reasons why the measurement is not valid, from the lab's own report.
    pub problems: Vec<String>,
}

impl Check {
    /// Whether every link behaves as set and the measurement is valid.
    pub fn is_as_asked(&self) -> bool {
        self.problems.is_empty() && self.ways.iter().all(WayCheck::is_as_asked)
    }
}

/// The lab that is measured.
struct MeasuredLab<'a> {
    layout: &'a Layout,
    namespace: &'a dyn Fn(Host) -> PathBuf,
    report: &'a dyn Fn() -> Result<SitesReport>,
}

/// Called with each direction as soon as it has been measured.
type Show<'a> = &'a mut dyn FnMut(&WayCheck) -> Result<()>;

/// Measures both directions of every link of `lab`, each for about `duration`. Nothing else may send
/// traffic in the lab meanwhile.
pub fn check(lab: &SiteLab, duration: Duration) -> Result<Check> {
    let namespace = |host| lab.namespace(host);
    let report = || lab.report();
    let place = MeasuredLab { layout: lab.layout(), namespace: &namespace, report: &report };
    place.check(duration, &mut |_| Ok(()))
}

/// The same for the lab `name`, which runs in another process.
pub(crate) fn check_named(name: &str, duration: Duration, show: Show<'_>) -> Result<Check> {
    let socket = runtime::socket_of(name)?;
    let Some(layout) = runtime::layout_of(name)? else {
        let text = format!("lab '{name}' has no sites; 'lab check' measures labs of sites only");
        return Err(trouble::of(ErrorKind::InvalidInput, text));
    };
    let namespace = |host| {
        let name = namespace::name_of_host(name, &layout.name(host));
        namespace::path_of(&name)
    };
    let report = || match ask(&socket, &Request::Status)? {
        Answer::Status(Status::Sites(report)) => Ok(*report),
        _ => bail!("the lab sent an unexpected answer"),
    };
    MeasuredLab { layout: &layout, namespace: &namespace, report: &report }.check(duration, show)
}

impl MeasuredLab<'_> {
    fn check(&self, duration: Duration, show: Show<'_>) -> Result<Check> {
        let mut ways = Vec::new();
        for (low, high) in pairs::all(self.layout.count()) {
            for (from, to) in [(low, high), (high, low)] {
                let way = self.way(from, to, duration)?;
                show(&way)?;
                ways.push(way);
            }
        }
        Ok(Check { ways, problems: (self.report)()?.problems })
    }

    /// Measures one direction, from the first host of site `from` to the first host of site `to`.
    fn way(&self, from: u32, to: u32, duration: Duration) -> Result<WayCheck> {
        let hosts = [from, to].map(|site| Host { site, number: Number::Host(1) });
        let names = hosts.map(|host| self.layout.name(host));
        let places = hosts.map(self.namespace);
        let report = || -> Result<DirectionReport> {
            let link = pairs::index(self.layout.count(), from, to);
            let link = (self.report)()?.links.swap_remove(link);
            Ok(if from < to { link.up } else { link.down })
        };
        let before = report()?;
        let flow = flow::run([&places[0], &places[1]], hosts[1].ipv4(), &before, duration)
            .with_context(|| format!("cannot measure from {} to {}", names[0], names[1]))?;
        Ok(WayCheck::new(names, &flow, &before, &report()?))
    }
}
