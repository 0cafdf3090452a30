//! `hikyaku cp --via`: which carrier is taken where UDP is blocked, and that a copy goes on when UDP dies in its middle.

use crate::common::{Place, Sshd, partials, random, wait_until};
use std::fs;
use std::process::{Command, Output, Stdio};

const FAR: &str = "10.62.0.2";

/// Two network namespaces with a cable between them; dropping this removes them.
struct Net(String);

impl Net {
    /// `None`, and the reason is said, where that is not possible.
    fn up(name: &str) -> Option<Self> {
        let has_nft = Command::new("nft").arg("--version").stdout(Stdio::null()).status().is_ok();
        if !rustix::process::geteuid().is_root() || !has_nft {
            eprintln!("\n*** SKIPPED, because this needs root and nftables ***\n");
            return None;
        }
        let net = Self(format!("hk-via-{name}-{}", std::process::id()));
        let (near, far) = (net.near(), net.far());
        ip(&["netns", "add", &near]);
        ip(&["netns", "add", &far]);
        ip(&[
            "-n", &near, "link", "add", "v0", "type", "veth", "peer", "name", "v1", "netns", &far,
        ]);
        for (host, device, address) in [(&near, "v0", "10.62.0.1/24"), (&far, "v1", "10.62.0.2/24")]
        {
            ip(&["-n", host, "link", "set", "lo", "up"]);
            ip(&["-n", host, "addr", "add", address, "dev", device]);
            ip(&["-n", host, "link", "set", device, "up"]);
        }
        Some(net)
    }

    fn near(&self) -> String {
        format!("{}-n", self.0)
    }

    fn far(&self) -> String {
        format!("{}-f", self.0)
    }

    /// The far host drops what comes to it by UDP, and the near one as well.
    fn block_udp(&self) {
        for host in [self.near(), self.far()] {
            let rules = "add table inet t; \
                         add chain inet t i { type filter hook input priority 0; }; \
                         add rule inet t i meta l4proto udp drop";
            ip(&["netns", "exec", &host, "nft", rules]);
        }
    }

    fn sshd(&self, name: &str) -> Sshd {
        let ends = [&*self.near(), &*self.far()];
        Sshd::start_at(name, &Place::Namespaces(ends, FAR))
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for host in [self.near(), self.far()] {
            let _ = Command::new("ip").args(["netns", "del", &host]).status();
        }
    }
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success(), "{arguments:?}");
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn tcp_is_taken_where_udp_is_blocked_and_remembered() {
    let Some(net) = Net::up("blocked") else { return };
    let sshd = net.sshd("via-blocked");
    let bytes = random(6, 30_000_000);
    fs::write(sshd.at("a"), &bytes).unwrap();
    let (a, got) = (sshd.at("a").display().to_string(), sshd.at("got").display().to_string());
    let copy = |flags: &[&str], from: &str, to: &str| {
        sshd.cp(&[flags, &[from, to]].concat()).output().unwrap()
    };
    // UDP gets through: each carrier that is asked for is taken.
    for (via, words) in [("udp", "by UDP"), ("tcp", "by TCP"), ("ssh", "go through ssh")] {
        let output = copy(&["-v", "--via", via], &a, &sshd.far("b"));
        assert!(output.status.success(), "{via}: {}", said(&output));
        assert!(said(&output).contains(words), "{via}: {}", said(&output));
        assert!(fs::read(sshd.at("b")).unwrap() == bytes, "{via}");
        fs::remove_file(sshd.at("b")).unwrap();
    }
    net.block_udp();
    let output = copy(&["--via", "udp"], &a, &sshd.far("b"));
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let output = copy(&[], &a, &sshd.far("b"));
    assert!(output.status.success(), "{}", said(&output));
    let told = "no UDP gets through to far (10.62.0.2:";
    assert!(said(&output).contains(told), "{}", said(&output));
    assert!(
        said(&output).contains("the data go over several TCP connections"),
        "{}",
        said(&output)
    );
    assert!(fs::read(sshd.at("b")).unwrap() == bytes);
    let paths = fs::read_to_string(sshd.at("cache/hikyaku/paths.json")).unwrap();
    assert!(paths.contains("udp_blocked") && paths.contains("10.62.0.0/24"), "{paths}");
    // The other direction, by several pipes.
    let output = copy(&["-v", "--no-udp", "--connections", "5"], &sshd.far("b"), &got);
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("by TCP") && !said(&output).contains("go over"),
        "{}",
        said(&output)
    );
    assert!(fs::read(sshd.at("got")).unwrap() == bytes);
}

#[test]
fn a_copy_goes_on_over_tcp_when_udp_dies_in_its_middle() {
    let Some(net) = Net::up("dies") else { return };
    let sshd = net.sshd("via-dies");
    let bytes = random(7, 15_000_000);
    fs::write(sshd.at("a"), &bytes).unwrap();
    let a = sshd.at("a").display().to_string();
    let mut command = sshd.cp(&["-l", "16m", &a, &sshd.far("b")]);
    let child = command.stderr(Stdio::piped()).spawn().unwrap();
    wait_until("an unfinished file", || {
        partials(&sshd.at("")).iter().any(|name| {
            fs::metadata(sshd.at("").join(name)).is_ok_and(|file| file.len() > 2_000_000)
        })
    });
    net.block_udp();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(said(&output).contains("trying again in"), "{}", said(&output));
    assert!(
        said(&output).contains("the data go over several TCP connections"),
        "{}",
        said(&output)
    );
    assert!(fs::read(sshd.at("b")).unwrap() == bytes);
}

#[test]
fn decisions_on_the_number_of_tcp_connections_are_shown() {
    let Some(net) = Net::up("shown") else { return };
    let sshd = net.sshd("via-shown");
    let (far, got) = (sshd.far("b"), sshd.at("got").display().to_string());
    fs::write(sshd.at("b"), random(8, 10_000_000)).unwrap();
    for (flag, words) in [("--json-lines", "\"event\":\"epoch\""), ("-I", " each (first")] {
        let output = sshd.cp(&["--via", "tcp", "-l", "20m", flag, &far, &got]).output().unwrap();
        assert!(output.status.success(), "{}", said(&output));
        let shown = String::from_utf8_lossy(&output.stdout).into_owned() + &said(&output);
        assert!(shown.contains(words), "{shown}");
        fs::remove_file(&got).unwrap();
    }
}
