//! What the kernel is told of a transparent gateway: a table of nftables, two rules of routing, and a device.
//!
//! The first packet of a connection goes through the device to the gateway, and comes back through it when the far side is
//! connected; then the kernel gives the connection to the gateway's listener (TPROXY). The table belongs to a process of
//! `nft` that ends with the gateway, however that ends, and the table goes with it: new connections then pass as if there
//! were no gateway.

use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::with_remedy;
use std::fmt;
use std::fs;
use std::io::Write;
use std::net::IpAddr;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Which connections are taken in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Taken {
    /// The interface at which clients come in.
    pub(crate) interface: Interface,
    /// Networks of their servers.
    pub(crate) to: Vec<Network>,
}

/// The name of an interface.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Interface(String);

/// A network of IPv4 or IPv6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network(IpAddr, u8);

/// The rules, for as long as this lives.
pub(crate) struct Rules {
    /// The process that has the table.
    nft: Child,
    input: Mutex<ChildStdin>,
    table: String,
    /// The rules for connections that are not open yet, of the chain [`NEW`].
    new: String,
    /// Commands of `ip` that take back what was done.
    undo: Vec<Vec<String>>,
}

/// Which connections the kernel gives to the gateway.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    /// Those that the gateway has, and new ones.
    New,
    /// Those that it has. New ones pass as if there were no gateway.
    Open,
}

/// The chain of the rules for new connections.
const NEW: &str = "new";
/// A comment of the last rule of this chain.
const LAST: &str = "the last one";

/// A version of IP.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Family {
    V4,
    V6,
}

impl Taken {
    /// The versions of IP of the networks.
    fn families(&self) -> Vec<Family> {
        let has = |is_v6| self.to.iter().any(|network| network.0.is_ipv6() == is_v6);
        let all = [(Family::V4, has(false)), (Family::V6, has(true))];
        all.into_iter().filter_map(|(family, is_there)| is_there.then_some(family)).collect()
    }

    /// The networks of a version, as a set of nftables.
    fn networks(&self, family: Family) -> String {
        let is_v6 = family == Family::V6;
        let of_family = self.to.iter().filter(|network| network.0.is_ipv6() == is_v6);
        of_family.map(Network::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// Bytes of the name of an interface at most (`IFNAMSIZ`, with its end).
const NAME_BYTES_MAX: usize = 15;
/// Marks of packets: of those for the gateway's listener, and of those for the device. They are also the numbers of the
/// routing tables.
const TO_LISTENER: u32 = 26_731;
const TO_DEVICE: u32 = 26_732;
/// The kernel has the table within this.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

impl FromStr for Interface {
    type Err = String;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        let fits = (1..=NAME_BYTES_MAX).contains(&text.len());
        match fits && text.chars().all(is_plain) {
            true => Ok(Self(text.to_owned())),
            false => Err(format!("'{text}' is not the name of an interface, such as eth1")),
        }
    }
}

impl FromStr for Network {
    type Err = String;

    // fuzz: none, the user's own words
    fn from_str(text: &str) -> Result<Self, String> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let read = || {
            let address: IpAddr = address.parse().ok()?;
            let most = if address.is_ipv6() { 128 } else { 32 };
            let bits = match bits {
                Some(bits) => bits.parse().ok().filter(|bits| *bits <= most)?,
                None => most,
            };
            Some(Self(address, bits))
        };
        read().ok_or_else(|| {
            format!("'{text}' is not a network, such as 10.0.0.0/8 or 2001:db8::/32")
        })
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.0, self.1)
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to: Vec<String> = self.to.iter().map(Network::to_string).collect();
        write!(f, "connections at {} to {}", self.interface.0, to.join(", "))
    }
}

impl Rules {
    /// Sets the rules, for a device and the port of a listener.
    pub(super) fn set(taken: &Taken, device: &str, port: u16) -> Result<Self> {
        let families = taken.families();
        prepare(device, &families)?;
        let mut nft = Command::new("nft")
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start nft")
            .map_err(|error| with_remedy(error, Some("try: install nftables")))?;
        let input = Mutex::new(nft.stdin.take().context("nft has no input")?);
        let table = format!("hikyaku_{}", std::process::id());
        let new = new_rules(taken, &table);
        let mut rules = Self { nft, input, table, new, undo: Vec::new() };
        rules.tell(&script(taken, &rules.table, device, port))?;
        rules.take(Taking::New)?;
        let (listener, device_mark) = (TO_LISTENER.to_string(), TO_DEVICE.to_string());
        for family in families {
            let (option, all) = match family {
                Family::V4 => ("-4", "0.0.0.0/0"),
                Family::V6 => ("-6", "::/0"),
            };
            // Another gateway of this host has this route as long as it runs.
            rules.ip(&[option, "route", "add", "default", "dev", device, "table", &device_mark])?;
            for words in [
                [option, "rule", "add", "fwmark", &device_mark, "lookup", &device_mark].as_slice(),
                &[option, "rule", "add", "fwmark", &listener, "lookup", &listener],
                &[option, "route", "add", "local", all, "dev", "lo", "table", &listener],
            ] {
                // A gateway that was killed has left it.
                let _ = ip(&opposite(words));
                rules.ip(words)?;
            }
        }
        Ok(rules)
    }

    /// Changes which connections the kernel gives to the gateway. The kernel does so when this returns.
    ///
    /// # Errors
    ///
    /// The kernel does not take the rules.
    pub(crate) fn take(&self, taking: Taking) -> Result<()> {
        let chain = format!("inet {} {NEW}", self.table);
        let flush = format!("flush chain {chain}\n");
        match taking {
            Taking::New => self.tell(&format!("{flush}{}", self.new))?,
            Taking::Open => self.tell(&flush)?,
        }
        self.wait_for(taking)
    }

