//! Transfers over a path that changes: the client gets another port, address or interface, or its
//! host is suspended. The tests check the transferred bytes, not the time.

use crate::common::{Place, Sshd, process};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

const TRANSFER_BYTES: u64 = 40_000_000;

fn is_root() -> bool {
    let root = user_id() == 0;
    if !root {
        eprintln!("\n*** SKIPPED, because namespaces need root ***\n");
    }
    root
}

fn user_id() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

fn state() -> PathBuf {
    crate::common::scratch("moving")
}

/// Checks that all bytes have arrived.
fn check(output: &Output) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    let text = String::from_utf8_lossy(&output.stdout);
    let report: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{error}"));
    let bytes = report.pointer("/end/sum_received/bytes").and_then(Value::as_u64);
    assert_eq!(bytes, Some(TRANSFER_BYTES), "{report:#}");
}

// spec: path-1
#[test]
fn a_transfer_survives_a_nat_that_rebinds_twice_a_second() {
    if !is_root() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_hikyaku");
    for direction in [None, Some("-R")] {
        let state = state();
        let server = format!("{program} perf -s -1");
        let mut lab = Command::new(program);
        lab.args(["lab", "run", "--rate", "100mbit", "--rtt", "20ms", "--rebind-every", "500ms"]);
        lab.args(["--server-cmd", &server, "--", program, "perf", "-c", "server", "-J"]);
        lab.args(["-n", &TRANSFER_BYTES.to_string()]).args(direction);
        lab.env("XDG_STATE_HOME", &state).env("XDG_CACHE_HOME", &state).stdin(Stdio::null());
        let output = lab.output().unwrap();
        let _ = std::fs::remove_dir_all(&state);
        check(&output);
    }
}

/// Two namespaces connected by a veth pair; dropping this removes them.
struct Wire {
    names: [String; 2],
    state: PathBuf,
    server: Option<Child>,
}

const SERVER: &str = "10.91.0.2";

impl Wire {
    fn new() -> Self {
        let state = state();
        std::fs::create_dir_all(&state).unwrap();
        let id = state.file_name().unwrap().to_str().unwrap().trim_start_matches("hikyaku-");
        let names = ["a", "b"].map(|end| format!("{id}-{end}"));
        let wire = Self { names, state, server: None };
        for name in &wire.names {
            ip(&["netns", "add", name]);
        }
        let [a, b] = &wire.names;
        ip(&[
            "link", "add", "wire", "netns", a, "type", "veth", "peer", "name", "wire", "netns", b,
        ]);
        for (name, address) in [(a, "10.91.0.1/24"), (b, "10.91.0.2/24")] {
            ip(&["-n", name, "addr", "add", address, "dev", "wire"]);
            ip(&["-n", name, "link", "set", "wire", "up"]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        wire
    }

    fn command(&self, end: usize) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[end], env!("CARGO_BIN_EXE_hikyaku")]);
        command.env("XDG_STATE_HOME", &self.state).env("XDG_CACHE_HOME", &self.state);
        command.stdin(Stdio::null());
        command
    }

    /// Runs a transfer of several seconds and calls `trouble` after the first second.
    fn transfer(&mut self, direction: Option<&str>, trouble: impl FnOnce(&Self, &Child)) {
        let mut server = self.command(1);
        self.server =
            Some(server.args(["perf", "-s", "-1"]).stdout(Stdio::null()).spawn().unwrap());
        sleep(Duration::from_millis(300));
        let mut client = self.command(0);
        client.args(["perf", "-c", SERVER, "-J", "-b", "100M", "-n", &TRANSFER_BYTES.to_string()]);
        client.args(direction).stdout(Stdio::piped()).stderr(Stdio::piped());
        let client = client.spawn().unwrap();
        sleep(Duration::from_secs(1));
        trouble(self, &client);
        check(&client.wait_with_output().unwrap());
        self.stop();
    }

    /// Runs `ip` in the client's namespace.
    fn ip(&self, arguments: &str) {
        let mut all = vec!["-n", &self.names[0]];
        all.extend(arguments.split(' '));
        ip(&all);
    }

    fn stop(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.stop();
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "del", name]).status();
        }
        let _ = std::fs::remove_dir_all(&self.state);
    }
}

fn ip(arguments: &[&str]) {
    let status = Command::new("ip").args(arguments).status().unwrap();
    assert!(status.success(), "ip {arguments:?}");
}

// spec: path-3
#[test]
fn a_transfer_survives_a_change_of_the_clients_address() {
    if !is_root() {
        return;
    }
    let mut wire = Wire::new();
    for (direction, old, new) in [(None, 1, 3), (Some("-R"), 3, 4)] {
        wire.transfer(direction, |wire, _| {
            wire.ip(&format!("addr del 10.91.0.{old}/24 dev wire"));
            wire.ip(&format!("addr add 10.91.0.{new}/24 dev wire"));
        });
    }
}

