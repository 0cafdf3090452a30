//! `hikyaku perf USER@HOST`: the server is started through ssh for one test.

use crate::common::perf::{Server, hikyaku};
use crate::common::{Sshd, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output, Stdio};

const USAGE: i32 = 1;
const MAY_PASS: i32 = 5;
const WILL_FAIL: i32 = 6;

fn report(output: &Output) -> Value {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.is_empty(), "{said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_test_in_either_direction_counts_every_byte() {
    const BYTES: u64 = 3_000_000;
    let sshd = Sshd::start("perf-ssh");
    for reverse in [None, Some("-R")] {
        let mut command = sshd.perf(&["ssh://far", "-n", &BYTES.to_string(), "--json"]);
        let report = report(&command.args(reverse).output().unwrap());
        let received = &report["end"]["sum_received"]["bytes"];
        assert_eq!(received.as_u64(), Some(BYTES), "{reverse:?} {report}");
        assert_eq!(report["start"]["test_start"]["reverse"], u8::from(reverse.is_some()));
        let port = report["start"]["connected"][0]["remote_port"].as_u64().unwrap();
        assert!((60001..=60999).contains(&port), "{report}");
        assert!(report.get("error").is_none(), "{report}");
    }
}

#[test]
fn a_user_before_the_host_means_ssh() {
    let sshd = Sshd::start("perf-ssh-user");
    let user = Command::new("id").arg("-un").output().unwrap();
    let server = format!("{}@far", String::from_utf8(user.stdout).unwrap().trim());
    for given in [vec![server.as_str()], vec!["-c", server.as_str()]] {
        let options = ["-t", "0.5", "-b", "20M", "--streams", "object", "--policy", "scavenger"];
        let output = sshd.perf(&given).args(options).output().unwrap();
        let (text, said) = (String::from_utf8_lossy(&output.stdout), &output.stderr);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(said));
        assert!(text.contains("scavenger") && text.contains("goodput"), "{text}");
    }
}

#[test]
fn a_host_alone_is_the_address_of_a_server() {
    let server = Server::start(&["-1"]);
    let address = format!("127.0.0.1:{}", server.port);
    let mut command = hikyaku(&server.state);
    let output = command.args(["perf", &address, "-n", "1M", "--json"]).output().unwrap();
    assert_eq!(report(&output)["end"]["sum_received"]["bytes"], 1 << 20);
    let output = hikyaku(&server.state).args(["perf", "127.0.0.1", "--ssh", "x"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(USAGE), "{said}");
    assert!(said.contains("\ntry: ssh://127.0.0.1"), "{said}");
}

#[test]
fn what_cannot_be_done_through_ssh_is_said_with_a_remedy() {
    let sshd = Sshd::start("perf-ssh-errors");
    for (arguments, code, wanted, remedy) in [
        ("ssh://far -P 2", USAGE, "-P needs a server that waits", "try: hikyaku perf -s on far"),
        ("ssh://far --bidir", USAGE, "--bidir needs", "try: hikyaku perf -s"),
        ("ssh://far --compete tcp:1", USAGE, "--compete needs", "try: hikyaku perf -s"),
        ("ssh://far -p 5208", USAGE, "-p needs", "try: hikyaku perf -s"),
        ("ssh://broken", MAY_PASS, "broken: ssh did not log in", "try: "),
        (
            "ssh://far --remote-path /nowhere/hikyaku",
            WILL_FAIL,
            "/nowhere/hikyaku is not installed",
            "try: --bootstrap, which installs it",
        ),
    ] {
        let output = sshd.perf(&arguments.split(' ').collect::<Vec<_>>()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments}: {said}");
        assert!(said.contains(wanted) && said.contains(remedy), "{arguments}: {said}");
    }
}

/// Whether a far side with this server's state directory is running.
fn is_serving(sshd: &Sshd) -> bool {
    let state = format!("XDG_STATE_HOME={}", sshd.at("state").display());
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    processes.any(|process| {
        let has = |file: &str, wanted: &[u8]| {
            let words = fs::read(process.join(file)).unwrap_or_default();
            words.split(|byte| *byte == 0).any(|word| word == wanted)
        };
        has("cmdline", b"--stdio") && has("environ", state.as_bytes())
    })
}

#[test]
fn a_signal_ends_the_test_and_the_server() {
    let sshd = Sshd::start("perf-ssh-signal");
    for signal in [Signal::TERM, Signal::KILL] {
        let mut command = sshd.perf(&["ssh://far", "-t", "60", "-b", "10M", "--json-stream"]);
        let mut client = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("interval")));
        assert!(is_serving(&sshd));
        kill_process(Pid::from_child(&client), signal).unwrap();
        let rest: Vec<String> = lines.map_while(Result::ok).collect();
        assert_eq!(client.wait().unwrap().signal(), Some(signal.as_raw()));
        if signal == Signal::TERM {
            assert!(rest.last().unwrap().contains("\"end\""), "{rest:?}");
        }
        wait_until("the end of the far side", || !is_serving(&sshd));
    }
}

#[test]
fn a_signal_ends_ssh_while_it_logs_in() {
    let sshd = Sshd::start("perf-ssh-early");
    let mark = sshd.at("mark");
    let mut command = sshd.perf(&["ssh://far"]);
    let does = format!("[ \"$1\" = -G ] && exit 1; echo $$ >{}; exec sleep 60", mark.display());
    fs::write(sshd.at("ssh"), format!("#!/bin/sh\n{does}\n")).unwrap();
    let client = command.stderr(Stdio::null()).spawn().unwrap();
    wait_until("ssh", || fs::read_to_string(&mark).is_ok_and(|id| id.ends_with('\n')));
    kill_process(Pid::from_child(&client), Signal::TERM).unwrap();
    assert_eq!(client.wait_with_output().unwrap().status.signal(), Some(15));
    let asks = format!("/proc/{}/cmdline", fs::read_to_string(&mark).unwrap().trim());
    // A zombie process has no command line.
    wait_until("the end of ssh", || fs::read(&asks).unwrap_or_default().is_empty());
}
