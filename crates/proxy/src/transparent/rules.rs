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
use std::net::Ipv4Addr;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::str::FromStr;
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

/// A network of IPv4.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Network(Ipv4Addr, u8);

/// The rules, for as long as this lives.
pub(super) struct Rules {
    nft: Child,
    _input: Option<ChildStdin>,
    /// Commands of `ip` that take back what was done.
    undo: Vec<Vec<String>>,
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
        let (address, bits) = text.split_once('/').unwrap_or((text, "32"));
        let bits = bits.parse().ok().filter(|bits| *bits <= 32);
        match (address.parse(), bits) {
            (Ok(address), Some(bits)) => Ok(Self(address, bits)),
            _ => Err(format!("'{text}' is not a network of IPv4, such as 10.0.0.0/8")),
        }
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
        prepare(device)?;
        let mut nft = Command::new("nft")
            .arg("-i")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start nft")
            .map_err(|error| with_remedy(error, Some("try: install nftables")))?;
        let mut input = nft.stdin.take();
        let table = format!("hikyaku_{}", std::process::id());
        let written = input.as_mut().map(|input| {
            input.write_all(script(taken, &table, device, port).as_bytes())?;
            input.flush()
        });
        let mut rules = Self { nft, _input: input, undo: Vec::new() };
        written.transpose().context("cannot tell nft the rules")?;
        wait_for(&table)?;
        let (listener, device_mark) = (TO_LISTENER.to_string(), TO_DEVICE.to_string());
        // Another gateway of this host has this route as long as it runs.
        rules.ip(&["route", "add", "default", "dev", device, "table", &device_mark])?;
        for words in [
            ["rule", "add", "fwmark", &device_mark, "lookup", &device_mark].as_slice(),
            &["rule", "add", "fwmark", &listener, "lookup", &listener],
            &["route", "add", "local", "0.0.0.0/0", "dev", "lo", "table", &listener],
        ] {
            // A gateway that was killed has left it.
            let _ = ip(&opposite(words));
            rules.ip(words)?;
        }
        Ok(rules)
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

/// The commands of `nft`. A connection that the listener has goes to it. The first packet of one that the gateway has
/// given back does so too. The first packet of another one goes to the gateway.
fn script(taken: &Taken, table: &str, device: &str, port: u16) -> String {
    let interface = &taken.interface.0;
    let to: Vec<String> = taken.to.iter().map(Network::to_string).collect();
    let first = "tcp flags & (fin | syn | rst | ack) == syn";
    let chain = format!("ip {table} take");
    format!(
        "add table ip {table} {{ flags owner; }}\n\
         add chain {chain} {{ type filter hook prerouting priority mangle; policy accept; }}\n\
         add rule {chain} iifname \"{device}\" {first} tproxy to :{port} meta mark set {TO_LISTENER} accept\n\
         add rule {chain} iifname \"{interface}\" meta l4proto tcp socket transparent 1 meta mark set {TO_LISTENER} accept\n\
         add rule {chain} iifname \"{interface}\" ip daddr {{ {} }} {first} meta mark set {TO_DEVICE} accept\n",
        to.join(", ")
    )
}

/// Waits until the kernel has the last of the rules.
fn wait_for(table: &str) -> Result<()> {
    let until = Instant::now() + PATIENCE;
    while Instant::now() < until {
        let listed = Command::new("nft").args(["list", "table", "ip", table]).output();
        let text = listed.map(|listed| String::from_utf8_lossy(&listed.stdout).into_owned());
        if text.is_ok_and(|text| text.contains("ip daddr")) {
            return Ok(());
        }
        sleep(LOOK);
    }
    let error = Error::msg("the kernel does not take the rules of nftables");
    Err(with_remedy(error, Some("try: modprobe nft_tproxy nft_socket, as root")))
}

/// The device takes packets of others, and packets are forwarded.
fn prepare(device: &str) -> Result<()> {
    const FORWARD: &str = "/proc/sys/net/ipv4/ip_forward";
    let is_forwarding = fs::read_to_string(FORWARD).is_ok_and(|text| text.trim() == "1");
    if !is_forwarding {
        let error = Error::msg("this host does not forward packets of its clients");
        return Err(with_remedy(error, Some("try: sysctl -w net.ipv4.ip_forward=1")));
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
mod tests {
    use super::*;

    #[test]
    fn rules_are_made_of_names_and_numbers_only() {
        for text in ["", "a b", "eth0;", "a\"", "0123456789abcdef", "a\n"] {
            assert!(text.parse::<Interface>().is_err(), "{text:?}");
        }
        for text in ["", "10.0.0.0/33", "10.0.0/8", "::/0", "10.0.0.0/8 }", "web"] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
        let to = ["10.0.0.0/8", "192.0.2.1"].map(|text| text.parse().unwrap()).to_vec();
        let taken = Taken { interface: "eth1".parse().unwrap(), to };
        let text = script(&taken, "hikyaku_7", "hk7", 4000);
        let wanted = [
            "add table ip hikyaku_7 { flags owner; }",
            "add chain ip hikyaku_7 take { type filter hook prerouting priority mangle; policy accept; }",
            "add rule ip hikyaku_7 take iifname \"hk7\" tcp flags & (fin | syn | rst | ack) == syn \
             tproxy to :4000 meta mark set 26731 accept",
            "add rule ip hikyaku_7 take iifname \"eth1\" meta l4proto tcp socket transparent 1 meta mark \
             set 26731 accept",
            "add rule ip hikyaku_7 take iifname \"eth1\" ip daddr { 10.0.0.0/8, 192.0.2.1/32 } \
             tcp flags & (fin | syn | rst | ack) == syn meta mark set 26732 accept",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), wanted);
    }
}
