//! What the kernel is told of a transparent gateway: a table of nftables, two rules of routing, and a device.
//!
//! The first packet of a connection goes through the device to the gateway, and comes back through it when the far side is
//! connected; then the kernel gives the connection to the gateway's listener (TPROXY). Further packets of a program of this
//! host are routed to this host, by a mark that its connection has (conntrack). The table belongs to a process of
//! `nft` that ends with the gateway, however that ends, and the table goes with it: new connections then pass as if there
//! were no gateway.

use super::script::{LAST, Marks, NEW, Script, Source};
use super::taken::{Family, Taken};
use anyhow::{Context, Error, Result, ensure};
use hikyaku_console::{At, with_remedy};
use std::fs;
use std::io::Write;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

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

/// The kernel has the table within this.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(10);

impl Rules {
    /// Sets the rules, for a device and the port of a listener.
    pub(super) fn set(
        taken: &Taken,
        source: Source<'_>,
        (device, port): (&str, u16),
    ) -> Result<Self> {
        let families = taken.families();
        if let Source::Interface(_) = source {
            check_forwarding(&families)?;
        }
        prepare(device)?;
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
        let mut rules = Self { nft, input, table, new: String::new(), undo: Vec::new() };
        let marks = rules.claim(device, &families)?;
        let script = Script { taken, source, table: &rules.table, device, port, marks };
        let (base, new) = (script.base(), script.new_connections());
        rules.new = new;
        rules.tell(&base)?;
        rules.take(Taking::New)?;
        let Marks { listener, device: to_device } = marks;
        let (listener, to_device) = (listener.to_string(), to_device.to_string());
        for family in families {
            let (option, all) = (family.option(), family.all());
            for words in [
                [option, "rule", "add", "fwmark", &to_device, "lookup", &to_device].as_slice(),
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

    /// Takes marks that no other gateway of this host has: each has the route to its device, as long as it runs.
    fn claim(&mut self, device: &str, families: &[Family]) -> Result<Marks> {
        let mut last = Error::msg("there is no routing table");
        for marks in Marks::all() {
            let table = marks.device.to_string();
            let claimed = families.iter().try_for_each(|family| {
                let route = ["route", "add", "default", "dev", device, "table", &table];
                self.ip(&[&[family.option()], route.as_slice()].concat())
            });
            match claimed {
                Ok(()) => return Ok(marks),
                Err(error) => last = error,
            }
            self.take_back();
        }
        Err(last)
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

    /// Takes back what commands of `ip` have done, the last one first.
    fn take_back(&mut self) {
        while let Some(words) = self.undo.pop() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let _ = ip(&words);
        }
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        // First the table: what is not marked is not routed by the others.
        let _ = self.nft.kill();
        let _ = self.nft.wait();
        self.take_back();
    }
}

/// The command that takes a command back.
fn opposite<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().map(|word| if *word == "add" { "del" } else { word }).collect()
}

/// Packets of other hosts are forwarded.
fn check_forwarding(families: &[Family]) -> Result<()> {
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
    Ok(())
}

/// The device takes packets of others.
fn prepare(device: &str) -> Result<()> {
    // What comes through the device has addresses that are elsewhere. The stricter of this value and that of all devices
    // holds; the loose one is above the strict one (ip-sysctl of the kernel).
    let all = fs::read_to_string("/proc/sys/net/ipv4/conf/all/rp_filter").unwrap_or_default();
    let filter = if all.trim() == "1" { "2" } else { "0" };
    for (key, value) in [("rp_filter", filter), ("accept_local", "1")] {
        let path = format!("/proc/sys/net/ipv4/conf/{device}/{key}");
        fs::write(&path, value).at(&path)?;
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