#[test]
fn a_transfer_survives_an_interface_that_is_down_for_seconds() {
    if !is_root() {
        return;
    }
    let mut wire = Wire::new();
    for direction in [None, Some("-R")] {
        wire.transfer(direction, |wire, _| {
            wire.ip("link set wire down");
            sleep(Duration::from_secs(3));
            wire.ip("link set wire up");
        });
    }
}

#[test]
fn a_transfer_survives_a_suspended_host() {
    if !is_root() {
        return;
    }
    let mut wire = Wire::new();
    for direction in [None, Some("-R")] {
        wire.transfer(direction, |_, client| {
            // `ip netns exec` executes the program in its own place, so this is the program's
            // process.
            process::stop(client.id());
            sleep(Duration::from_secs(3));
            process::go_on(client.id());
        });
    }
}

/// A running copy over a link that can be interrupted.
struct Begun {
    sshd: Sshd,
    bytes: Vec<u8>,
    child: Child,
}

impl Begun {
    /// Starts a copy with these additional arguments.
    fn new(name: &str, wire: &Wire, arguments: &[&str]) -> Self {
        let [near, far] = &wire.names;
        let sshd = Sshd::start_at(name, &Place::Namespaces([near, far], SERVER));
        let bytes = crate::common::random(9, 30_000_000);
        std::fs::write(sshd.at("file"), &bytes).unwrap();
        let (from, to) = (sshd.at("file").display().to_string(), sshd.far("copy"));
        let arguments = [&["-l", "40m", "--retry-for", "2m"], arguments, &[&from, &to]].concat();
        let mut child = sshd.cp(&arguments).stderr(Stdio::piped()).spawn().unwrap();
        // The far side writes its unfinished file once ssh has logged in.
        let begin = std::time::Instant::now();
        while !crate::common::listing(&sshd.at("")).iter().any(|(name, _)| is_unfinished(name)) {
            if begin.elapsed() > Duration::from_secs(20) || child.try_wait().unwrap().is_some() {
                let _ = child.kill();
                let mut said = String::new();
                child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
                panic!("the copy did not start: {said}\n{}", sshd.log());
            }
            sleep(Duration::from_millis(50));
        }
        sleep(Duration::from_secs(1));
        Self { sshd, bytes, child }
    }

    /// Checks that the copy succeeds, over more than one connection.
    fn check(mut self) {
        let mut said = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}\n{}", self.sshd.log());
        assert!(said.contains("the connection is lost; trying again"), "{said}");
        assert!(std::fs::read(self.sshd.at("copy")).unwrap() == self.bytes, "{said}");
    }
}

/// F09: an outage longer than the timeout of a connection costs only time, whether the transport or
/// ssh gives up first.
#[test]
fn a_copy_continues_by_itself_after_a_long_outage() {
    if !is_root() {
        return;
    }
    let impatient = ["-oServerAliveInterval=1", "-oServerAliveCountMax=2"];
    for (name, arguments, outage) in
        [("lost", &["--timeout", "5s"], 9), ("ssh-lost", &impatient, 14)]
    {
        let wire = Wire::new();
        let begun = Begun::new(name, &wire, arguments);
        wire.ip("link set wire down");
        sleep(Duration::from_secs(outage));
        wire.ip("link set wire up");
        begun.check();
    }
}

/// A far side that is killed, for example by the kernel's OOM killer, is started again.
#[test]
fn a_copy_continues_by_itself_after_its_far_side_was_killed() {
    if !is_root() {
        return;
    }
    let wire = Wire::new();
    let begun = Begun::new("far-killed", &wire, &[]);
    let far = serving(&begun.sshd);
    assert!(Command::new("kill").args(["-KILL", &far]).status().unwrap().success());
    begun.check();
}

/// The process id of the program that `sshd` has started.
fn serving(sshd: &Sshd) -> String {
    let state = format!("XDG_STATE_HOME={}\0", sshd.at("state").display());
    let is_ours = |id: &str| {
        let read = |file: &str| std::fs::read(format!("/proc/{id}/{file}")).unwrap_or_default();
        let serves = read("cmdline").ends_with(b"serve\0--stdio\0");
        serves && read("environ").windows(state.len()).any(|part| part == state.as_bytes())
    };
    let all = std::fs::read_dir("/proc").unwrap().flatten();
    let names = all.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.into_iter().find(|id| is_ours(id)).expect("the far side runs")
}

fn is_unfinished(name: &std::path::Path) -> bool {
    name.extension().is_some_and(|extension| extension == "hikyaku")
}
