//! Tests of the subcommands through their command lines.

use crate::common::lab;
use clap::Parser;
use hikyaku_lab::{LabArgs, Report};
use std::fs;
use std::thread;
use std::time::Duration;

fn run(words: &[&str]) -> anyhow::Result<u8> {
    let args = LabArgs::try_parse_from(["lab"].iter().chain(words))?;
    hikyaku_lab::run(args).map(|exit| exit.number())
}

#[test]
fn lab_run_returns_the_commands_exit_code_and_writes_a_report() {
    if lab(&[]).is_none() {
        return;
    }
    let file = std::env::temp_dir().join(format!("lab-report-{}", std::process::id()));
    let path = file.to_str().unwrap();
    let code = run(&["run", "--rtt", "20ms", "--report", path, "--", "sh", "-c", "exit 7"]);
    assert_eq!(code.unwrap(), 7);
    let report: Report = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    assert!(report.valid, "{:?}", report.problems);
    assert_eq!((report.up.delay_ms, report.up.segments), (10.0, 0));
}

#[test]
fn a_named_lab_is_created_changed_and_removed() {
    if lab(&[]).is_none() {
        return;
    }
    let name = "test-named";
    let lab =
        thread::spawn(|| run(&["up", "test-named", "--rtt", "20ms", "--foreground"]).unwrap());
    while run(&["status", name]).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    run(&["set", name, "--rtt", "40ms", "--loss-up", "1%"]).unwrap();
    assert!(run(&["set", name]).is_err());
    run(&["status", name, "--json"]).unwrap();
    assert!(run(&["set", name, "--link", "a-b=1gbit"]).is_err(), "it has no sites");
    assert!(run(&["hosts", name]).is_err() && run(&["check", name]).is_err());
    run(&["down", name]).unwrap();
    lab.join().unwrap();
    assert!(run(&["status", name]).is_err());
}

#[test]
fn a_named_lab_of_sites_is_created_changed_checked_and_removed() {
    if lab(&[]).is_none() {
        return;
    }
    let name = "test-sites";
    let up = ["up", name, "--foreground", "--site", "a:2", "--site", "b:1", "--rate", "50mbit"];
    let lab = thread::spawn(move || run(&up).unwrap());
    while run(&["status", name]).is_err() {
        thread::sleep(Duration::from_millis(20));
    }
    run(&["set", name, "--link", "b-a=delay-up:30ms", "--queue", "100p"]).unwrap();
    let unknown = run(&["set", name, "--link", "a-c=1gbit"]).unwrap_err().to_string();
    assert!(unknown.contains("no site 'c'"), "{unknown}");
    let unknown = run(&["exec", name, "a3", "--", "true"]).unwrap_err().to_string();
    assert!(unknown.contains("no host 'a3', only: a1, a2, b1"), "{unknown}");
    run(&["hosts", name]).unwrap();
    run(&["hosts", name, "--json"]).unwrap();
    // On a busy machine the measurement may deviate; only the form of the result is tested.
    let checked = run(&["check", name, "--each", "100ms"]);
    assert!(checked.is_ok() || checked.unwrap_err().to_string().contains("the lab"));
    run(&["status", name]).unwrap();
    run(&["status", name, "--json"]).unwrap();
    run(&["down", name]).unwrap();
    lab.join().unwrap();
    assert!(run(&["status", name]).is_err());
}
