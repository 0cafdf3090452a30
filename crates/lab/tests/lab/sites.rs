//! Tests of labs of sites: connectivity, the right link for every pair, and complete removal.

use crate::common::skipped;
use hikyaku_lab::{Host, Layout, PairName, SiteLab, SitesReport, SitesSpec};
use hikyaku_link::{PathSpec, Setting};
use hikyaku_units::Instant;
use std::fs;
use std::net::{IpAddr, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Duration;

/// A lab of sites with a common link and some links that differ; `None` without root.
fn sites(sites: &[&str], link: &[&str], pairs: &[(&str, &str)]) -> Option<SiteLab> {
    sites_with(sites, link, pairs, |_| {})
}

/// The same, with a closure that changes more of the description.
fn sites_with(
    sites: &[&str],
    link: &[&str],
    pairs: &[(&str, &str)],
    choose: impl FnOnce(&mut SitesSpec),
) -> Option<SiteLab> {
    let setting = |text: &str| text.parse::<Setting>().unwrap();
    let layout = Layout::new(sites.iter().map(|site| site.parse().unwrap()).collect()).unwrap();
    let mut path = PathSpec::default();
    link.iter().for_each(|text| setting(text).apply(&mut path, Instant::ZERO));
    let mut spec = SitesSpec::new(layout, path);
    for (pair, text) in pairs {
        spec.set(&pair.parse::<PairName>().unwrap(), setting(text)).unwrap();
    }
    choose(&mut spec);
    match SiteLab::up(spec) {
        Ok(lab) => Some(lab),
        Err(error) => skipped(&error),
    }
}

fn bind(lab: &SiteLab, host: Host, address: IpAddr) -> UdpSocket {
    let socket = lab.within(host, || UdpSocket::bind((address, 0))).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    socket
}

/// Sends a datagram there and back. Returns the round-trip time.
fn echo(lab: &SiteLab, [from, to]: [(Host, IpAddr); 2]) -> Duration {
    let [near, far] = [from, to].map(|(host, address)| bind(lab, host, address));
    near.connect(far.local_addr().unwrap()).unwrap();
    let begin = std::time::Instant::now();
    let mut buffer = [0; 10];
    near.send(b"there").unwrap();
    let (len, sender) = far.recv_from(&mut buffer).unwrap();
    assert_eq!(sender.ip(), from.1, "no address is translated");
    far.send_to(&buffer[..len], sender).unwrap();
    let len = near.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"there");
    begin.elapsed()
}

/// Number of segments in both directions of the link between two sites.
fn segments(report: &SitesReport, from: &str, to: &str) -> (u64, u64) {
    let link = report.links.iter().find(|link| link.from == from && link.to == to).unwrap();
    (link.up.segments, link.down.segments)
}

#[test]
fn every_pair_of_hosts_uses_the_link_of_its_sites() {
    let Some(lab) = sites(
        &["tokyo:2", "nict:3", "osaka:1"],
        &["rate 100mbit", "rtt 10ms"],
        &[("tokyo-nict", "rtt 30ms"), ("osaka-nict", "delay-up 20ms")],
    ) else {
        return;
    };
    let least = |one: &str, other: &str| match [one, other] {
        ["tokyo", "nict"] | ["nict", "tokyo"] => 30,
        ["osaka", "nict"] | ["nict", "osaka"] => 25,
        [one, other] if one == other => 0,
        _ => 10,
    };
    let site = |host: Host| lab.layout().name(host).trim_end_matches(char::is_numeric).to_owned();
    let hosts: Vec<Host> = lab.layout().hosts().collect();
    let mut pairs = 0;
    for from in &hosts {
        for to in hosts.iter().filter(|to| *to != from) {
            let both = [*from, *to];
            lab.restart().unwrap();
            let took = [
                echo(&lab, both.map(|host| (host, IpAddr::from(host.ipv4())))),
                echo(&lab, both.map(|host| (host, IpAddr::from(host.ipv6())))),
            ];
            let [from, to] = both.map(site);
            let least = Duration::from_millis(least(&from, &to));
            assert!(took.iter().all(|took| *took >= least), "{from} - {to}: {took:?}");
            let report = lab.report().unwrap();
            let all: u64 =
                report.links.iter().map(|link| link.up.segments + link.down.segments).sum();
            if from == to {
                assert_eq!(all, 0, "a site's own traffic takes no link");
                continue;
            }
            let between = |link: &&hikyaku_lab::LinkReport| {
                [&link.from, &link.to] == [&from, &to] || [&link.from, &link.to] == [&to, &from]
            };
            let link = report.links.iter().find(between).unwrap();
            assert_eq!((link.up.segments, link.down.segments, all), (2, 2, 4), "{from} - {to}");
            pairs += 1;
        }
    }
    assert_eq!(pairs, 2 * (2 * 3 + 2 + 3));
}

