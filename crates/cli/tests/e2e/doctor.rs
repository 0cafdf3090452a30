//! `hikyaku doctor`: this machine, and a host that a real ssh reaches.

use crate::common::Sshd;
use crate::common::daemon::{Client, said};
use serde_json::Value;
use std::process::{Command, Output};

fn report(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// The check of this name.
fn check<'a>(report: &'a Value, id: &str) -> &'a Value {
    let checks = report["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("no {id}: {report}"))
}

#[test]
fn this_machine_has_a_limit_and_a_rate() {
    let client = Client::new("doctor");
    let dir = client.at("").display().to_string();
    let output = client.run(&["doctor", "--json", "--dir", &dir]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let report = report(&output);
    let verdict = &report["verdicts"][0];
    assert_eq!(verdict["way"], "this machine");
    let rates = ["cipher", "udp-loopback", "disk"].map(|id| check(&report, id)["value"].as_f64());
    assert!(rates.iter().all(|rate| rate.is_some_and(|rate| rate > 1e6)), "{report}");
    let limit = verdict["bits_per_second"].as_f64().unwrap();
    assert!(rates.into_iter().flatten().all(|rate| limit <= rate), "{report}");
    let text = String::from_utf8(client.run(&["doctor"]).stdout).unwrap();
    assert!(text.starts_with("this machine: limited by "), "{text}");
    assert!(text.contains("\nskip  disk "), "{text}");
}

#[test]
fn a_path_is_measured_in_both_directions() {
    let sshd = Sshd::start("doctor-path");
    let output = sshd.doctor(&["--json", "far"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}\n{}", said(&output), sshd.log());
    let report = report(&output);
    let ways: Vec<_> =
        report["verdicts"].as_array().unwrap().iter().map(|verdict| &verdict["way"]).collect();
    assert_eq!(ways, ["to far", "from far"], "{report}");
    for id in ["ssh", "far-program", "udp", "rtt", "path-up", "path-down"] {
        assert_eq!(check(&report, id)["state"], "ok", "{report}");
    }
    for (id, verdict) in [("path-up", 0), ("path-down", 1)] {
        let rate = check(&report, id)["value"].as_f64().unwrap();
        assert!(rate > 1e6, "{report}");
        let told = report["verdicts"][verdict]["bits_per_second"].as_f64().unwrap();
        assert!((told - rate).abs() <= 1.0, "{report}");
    }
}

#[test]
fn what_is_missing_at_the_host_is_named_with_a_remedy() {
    let sshd = Sshd::start("doctor-missing");
    let mut absent = sshd.doctor(&["--remote-path", "no-such-hikyaku", "--json", "far"]);
    let output = absent.output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let first = report(&output);
    assert_eq!(check(&first, "far-program")["state"], "fail", "{first}");
    assert!(
        check(&first, "far-program")["remedy"]
            .as_str()
            .unwrap()
            .contains("hikyaku far install far")
    );
    assert_eq!(check(&first, "ssh")["state"], "ok", "{first}");
    let output = sshd.doctor(&["--json", "broken"]).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let second = report(&output);
    assert_eq!(check(&second, "ssh")["state"], "fail", "{second}");
    assert!(check(&second, "ssh")["remedy"].as_str().unwrap().contains("broken"), "{second}");
}

#[test]
fn a_blocked_udp_is_named_with_the_ports() {
    let name = format!("hk-doctor-{}", std::process::id());
    if !xtask::is_root()
        || !Command::new("ip").args(["netns", "add", &name]).status().unwrap().success()
    {
        println!("SKIPPED: needs root for a firewall rule in a namespace");
        return;
    }
    let inside = |words: &[&str]| {
        let mut all = vec!["netns", "exec", &name];
        all.extend(words);
        assert!(Command::new("ip").args(all).status().unwrap().success(), "{words:?}");
    };
    inside(&["ip", "link", "set", "lo", "up"]);
    inside(&["nft", "add table inet t; add chain inet t i { type filter hook input priority 0; }"]);
    inside(&["nft", "add rule inet t i udp dport 60001-60999 drop"]);
    let sshd = Sshd::start_at(
        "doctor-udp",
        &crate::common::Place::Namespaces([name.as_str(), name.as_str()], "127.0.0.1"),
    );
    let output = sshd.doctor(&["--json", "far"]).output().unwrap();
    let status = Command::new("ip").args(["netns", "del", &name]).status().unwrap();
    assert!(status.success());
    assert_eq!(output.status.code(), Some(6), "{}", said(&output));
    let report = report(&output);
    let udp = check(&report, "udp");
    assert_eq!(udp["state"], "fail", "{report}");
    assert!(udp["remedy"].as_str().unwrap().contains("60001 to 60999"), "{report}");
}
