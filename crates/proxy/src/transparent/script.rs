//! The rules of nftables for a transparent gateway, as the commands of `nft`.
//!
//! They are made of parsed names and numbers only.

use super::cgroup::Cgroup;
use super::taken::{Clients, Family, Interface, Taken};

/// What the rules are made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Script<'a> {
    pub(super) taken: &'a Taken,
    pub(super) source: Source<'a>,
    /// The name of the table.
    pub(super) table: &'a str,
    /// The device through which the gateway gets first packets and gives them back.
    pub(super) device: &'a str,
    /// The port of the listener.
    pub(super) port: u16,
    pub(super) marks: Marks,
}

/// By what the kernel knows the packets of those whose connections are taken in.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source<'a> {
    /// They come in at an interface.
    Interface(&'a Interface),
    /// They are sent by a program in a control group.
    Cgroup(&'a Cgroup),
}

/// Marks of packets. They are also the numbers of routing tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks {
    /// Of those for the gateway's listener, and of connections that programs of this host have with it (conntrack).
    pub(super) listener: u32,
    /// Of those for the device.
    pub(super) device: u32,
}

/// The chain of the rules for new connections.
pub(super) const NEW: &str = "new";
/// A comment of the last rule of this chain.
pub(super) const LAST: &str = "the last one";
/// The first mark.
const MARK: u32 = 26_731;
/// Transparent gateways of one host at most.
const GATEWAYS_MAX: u32 = 16;
/// The first packet of a connection.
const FIRST: &str = "tcp flags & (fin | syn | rst | ack) == syn";
/// Any other one.
const LATER: &str = "tcp flags & (fin | syn | rst | ack) != syn";

impl Marks {
    /// Those of each gateway that there may be.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let marks = |gateway| Self { listener: MARK + 2 * gateway, device: MARK + 2 * gateway + 1 };
        (0..GATEWAYS_MAX).map(marks)
    }
}

impl<'a> Source<'a> {
    /// The source of those whose connections are taken in. `None` for a command that has no control group.
    pub(super) fn of(clients: &'a Clients, cgroup: Option<&'a Cgroup>) -> Option<Self> {
        match clients {
            Clients::At(interface) => Some(Self::Interface(interface)),
            Clients::OfCommand => cgroup.map(Self::Cgroup),
        }
    }
}

impl Script<'_> {
    /// The table without the rules for new connections. A connection that the listener has goes to it. The first packet of one
    /// that the gateway has given back does so too. Others go through the chain [`NEW`].
    pub(super) fn base(&self) -> String {
        let Self { table, device, port, marks: Marks { listener, .. }, .. } = self;
        let chain = format!("inet {table} take");
        let mut script = format!(
            "add table inet {table} {{ flags owner; }}\n\
             add chain inet {table} {NEW}\n\
             add chain {chain} {{ type filter hook prerouting priority mangle; policy accept; }}\n"
        );
        for family in self.taken.families() {
            let (version, ip) = match family {
                Family::V4 => ("ipv4", "ip"),
                Family::V6 => ("ipv6", "ip6"),
            };
            script.push_str(&format!(
                "add rule {chain} iifname \"{device}\" meta nfproto {version} {FIRST} tproxy {ip} to :{port} \
                 meta mark set {listener} accept\n"
            ));
        }
        script.push_str(&match self.source {
            Source::Interface(interface) => format!(
                "add rule {chain} iifname \"{interface}\" meta l4proto tcp socket transparent 1 \
                 meta mark set {listener} accept\n\
                 add rule {chain} iifname \"{interface}\" jump {NEW}\n"
            ),
            Source::Cgroup(cgroup) => self.of_cgroup(cgroup),
        });
        script
    }

    /// The rules for packets that programs of this host send. Those that stay on it are not touched. A connection that was
    /// held, and begins once more while the gateway takes no new ones, loses its mark: it goes direct.
    fn of_cgroup(&self, cgroup: &Cgroup) -> String {
        let (level, path, listener) = (cgroup.level(), cgroup.name(), self.marks.listener);
        let chain = format!("inet {} send", self.table);
        format!(
            "add chain {chain} {{ type route hook output priority mangle; policy accept; }}\n\
             add rule {chain} oifname \"lo\" return\n\
             add rule {chain} {LATER} ct direction original ct mark {listener} meta mark set {listener} accept\n\
             add rule {chain} {FIRST} ct mark {listener} ct mark set 0\n\
             add rule {chain} {FIRST} socket cgroupv2 level {level} \"{path}\" jump {NEW}\n"
        )
    }

    /// The rules for new connections: the first packet of one goes to the gateway. One of IPv6 with extension headers, which the
    /// gateway does not read, passes.
    pub(super) fn new_connections(&self) -> String {
        let (table, Marks { listener, device }) = (self.table, self.marks);
        let mark = match self.source {
            Source::Interface(_) => String::new(),
            Source::Cgroup(_) => format!("ct mark set {listener} "),
        };
        let mut rules = String::new();
        for family in self.taken.families() {
            let networks = self.taken.networks(family);
            let to = match family {
                Family::V4 => format!("ip daddr {{ {networks} }}"),
                Family::V6 => format!("ip6 daddr {{ {networks} }} ip6 nexthdr tcp"),
            };
            rules.push_str(&format!(
                "add rule inet {table} {NEW} {to} {FIRST} {mark}meta mark set {device} accept\n"
            ));
        }
        rules.push_str(&format!("add rule inet {table} {NEW} return comment \"{LAST}\"\n"));
        rules
    }
}

#[cfg(test)]
mod tests;