#[test]
fn loss_applies_to_its_own_link_only() {
    let Some(lab) = sites(
        &["a:1", "b:1", "c:1"],
        &["rtt 2ms"],
        // In `c-a`, "up" is from c to a, which the lab counts as down.
        &[("c-a", "loss-up every:10"), ("b-c", "queue 500p")],
    ) else {
        return;
    };
    let host = |name: &str| lab.layout().find(name).unwrap();
    let count = |from: &str, to: &str| {
        let [near, far] =
            [from, to].map(|name| bind(&lab, host(name), IpAddr::from(host(name).ipv4())));
        far.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        let pass = |_| {
            // Few enough datagrams for the receiver's buffer.
            for _ in 0..100 {
                near.send_to(&[7; 100], far.local_addr().unwrap()).unwrap();
            }
            std::iter::from_fn(|| far.recv(&mut [0; 200]).ok()).count()
        };
        (0..10).map(pass).sum::<usize>()
    };
    assert_eq!(count("c1", "a1"), 900);
    assert_eq!(count("a1", "c1"), 1000);
    assert_eq!(count("b1", "a1"), 1000);
    let report = lab.report().unwrap();
    assert_eq!(segments(&report, "a", "c"), (1000, 1000));
    assert_eq!(segments(&report, "a", "b"), (0, 1000));
    let lost: Vec<_> = report.links.iter().map(|link| (link.up.lost, link.down.lost)).collect();
    assert_eq!(lost, [(0, 0), (0, 100), (0, 0)]);
}

#[test]
fn hosts_resolve_each_others_names() {
    let Some(lab) = sites(&["tokyo:1", "nict:2"], &[], &[]) else { return };
    let tokyo = lab.layout().find("tokyo1").unwrap();
    let script = "getent hosts nict2 tokyo && echo $HIKYAKU_LAB_HOSTS $HIKYAKU_LAB_NICT2";
    let output = lab.command(tokyo, "sh").args(["-c", script]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let words: Vec<_> = said.split_whitespace().collect();
    assert_eq!(
        words,
        ["10.77.2.2", "nict2", "10.77.1.254", "tokyo", "tokyo1", "nict1", "nict2", "10.77.2.2"]
    );
}

#[test]
fn a_dropped_lab_of_sites_leaves_nothing_behind() {
    let Some(lab) = sites(&["a:2", "b:1"], &[], &[]) else { return };
    let name = format!("hikyaku-{}-", lab.name());
    let left = |folder: &str| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|entry| entry.starts_with(&name)).collect::<Vec<_>>()
    };
    assert_eq!(left("/run/netns").len(), 5);
    let hosts: Vec<Host> = lab.layout().hosts().collect();
    let sleep_at = |host: &Host| {
        lab.command(*host, "sleep").arg("1000").stdout(Stdio::null()).spawn().unwrap()
    };
    let mut sleepers: Vec<_> = hosts.iter().map(sleep_at).collect();
    sleep(Duration::from_millis(100));
    let directory = Path::new("/run/hikyaku-lab").join(lab.name());
    assert!(directory.exists());
    drop(lab);
    for sleeper in &mut sleepers {
        assert!(!sleeper.wait().unwrap().success(), "the lab ends what runs in it");
    }
    assert_eq!(left("/run/netns"), Vec::<String>::new());
    assert_eq!(left("/etc/netns"), Vec::<String>::new());
    assert!(!directory.exists());
}

#[test]
fn cross_traffic_flows_start_at_their_interval_and_end_with_the_lab() {
    let Some(lab) = sites_with(&["a:1", "b:1"], &["rate 20mbit", "rtt 2ms"], &[], |spec| {
        spec.set_rivals_of(&"b-a".parse().unwrap(), "2:1s".parse().unwrap()).unwrap();
    }) else {
        return;
    };
    let link = || lab.report().unwrap().links.remove(0);
    let wait_for = |count: u32| {
        let begin = std::time::Instant::now();
        while link().rivals < count {
            assert!(begin.elapsed() < Duration::from_secs(20), "flow {count} does not begin");
            sleep(Duration::from_millis(10));
        }
    };
    wait_for(2);
    let before = link();
    sleep(Duration::from_millis(500));
    let after = link();
    // "Up" is from a to b: the flows send data down and receive ACKs up.
    let bytes = [after.down.bytes - before.down.bytes, after.up.bytes - before.up.bytes];
    assert!(bytes[0] > 100_000 && bytes[1] > 0 && bytes[1] < bytes[0] / 4, "{bytes:?}");
    lab.restart().unwrap();
    assert!(link().rivals < 2, "they start anew with the clock");
    wait_for(1);
}
