//! `hikyaku perf` ends with the exit codes of docs/cli.md and names the reason.

use crate::common::perf::{Server, hikyaku};
use std::fs::{self, OpenOptions};
use std::net::UdpSocket;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const DONE: i32 = 0;
const USAGE: i32 = 1;
const FAILED: i32 = 2;
const MAY_PASS: i32 = 5;
const WILL_FAIL: i32 = 6;

/// How the program is run.
enum By {
    Anybody,
    /// With a standard output that accepts no data (/dev/full).
    Full,
    /// As a user without any rights. Needs root.
    Nobody,
    /// Without a network. Needs root.
    Alone,
}

#[test]
fn every_failure_has_its_documented_code() {
    let server = Server::start(&["--max-time", "5"]);
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let at = |port: u16, more: &str| format!("-c 127.0.0.1:{port} {more}");
    let taken = format!("-s -p {}", server.port);
    for (by, line, code, words) in [
        (By::Anybody, "--help".to_owned(), DONE, ""),
        (By::Anybody, at(server.port, "-n 1M"), DONE, ""),
        (By::Anybody, at(server.port, "-n 1M --min 1k"), DONE, ""),
        (
            By::Anybody,
            at(server.port, "-n 1M -R --min 1000T"),
            FAILED,
            "--min 1000000 Gbit/s is wanted",
        ),
        (By::Anybody, at(server.port, "--bidir --min 1k"), USAGE, "cannot be used with"),
        (By::Anybody, String::new(), USAGE, "missing: --server or --client or HOST or --mesh"),
        (By::Anybody, "-c h -t 0".to_owned(), USAGE, "--time"),
        (By::Anybody, "-c h:0".to_owned(), USAGE, "'0' is not a port"),
        (By::Full, at(server.port, "-n 1M -J"), FAILED, "cannot write to standard output"),
        (By::Anybody, at(closed, ""), MAY_PASS, "connection refused"),
        (By::Anybody, at(silent_port, ""), MAY_PASS, "no answer from 127.0.0.1"),
        (By::Alone, "-c 203.0.113.1".to_owned(), MAY_PASS, "203.0.113.1"),
        (By::Anybody, taken, MAY_PASS, "is in use"),
        (By::Anybody, at(server.port, "-t 6"), WILL_FAIL, "--max-time"),
        (By::Anybody, "-c 127.0.0.1 -6".to_owned(), WILL_FAIL, "no IPv6 address"),
        (By::Anybody, "-s -p 0 -B 203.0.113.1".to_owned(), WILL_FAIL, "no address 203.0.113.1"),
        (By::Anybody, "-s -p 0 --logfile /no/log".to_owned(), WILL_FAIL, "/no/log: no such file"),
        (By::Nobody, "-s -p 0".to_owned(), WILL_FAIL, "ermission denied"),
    ] {
        check(&server.state, &by, &line, code, words);
    }
}

#[test]
fn an_unknown_host_is_6_and_an_unreachable_resolver_is_5() {
    let state = crate::common::scratch("unknown");
    for family in ["", "-4"] {
        let mut command = hikyaku(&state);
        command.args(["perf", "-c", "does-not-exist.invalid"]);
        let output = command.args(family.split_whitespace()).output().unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        let code = if text.contains("no name server") { MAY_PASS } else { WILL_FAIL };
        assert_eq!(output.status.code(), Some(code), "{text}");
        assert!(text.contains("does-not-exist.invalid: "), "{text}");
    }
    let _ = fs::remove_dir_all(&state);
}

fn check(state: &PathBuf, by: &By, line: &str, code: i32, words: &str) {
    let plain = hikyaku(state);
    let mut command = match by {
        By::Anybody | By::Full => plain,
        By::Nobody | By::Alone if !is_root() => {
            eprintln!("SKIPPED: {line}: needs root");
            return;
        }
        By::Nobody => {
            let mut command = Command::new("setpriv");
            command.args(["--reuid=61999", "--regid=61999", "--clear-groups"]);
            let locked = state.join("locked");
            fs::create_dir_all(&locked).unwrap();
            fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
            command.arg(plain.get_program()).env("XDG_STATE_HOME", locked);
            command
        }
        By::Alone => {
            let mut command = Command::new("unshare");
            command.arg("--net").arg(plain.get_program());
            command.env("XDG_STATE_HOME", state);
            command
        }
    };
    if matches!(by, By::Full) {
        command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
    } else {
        command.stdout(Stdio::null());
    }
    let child = command.arg("perf").args(line.split_whitespace()).stderr(Stdio::piped()).spawn();
    let output = child.unwrap().wait_with_output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{line}: {text}");
    assert!(text.contains(words), "{line}: {text}");
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}
