//! A server of `hikyaku perf`, run by an ordinary user with a low process limit, under hostile
//! clients: it keeps running, stays within its memory limit, and still serves an honest client.
//!
//! The long version: `cargo test -p hikyaku-cli --test e2e -- --ignored --nocapture siege`.

use crate::common::hostile::Siege;
use crate::common::perf::{Server, hikyaku, program};
use serde_json::Value;
use std::fs;
use std::io::BufRead;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Process limit of the server's user.
const PROCESS_LIMIT: u32 = 60;
/// Memory limit of the server in bytes, as option and as checked by the test.
const MEMORY_LIMIT_BYTES: u64 = 256 << 20;
const MEMORY_OPTION: &str = "256MiB";
/// User ids that nobody else uses. The process limit counts all processes of a user.
const FIRST_USER_ID: u32 = 61_000;

#[test]
fn a_server_survives_hostile_clients() {
    besiege(27, Duration::from_secs(6));
}

#[test]
#[ignore = "a minute on all processors"]
fn a_server_survives_two_hundred_hostile_clients() {
    besiege(200, Duration::from_secs(60));
}

/// More clients than the process limit of the server's user allows threads for.
const ORDINARY_CLIENTS: usize = 30;

#[test]
fn ordinary_clients_beyond_the_limit_are_refused_with_a_reason() {
    let Some(mut server) = server_of_an_ordinary_user(&[]) else {
        eprintln!("SKIPPED: to be another user needs root, setpriv and prlimit");
        return;
    };
    let begin = |_| {
        let mut client = server.client(&["-t", "4", "-b", "1M", "-J"]);
        client.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let clients: Vec<_> = (0..ORDINARY_CLIENTS).map(begin).collect();
    let (mut measured, mut refused) = (0, 0);
    for client in clients {
        let output = client.wait_with_output().unwrap();
        let words = String::from_utf8_lossy(&output.stderr);
        match output.status.code() {
            Some(0) => measured += 1,
            Some(5) if words.contains("the server refuses the test: ") => refused += 1,
            code => panic!("{code:?}: {words}"),
        }
    }
    assert!(measured > 5 && refused > 0, "{measured} measured, {refused} refused");
    assert!(server.child.try_wait().unwrap().is_none(), "the server ended");
    server.report(&["-n", "1M"]);
}

fn besiege(count: usize, time: Duration) {
    let Some(mut server) = server_of_an_ordinary_user(&["--max-memory", MEMORY_OPTION]) else {
        eprintln!("SKIPPED: to be another user needs root, setpriv and prlimit");
        return;
    };
    let key = loop {
        let mut line = String::new();
        assert!(server.lines.read_line(&mut line).unwrap() > 0, "the server ended");
        if let Some(key) = line.trim().strip_prefix("key ") {
            break key.parse().unwrap();
        }
    };
    let lines = std::mem::replace(&mut server.lines, empty());
    // The server's output has to be read, or it would block.
    let reading = std::thread::spawn(move || lines.lines().map_while(Result::ok).count());
    let address = SocketAddr::from(([127, 0, 0, 1], server.port));
    let begin = Instant::now();
    let siege = Siege::begin(address, key, count);
    let (mut measured, mut refused) = (0, 0);
    while begin.elapsed() < time {
        match measure(&server) {
            Measured::Yes => measured += 1,
            Measured::NotNow => refused += 1,
        }
        let ended = server.child.try_wait().unwrap();
        assert!(ended.is_none(), "the server ended: {ended:?}");
    }
    let connected = siege.connected();
    drop(siege);
    let most = peak_memory(server.child.id());
    eprintln!(
        "{count} hostile clients with {connected} connections, peak memory {} MiB; the honest client \
         completed {measured} tests and was refused {refused} times",
        most >> 20
    );
    assert!(connected > count as u64 / 2, "too few hostile connections: {connected}");
    assert!(most <= MEMORY_LIMIT_BYTES, "{most} bytes of memory, {MEMORY_LIMIT_BYTES} allowed");
    assert!(measured > 0, "no test of the honest client succeeded, {refused} were refused");
    // When the attackers are gone there is room at once, or after their idle tests have lost their
    // places.
    let again = (0..30).any(|_| matches!(measure(&server), Measured::Yes));
    assert!(again, "no test succeeded after the attack");
    assert!(server.child.try_wait().unwrap().is_none(), "the server ended");
    server.child.kill().unwrap();
    assert!(reading.join().unwrap() < 60_000, "the server printed too much");
}

enum Measured {
    Yes,
    NotNow,
}

/// A test of an honest client from another local address.
fn measure(server: &Server) -> Measured {
    let output = server.run(&["-B", "127.0.0.2", "-t", "0.5", "-J"]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    if output.status.success() {
        let bytes = report["end"]["sum_received"]["bytes"].as_u64();
        assert!(bytes.is_some_and(|bytes| bytes > 0), "{report:#}");
        return Measured::Yes;
    }
    // It is told the reason, and that it may try again.
    let words = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{words}");
    Measured::NotNow
}

fn server_of_an_ordinary_user(options: &[&str]) -> Option<Server> {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let has =
        |tool: &str| Command::new(tool).arg("--version").stdout(Stdio::null()).status().is_ok();
    if !is_root || !has("setpriv") || !has("prlimit") {
        return None;
    }
    let user = (FIRST_USER_ID + std::process::id() % 4000).to_string();
    let state = crate::common::scratch("siege");
    fs::create_dir_all(&state).unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o777)).unwrap();
    let environment = hikyaku(&state);
    let mut command = Command::new("prlimit");
    command.arg(format!("--nproc={PROCESS_LIMIT}")).args(["setpriv", "--clear-groups"]);
    command.args(["--reuid", &user, "--regid", &user]).arg(program());
    for (name, value) in environment.get_envs() {
        command.env(name, value.unwrap());
    }
    command.stdin(Stdio::null());
    Some(Server::spawn(command, state, Stdio::inherit(), options))
}

/// Peak resident memory of the process in bytes.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix("kB").unwrap().trim().parse::<u64>().unwrap() * 1024
}

fn empty() -> std::io::BufReader<std::process::ChildStdout> {
    let mut child = Command::new("true").stdout(Stdio::piped()).spawn().unwrap();
    let lines = std::io::BufReader::new(child.stdout.take().unwrap());
    child.wait().unwrap();
    lines
}
