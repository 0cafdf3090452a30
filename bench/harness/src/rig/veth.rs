//! Two namespaces on one wire, with no link emulated: what a machine can do when the network does
//! not hold it up.

use crate::rig::line::{End, Place};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

const CLIENT: &str = "hkbench-client";
const SERVER: &str = "hkbench-server";
const DEVICE: &str = "wire0";
const CLIENT_ADDRESS: &str = "10.78.0.1";
const SERVER_ADDRESS: &str = "10.78.0.2";

/// Who cuts large sends into packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Segmentation {
    /// Nobody: a veth hands them over whole, which flatters everybody.
    None,
    /// The kernel, as with a card that cannot; and the receiving kernel joins them.
    Software,
}

/// The wire. Removed when dropped.
pub(crate) struct Veth {
    // Nothing is kept: names are fixed, and what an interrupted run left goes first.
    _made: (),
}

impl Veth {
    /// Makes it with this MTU.
    pub(crate) fn up(mtu: u32, segmentation: Segmentation) -> Result<Self> {
        remove();
        let veth = Self { _made: () };
        ip(&["netns", "add", CLIENT])?;
        ip(&["netns", "add", SERVER])?;
        let mtu = mtu.to_string();
        let pair = ["link", "add", DEVICE, "mtu", &mtu, "netns", CLIENT, "type", "veth", "peer"];
        ip(&[&pair[..], &["name", DEVICE, "mtu", &mtu, "netns", SERVER]].concat())?;
        for (name, address) in [(CLIENT, CLIENT_ADDRESS), (SERVER, SERVER_ADDRESS)] {
            ip(&["-n", name, "addr", "add", &format!("{address}/24"), "dev", DEVICE])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&["-n", name, "link", "set", DEVICE, "up"])?;
            if segmentation == Segmentation::Software {
                let off = "-K wire0 tx-udp-segmentation off tso off gro on";
                let words = ["netns", "exec", name, "ethtool"];
                ip(&words.into_iter().chain(off.split(' ')).collect::<Vec<_>>())?;
            }
        }
        // The two ends find each other before anything is measured.
        ip(&["netns", "exec", CLIENT, "ping", "-c1", "-W2", "-q", SERVER_ADDRESS])?;
        Ok(veth)
    }

    /// Gives all addresses of a network to the client, and tells the server the way.
    pub(crate) fn feign(&self, network: &str) -> Result<()> {
        ip(&["-n", CLIENT, "route", "add", "local", network, "dev", "lo"])?;
        ip(&["-n", SERVER, "route", "add", network, "via", CLIENT_ADDRESS])
    }

    /// Shapes what leaves the client with the kernel's token bucket, so that full packets pass at
    /// the rate of a link that counts 38 bytes of framing to each packet of IP.
    pub(crate) fn shape(&self, bits_per_second: f64) -> Result<()> {
        // The bucket counts the 14 bytes of an Ethernet header and no more. A size table (`stab`)
        // could add the rest, but counts a super-packet as one.
        let rate = format!("{:.0}bit", bits_per_second * 1514.0 / 1538.0);
        let tbf = ["qdisc", "add", "dev", DEVICE, "root", "tbf", "rate", &rate];
        let limits = ["burst", "64k", "limit", "5mb"];
        ip(&[&["netns", "exec", CLIENT, "tc"][..], &tbf, &limits].concat())
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        remove();
    }
}

impl Place for Veth {
    fn command(&self, end: End, program: &OsStr) -> Command {
        let name = match end {
            End::Client => CLIENT,
            End::Server => SERVER,
        };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name]).arg(program);
        command
    }

    fn server(&self) -> String {
        SERVER_ADDRESS.to_owned()
    }
}

/// Ends what runs in our two namespaces, by its own process ids, and removes them.
fn remove() {
    for name in [CLIENT, SERVER] {
        let Ok(listing) = Command::new("ip").args(["netns", "pids", name]).output() else { return };
        for pid in String::from_utf8_lossy(&listing.stdout).split_whitespace() {
            let _ = Command::new("kill").arg(pid).status();
        }
        if !listing.stdout.is_empty() {
            sleep(Duration::from_millis(200));
        }
        let _ = Command::new("ip").args(["netns", "del", name]).stderr(Stdio::null()).status();
    }
}

fn ip(args: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(args).output().context("cannot run ip")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {}: {}", args.join(" "), said.trim());
    Ok(())
}
