//! The commands, as the command line calls them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use clap::Parser;
use common::lab;
use hikyaku_lab::{LabArgs, Report};
use std::fs;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

fn run(words: &[&str]) -> anyhow::Result<ExitCode> {
    hikyaku_lab::run(LabArgs::try_parse_from(["lab"].iter().chain(words))?)
}

#[test]
fn run_gives_the_commands_exit_code_and_a_report() {
    if lab(&[]).is_none() {
        return;
    }
    let file = std::env::temp_dir().join(format!("lab-report-{}", std::process::id()));
    let path = file.to_str().unwrap();
    let code = run(&["run", "--rtt", "20ms", "--report", path, "--", "sh", "-c", "exit 7"]);
    assert_eq!(format!("{:?}", code.unwrap()), format!("{:?}", ExitCode::from(7)));
    let report: Report = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    fs::remove_file(file).unwrap();
    assert!(report.valid, "{:?}", report.problems);
    assert_eq!((report.up.delay_ms, report.up.segments), (10.0, 0));
}

#[test]
fn a_named_lab_is_changed_asked_and_ended() {
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
    run(&["down", name]).unwrap();
    lab.join().unwrap();
    assert!(run(&["status", name]).is_err());
}