    /// Gives commands to `nft`.
    fn tell(&self, commands: &str) -> Result<()> {
        let mut input = self.input.lock().unwrap_or_else(PoisonError::into_inner);
        let written = input.write_all(commands.as_bytes()).and_then(|()| input.flush());
        written.context("cannot tell nft the rules")
    }

    /// Waits until the kernel has the last of the rules.
    fn wait_for(&self, taking: Taking) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let words = ["list", "chain", "inet", &self.table, NEW];
            let listed = Command::new("nft").args(words).stderr(Stdio::null()).output();
            let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
            let has_rule = |text: String| match taking {
                // The last rule of them.
                Taking::New => text.contains(LAST),
                Taking::Open => text.contains(NEW) && !text.contains("daddr"),
            };
            if text.is_ok_and(has_rule) {
                return Ok(());
            }
            sleep(LOOK);
        }
        let error = Error::msg("the kernel does not take the rules of nftables");
        Err(with_remedy(error, Some("try: modprobe nft_tproxy nft_socket, as root")))
    }

    /// Runs a command of `ip`, which is taken back at the end.
    fn ip(&mut self, words: &[&str]) -> Result<()> {
        ip(words)?;
        self.undo.push(opposite(words).into_iter().map(str::to_owned).collect());
        Ok(())
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // First the table: what is not marked is not routed by the others.
        let _ = self.nft.kill();
        let _ = self.nft.wait();
        for words in self.undo.iter().rev() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let _ = ip(&words);
        }
    }
}

/// The command that takes a command back.
fn opposite<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().map(|word| if *word == "add" { "del" } else { word }).collect()
}

/// The first packet of a connection.
const FIRST: &str = "tcp flags & (fin | syn | rst | ack) == syn";

/// The commands of `nft`. A connection that the listener has goes to it. The first packet of one that the gateway has
/// given back does so too. Others go through the chain [`NEW`].
fn script(taken: &Taken, table: &str, device: &str, port: u16) -> String {
    let interface = &taken.interface.0;
    let chain = format!("inet {table} take");
    let mut script = format!(
        "add table inet {table} {{ flags owner; }}\n\
         add chain inet {table} {NEW}\n\
         add chain {chain} {{ type filter hook prerouting priority mangle; policy accept; }}\n"
    );
    for family in taken.families() {
        let (version, ip) = match family {
            Family::V4 => ("ipv4", "ip"),
            Family::V6 => ("ipv6", "ip6"),
        };
        script.push_str(&format!(
            "add rule {chain} iifname \"{device}\" meta nfproto {version} {FIRST} tproxy {ip} to :{port} \
             meta mark set {TO_LISTENER} accept\n"
        ));
    }
    script.push_str(&format!(
        "add rule {chain} iifname \"{interface}\" meta l4proto tcp socket transparent 1 meta mark set {TO_LISTENER} accept\n\
         add rule {chain} iifname \"{interface}\" jump {NEW}\n"
    ));
    script
}

/// The commands for the rules of new connections: the first packet of one goes to the gateway. One of IPv6 with extension
/// headers, which the gateway does not read, passes.
fn new_rules(taken: &Taken, table: &str) -> String {
    let mut rules = String::new();
    for family in taken.families() {
        let networks = taken.networks(family);
        let to = match family {
            Family::V4 => format!("ip daddr {{ {networks} }}"),
            Family::V6 => format!("ip6 daddr {{ {networks} }} ip6 nexthdr tcp"),
        };
        rules.push_str(&format!(
            "add rule inet {table} {NEW} {to} {FIRST} meta mark set {TO_DEVICE} accept\n"
        ));
    }
    rules.push_str(&format!("add rule inet {table} {NEW} return comment \"{LAST}\"\n"));
    rules
}

/// The device takes packets of others, and packets are forwarded.
fn prepare(device: &str, families: &[Family]) -> Result<()> {
    for (family, key) in
        [(Family::V4, "net/ipv4/ip_forward"), (Family::V6, "net/ipv6/conf/all/forwarding")]
    {
        let value = fs::read_to_string(format!("/proc/sys/{key}")).unwrap_or_default();
        if families.contains(&family) && value.trim() == "0" {
            let error = Error::msg("this host does not forward packets of its clients");
            let remedy = format!("try: sysctl -w {}=1", key.replace('/', "."));
            return Err(with_remedy(error, Some(remedy)));
        }
    }
    // What comes through the device has addresses that are elsewhere. The stricter of this value and that of all devices
    // holds; the loose one is above the strict one (ip-sysctl of the kernel).
    let all = fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let filter = if all.trim() == "1" { "2" } else { "0" };
    for (key, value) in [("rp_filter", filter), ("accept_local", "1")] {
        let path = format!("/proc/sys/net/ipv4/conf/{device}/{key}");
        fs::write(&path, value).with_context(|| format!("cannot write {path}"))?;
    }
    ip(&["link", "set", device, "up"])
}

fn ip(words: &[&str]) -> Result<()> {
    let Output { status, stderr, .. } =
        Command::new("ip").args(words).stdin(Stdio::null()).output().context("cannot start ip")?;
    let said = String::from_utf8_lossy(&stderr);
    ensure!(status.success(), "ip {}: {}", words.join(" "), said.trim());
    Ok(())
}

#[cfg(test)]
mod tests;
