//! The sites of a lab: names and addresses of their hosts.
//!
//! A site is a network of hosts behind a gateway. Its hosts have its name with a number from 1,
//! such as `tokyo1` and `tokyo2`; its gateway has the name itself. The name of a site ends in a
//! letter, so that host names are unambiguous.

use crate::address::{self, GATEWAY};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

pub(crate) mod pairs;

#[cfg(test)]
mod tests;

/// Limit on the number of sites: every pair has a link, and the relay checks all links for each
/// packet.
pub const SITES_MAX: usize = 32;
/// Limit on the hosts of a site.
pub const HOSTS_MAX: u32 = 64;
/// Longest name of a site, in bytes.
const NAME_BYTES_MAX: usize = 16;

/// A site: its name and its number of hosts.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Site {
    name: String,
    hosts: u32,
}

/// A host or gateway in a lab of sites.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Host {
    /// Index of its site, counted from 0.
    pub(crate) site: u32,
    pub(crate) number: Number,
}

/// A machine of a site.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Number {
    Gateway,
    /// Counted from 1.
    Host(u32),
}

impl Site {
    /// The site `name` with `hosts` hosts, at least one.
    pub fn new(name: &str, hosts: u32) -> Result<Self, String> {
        if !is_name(name) {
            return Err(format!(
                "'{name}' is not a site's name: use up to {NAME_BYTES_MAX} of a-z and 0-9, beginning and ending with a \
                 letter"
            ));
        }
        if !(1..=HOSTS_MAX).contains(&hosts) {
            return Err(format!("site '{name}' has 1 to {HOSTS_MAX} hosts, not {hosts}"));
        }
        Ok(Self { name: name.to_owned(), hosts })
    }

    /// The name of the site and of its gateway.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl FromStr for Site {
    type Err = String;
    /// Parses `tokyo:4`; `tokyo` alone has one host.
    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, hosts)) = text.split_once(':') else { return Self::new(text, 1) };
        let hosts = hosts.parse().map_err(|_| format!("'{hosts}' is not a number of hosts"))?;
        Self::new(name, hosts)
    }
}

/// Whether `text` is a valid name of a site.
fn is_name(text: &str) -> bool {
    let is_letter = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_lowercase);
    let bytes = text.as_bytes();
    let valid = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.len() <= NAME_BYTES_MAX
        && is_letter(bytes.first())
        && is_letter(bytes.last())
        && bytes.iter().all(valid)
}

/// Whether `text` is a valid name of a host or gateway.
pub(crate) fn is_host_name(text: &str) -> bool {
    is_name(text.trim_end_matches(|c: char| c.is_ascii_digit()))
}

/// All sites of a lab.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Layout {
    sites: Vec<Site>,
}

impl Layout {
    /// Checks the sites: at least two, each with a different name.
    pub fn new(sites: Vec<Site>) -> Result<Self, String> {
        if !(2..=SITES_MAX).contains(&sites.len()) {
            return Err(format!("a lab of sites has 2 to {SITES_MAX}, not {}", sites.len()));
        }
        for (index, site) in sites.iter().enumerate() {
            if sites[..index].iter().any(|other| other.name == site.name) {
                return Err(format!("there are two sites '{}'", site.name));
            }
        }
        Ok(Self { sites })
    }

    /// Number of sites.
    pub(crate) fn count(&self) -> u32 {
        self.sites.len() as u32
    }

    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The gateway of each site.
    pub(crate) fn gateways(&self) -> impl Iterator<Item = Host> + '_ {
        (0..self.count()).map(Host::gateway)
    }

    /// All hosts, site by site, without the gateways.
    pub fn hosts(&self) -> impl Iterator<Item = Host> + '_ {
        self.sites.iter().zip(0..).flat_map(|(site, index)| hosts_of(index, site.hosts))
    }

    /// The hosts of a site.
    pub(crate) fn hosts_of(&self, site: u32) -> impl Iterator<Item = Host> + use<> {
        hosts_of(site, self.sites[site as usize].hosts)
    }

    /// Finds a host or gateway by name.
    pub fn find(&self, name: &str) -> Option<Host> {
        let mut all = self.gateways().chain(self.hosts());
        all.find(|host| self.name(*host) == name)
    }

    /// The name of a host or gateway.
    pub fn name(&self, host: Host) -> String {
        let site = &self.sites[host.site as usize].name;
        match host.number {
            Number::Gateway => site.clone(),
            Number::Host(number) => format!("{site}{number}"),
        }
    }

    /// The indices of the two sites of a pair.
    pub(crate) fn pair(&self, names: &PairName) -> Result<(u32, u32), String> {
        let find = |name: &str| {
            let found = self.sites.iter().zip(0..).find(|(site, _)| site.name == name);
            found.map(|(_, index)| index).ok_or_else(|| format!("there is no site '{name}'"))
        };
        Ok((find(&names.from)?, find(&names.to)?))
    }

    /// A hosts file with the names and addresses of all hosts and gateways.
    pub(crate) fn hosts_file(&self) -> String {
        let mut text = String::from("127.0.0.1 localhost\n::1 localhost\n");
        for host in self.hosts().chain(self.gateways()) {
            let name = self.name(host);
            text.push_str(&format!("{} {name}\n", host.ipv4()));
        }
        text
    }

    /// Environment variables for programs: the lab's name, the names of its hosts, and their
    /// addresses.
    pub(crate) fn environment(&self, lab: &str) -> Vec<(String, String)> {
        let names: Vec<String> = self.hosts().map(|host| self.name(host)).collect();
        let mut variables = vec![
            ("HIKYAKU_LAB".to_owned(), lab.to_owned()),
            ("HIKYAKU_LAB_HOSTS".to_owned(), names.join(" ")),
        ];
        for host in self.hosts() {
            let key = format!("HIKYAKU_LAB_{}", self.name(host).to_uppercase());
            variables.push((key, host.ipv4().to_string()));
        }
        variables
    }
}

fn hosts_of(site: u32, count: u32) -> impl Iterator<Item = Host> {
    (1..=count).map(move |number| Host { site, number: Number::Host(number) })
}

impl Host {
    /// The gateway of a site.
    pub(crate) fn gateway(site: u32) -> Self {
        Self { site, number: Number::Gateway }
    }

    /// Its IPv4 address.
    pub fn ipv4(self) -> Ipv4Addr {
        address::host_ipv4(self.site, self.in_network())
    }

    /// Its IPv6 address.
    pub fn ipv6(self) -> Ipv6Addr {
        address::host_ipv6(self.site, self.in_network())
    }

    fn in_network(self) -> u32 {
        match self.number {
            Number::Gateway => GATEWAY,
            Number::Host(number) => number,
        }
    }
}

/// Two sites, as in `tokyo-nict`. "Up" is the direction from the first to the second.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct PairName {
    pub(crate) from: String,
    pub(crate) to: String,
}

impl FromStr for PairName {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('-') {
            Some((from, to)) if is_name(from) && is_name(to) && from != to => {
                Ok(Self { from: from.to_owned(), to: to.to_owned() })
            }
            _ => Err(format!("'{text}' is not two sites, such as tokyo-nict")),
        }
    }
}

impl fmt::Display for PairName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}
