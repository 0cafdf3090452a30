//! The namespaces of a lab of sites and the connections between them. Each site has a bridge in its
//! gateway's namespace, with a veth pair to each host. The gateway forwards packets for other sites
//! to its TUN device, from which the relay reads them.

use crate::address::GATEWAY;
use crate::host::{HostProfile, forward_here};
use crate::namespace::{self, DEVICE, Namespace};
use crate::site::{Host, Layout, Number};
use anyhow::{Context, Result};
use hikyaku_tun::{DeviceTable, Tun, in_namespace};
use std::fmt::Write;
use std::path::Path;

/// Name of the bridge in a gateway.
const BRIDGE: &str = "lan0";
/// Name of the network device of a host.
const HOST_DEVICE: &str = "eth0";

/// All namespaces of a lab of sites.
#[derive(Debug)]
pub(super) struct Network {
    gateways: Vec<Namespace>,
    /// In the order of [`Layout::hosts`].
    hosts: Vec<Namespace>,
    layout: Layout,
    /// The device counters of all namespaces.
    tables: Vec<DeviceTable>,
}

impl Network {
    /// Creates all namespaces. Returns the TUN devices of the gateways, in the order of the sites.
    pub(super) fn up(
        lab: &str,
        layout: &Layout,
        profile: &HostProfile,
        mtu: u32,
    ) -> Result<(Self, Vec<Tun>)> {
        let mut network = Self {
            gateways: Vec::new(),
            hosts: Vec::new(),
            layout: layout.clone(),
            tables: Vec::new(),
        };
        let names = layout.hosts_file();
        let create = |host: Host| {
            let name = namespace::name_of_host(lab, &layout.name(host));
            let namespace = Namespace::create(&name, profile)?;
            namespace.write_hosts(&names)?;
            Ok::<_, anyhow::Error>(namespace)
        };
        for host in layout.hosts() {
            network.hosts.push(create(host)?);
        }
        let lines =
            Lines { mtu, has_ipv6: mtu >= 1280 && Path::new("/proc/net/if_inet6").exists() };
        let mut ports = Vec::new();
        for gateway in layout.gateways() {
            let namespace = create(gateway)?;
            in_namespace(&namespace.path(), forward_here)
                .with_context(|| format!("cannot enable forwarding in {}", namespace.name()))?;
            ports.push(namespace.device()?);
            let hosts = layout.hosts_of(gateway.site).map(|host| (host, network.at(host).name()));
            namespace.configure(&lines.of_gateway(gateway, hosts))?;
            network.gateways.push(namespace);
        }
        for host in layout.hosts() {
            network.at(host).configure(&lines.of_host(host))?;
        }
        let all = network.hosts.iter().chain(&network.gateways);
        let tables = all.map(|namespace| DeviceTable::open(&namespace.path()));
        network.tables =
            tables.collect::<Result<_, _>>().context("cannot open the devices' counters")?;
        Ok((network, ports))
    }

    /// Number of packets dropped by the networks of the sites, not by the links.
    pub(super) fn dropped(&self) -> u64 {
        self.tables.iter().map(|table| table.dropped(DEVICE).unwrap_or_default()).sum()
    }

    /// The namespace of a host or gateway.
    pub(super) fn at(&self, host: Host) -> &Namespace {
        match host.number {
            Number::Gateway => &self.gateways[host.site as usize],
            Number::Host(number) => {
                let before = (0..host.site).map(|site| self.layout.hosts_of(site).count());
                &self.hosts[before.sum::<usize>() + number as usize - 1]
            }
        }
    }

    /// The namespaces of the hosts, site by site.
    pub(super) fn hosts(&self) -> &[Namespace] {
        &self.hosts
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // All namespaces at the same time: otherwise programs that end slowly would be awaited one
        // after the other.
        let all = self.hosts.iter().chain(&self.gateways);
        namespace::end(&all.map(Namespace::name).collect::<Vec<_>>());
    }
}

/// Builds scripts for `ip` in a namespace.
struct Lines {
    mtu: u32,
    /// IPv6 needs an MTU of at least 1280 bytes.
    has_ipv6: bool,
}

impl Lines {
    fn of_gateway<'a>(
        &self,
        gateway: Host,
        hosts: impl Iterator<Item = (Host, &'a str)>,
    ) -> String {
        let Self { mtu, .. } = self;
        let mut text = format!(
            "link set lo up\n\
             link add {BRIDGE} mtu {mtu} type bridge mcast_snooping 0\n\
             addr add {}/24 dev {BRIDGE}\n",
            gateway.ipv4()
        );
        if self.has_ipv6 {
            text.push_str(&ipv6_addresses(gateway, BRIDGE));
        }
        let _ = writeln!(text, "link set {BRIDGE} up");
        for (host, namespace) in hosts {
            let Number::Host(number) = host.number else { continue };
            let _ = write!(
                text,
                "link add port{number} mtu {mtu} type veth peer name {HOST_DEVICE} mtu {mtu} netns {namespace}\n\
                 link set port{number} master {BRIDGE} up\n",
            );
        }
        let _ = write!(
            text,
            "link set {DEVICE} mtu {mtu} txqueuelen 20000\nlink set {DEVICE} up\n\
             route add 10.77.0.0/16 dev {DEVICE}\n",
        );
        if self.has_ipv6 {
            let _ = writeln!(text, "route add fd77::/32 dev {DEVICE}");
        }
        text
    }

    fn of_host(&self, host: Host) -> String {
        let gateway = Host::gateway(host.site);
        let mut text = format!("link set lo up\naddr add {}/24 dev {HOST_DEVICE}\n", host.ipv4());
        if self.has_ipv6 {
            text.push_str(&ipv6_addresses(host, HOST_DEVICE));
        }
        let _ =
            write!(text, "link set {HOST_DEVICE} up\nroute add default via {}\n", gateway.ipv4());
        if self.has_ipv6 {
            let _ = writeln!(text, "route add default via {}", gateway.ipv6());
        }
        text
    }
}

/// The global address, and the link-local address by which a gateway resolves its hosts.
fn ipv6_addresses(host: Host, device: &str) -> String {
    let global = host.ipv6();
    let last = global.segments()[7];
    format!(
        "addr add {global}/64 dev {device} nodad\naddr add fe80::{last:x}/64 dev {device} nodad\n"
    )
}

const _: () =
    assert!(GATEWAY > crate::site::HOSTS_MAX, "a host and its gateway have different addresses");
