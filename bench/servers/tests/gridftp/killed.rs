//! Transfers that are killed while they run over a tuned number of connections: the next run begins with what the first one has
//! brought, but for its last 64 MB, and the file is the same.

use super::{PATIENCE, Stage, is_there, lab_program};
use hikyaku_bench_servers::{Scene, events, is_same, said, write_file};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::net::IpAddr;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;
use xtask::servers::gridftp;

const BYTES: u64 = 200_000_000;
/// The first run is killed behind this number of bytes.
const KILLED_AT: u64 = 80_000_000;
/// Bytes that may be sent twice.
const TWICE_BYTES: u64 = 64_000_000;

/// Lets `guc` run in a process whose number is in `pid`, behind the words of `before`. `guc` begins with `words`.
fn shelled(mut before: Command, pid: &Path, program: &std::ffi::OsStr, words: &[&str]) -> Command {
    before.args(["sh", "-c", "echo $$ > \"$0\"; exec \"$@\""]).arg(pid).arg(program);
    before.args(["guc", "--json-lines"]).args(words);
    before
}

/// Runs the command until `KILLED_AT` bytes have come and `is_ready` holds for one of its events, kills `guc`, and runs it once
/// more. Returns the bytes of the first run at its end, and those that the second one has used.
fn killed(
    command: &dyn Fn() -> Command,
    pid: &Path,
    is_ready: &dyn Fn(&Value) -> bool,
) -> (u64, u64) {
    let mut first = command().stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let lines = BufReader::new(first.stdout.take().unwrap()).lines();
    let (mut has_been, mut bytes, until) = (false, 0, Instant::now() + PATIENCE);
    for line in lines.map_while(Result::ok) {
        let event: Value = serde_json::from_str(&line).unwrap();
        has_been |= is_ready(&event);
        if event["event"] == "progress" {
            bytes = event["bytes"].as_u64().unwrap();
        }
        if has_been && bytes >= KILLED_AT {
            break;
        }
        assert!(event["event"] != "end" && Instant::now() < until, "{bytes} bytes: {event}");
    }
    let number = fs::read_to_string(pid).unwrap().trim().parse().unwrap();
    kill_process(Pid::from_raw(number).unwrap(), Signal::KILL).unwrap();
    assert!(!first.wait().unwrap().success(), "it ended before it was killed");
    let second = command().output().unwrap();
    assert!(second.status.success(), "{}", said(&second));
    let end = events(&second).pop().unwrap();
    assert_eq!(end["bytes"], BYTES, "{end}");
    (bytes, end["kept_bytes"].as_u64().unwrap())
}

#[test]
fn a_download_over_several_channels_goes_on_after_a_kill() {
    if !is_there() {
        return;
    }
    if !xtask::is_root() {
        eprintln!("\n*** SKIPPED, because the lab needs root ***\n");
        return;
    }
    let scene = Scene::new("guc-killed");
    let ip = IpAddr::from([10, 77, 1, 1]);
    let (server, server_command) = gridftp::prepare(&scene.at("server"), ip, 2811).unwrap();
    write_file(&server.data.join("big"), BYTES as usize);
    let (url, pid) = (format!("{}/big", server.url), scene.at("pid"));
    let command = || {
        let mut lab = scene.hikyaku();
        // A connection with a window of 64 KB has 10 Mbit/s over 50 ms.
        lab.args(["lab", "run", "--rate", "400mbit", "--rtt", "50ms", "--queue", "500p"]);
        lab.arg("--server-cmd").arg(format!("{server_command:?}")).arg("--");
        shelled(lab, &pid, &lab_program(&scene), &["-tcp-bs", "65536", &url, "got"])
    };
    // A channel has up to 16 connections.
    let is_ready =
        |event: &Value| event["event"] == "epoch" && event["connections"].as_u64() >= Some(28);
    let (before, kept) = killed(&command, &pid, &is_ready);
    assert!(kept + TWICE_BYTES >= before, "{kept} of {before} bytes");
    assert!(is_same(&scene.at("got"), &server.data.join("big")));
}

#[test]
fn an_upload_over_several_connections_goes_on_after_a_kill() {
    let Some(stage) = Stage::new("guc-killed-up") else { return };
    write_file(&stage.here("big"), BYTES as usize);
    let (url, pid) = (stage.url("up"), stage.here("pid"));
    let command = || {
        // The rate leaves time to kill it.
        let mut env = Command::new("env");
        env.env("XDG_STATE_HOME", stage.here("state")).current_dir(stage.here(""));
        shelled(env, &pid, &lab_program(&stage.scene), &["--rate", "640mbit", "big", &url])
    };
    let (before, kept) = killed(&command, &pid, &|_| true);
    assert!(kept + TWICE_BYTES >= before, "{kept} of {before} bytes");
    assert!(is_same(&stage.here("big"), &stage.there("up")));
    let left = fs::read_dir(&stage.server.data).unwrap().count();
    assert_eq!(left, 1, "no unfinished file is left");
}
