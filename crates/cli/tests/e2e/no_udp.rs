//! `hikyaku cp --no-udp` on a machine that forbids UDP entirely, also on loopback, at both ends.

use crate::common::{Place, Sshd, partials, process, random, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::Write;
use std::net::UdpSocket;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A network namespace that forbids only UDP; dropping this removes it.
struct WithoutUdp(String);

impl WithoutUdp {
    fn new() -> Self {
        let namespace = Self(format!("hk-no-udp-{}", std::process::id()));
        let name = namespace.0.as_str();
        ip(&["netns", "add", name]);
        ip(&["-n", name, "link", "set", "lo", "up"]);
        // The routing rule has to come before the one for local addresses.
        ip(&["-n", name, "rule", "add", "pref", "5", "ipproto", "udp", "prohibit"]);
        ip(&["-n", name, "rule", "add", "pref", "10", "lookup", "local"]);
        ip(&["-n", name, "rule", "del", "pref", "0", "lookup", "local"]);
        namespace
    }
}

impl Drop for WithoutUdp {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).status();
    }
}

fn ip(arguments: &[&str]) {
    assert!(Command::new("ip").args(arguments).status().unwrap().success(), "{arguments:?}");
}

/// Checks that UDP does not work in the namespace. The test runs itself there with this function.
#[test]
fn probe() {
    if std::env::var_os("HIKYAKU_PROBE").is_none() {
        return;
    }
    let there = UdpSocket::bind("127.0.0.1:0").unwrap();
    let here = UdpSocket::bind("127.0.0.1:0").unwrap();
    assert!(here.send_to(b"x", there.local_addr().unwrap()).is_err(), "UDP is allowed");
}

#[test]
fn data_go_by_tcp_or_ssh_if_udp_is_forbidden_on_loopback_too() {
    if fs::metadata("/proc/self").unwrap().uid() != 0 {
        eprintln!("\n*** SKIPPED, because namespaces need root ***\n");
        return;
    }
    let namespace = WithoutUdp::new();
    let mut probe = Command::new("ip");
    probe.args(["netns", "exec", &namespace.0]).arg(std::env::current_exe().unwrap());
    let output =
        probe.args(["--exact", "no_udp::probe"]).env("HIKYAKU_PROBE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    let ends = [namespace.0.as_str(), &namespace.0];
    let sshd = Sshd::start_at("no-udp", &Place::Namespaces(ends, "127.0.0.1"));
    let bytes = random(6, 20_000_000);
    fs::write(sshd.at("a"), &bytes).unwrap();
    let (a, got) = (sshd.at("a").display().to_string(), sshd.at("got").display().to_string());
    for (from, to, made) in [(&a, &sshd.far("put"), "put"), (&sshd.far("put"), &got, "got")] {
        for flags in [&["--via", "ssh"][..], &["--no-udp"], &[]] {
            let output = sshd.cp(&[flags, &[from, to]].concat()).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{flags:?} {to}: {said}\n{}", sshd.log());
            // Without a flag the user is told.
            let is_told = said.contains("go over several TCP connections");
            assert_eq!(is_told, flags.is_empty(), "{said}");
            assert!(fs::read(sshd.at(made)).unwrap() == bytes, "{to}");
            fs::remove_file(sshd.at(made)).unwrap();
            fs::write(sshd.at("put"), &bytes).unwrap();
        }
    }
    // What only data over UDP have is named where another carrier was found, and where the user's settings chose it.
    fs::create_dir_all(sshd.at("config/hikyaku")).unwrap();
    // A typed option that protects something is refused where it cannot hold.
    let typed = ["--cipher", "aes128gcm", "--policy", "scavenger"];
    for (code, set, flags, named) in [
        (5, "", &typed[..], ", and nothing else may carry data with --cipher and --policy"),
        (0, "policy = \"scavenger\"", &[], "; what is set as --policy has no effect without UDP"),
        (0, "buffer = \"8MB\"", &["--no-udp"], "what is set as --buffer has no effect without UDP"),
        (
            5,
            "",
            &typed[2..],
            "\ntry: let UDP ports 60001 to 60999 through to it, or leave out --policy",
        ),
        (1, "udp = false", &typed[..2], "--cipher: only UDP carries data so"),
        (1, "", &["--via", "tcp", "--policy", "fair"], "--policy has no effect"),
        (1, "", &["--via", "ssh", "--policy", "fair"], "--policy has no effect"),
    ] {
        let _ = fs::remove_file(&got);
        fs::write(sshd.at("config/hikyaku/config.toml"), format!("[default]\n{set}\n")).unwrap();
        let mut command = sshd.cp(&[flags, &[&sshd.far("put"), &got]].concat());
        let output = command.env("XDG_CONFIG_HOME", sshd.at("config")).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{set} {flags:?}: {said}");
        assert!(said.contains(named), "{set} {flags:?}: {said}");
        assert_eq!(Path::new(&got).exists(), code == 0, "{set} {flags:?}");
    }
    let output = sshd.perf(&["ssh://far", "-n", "1M"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("no UDP gets through to far (127.0.0.1:"), "{said}");
    assert!(said.contains("\ntry: let UDP ports 60001 to 60999 through"), "{said}");
}

/// The far side's process of a server: the one that has this state folder in its environment.
fn far_side(sshd: &Sshd) -> Option<Pid> {
    let state = format!("XDG_STATE_HOME={}", sshd.at("state").display());
    let is_it = |process: &Path| {
        let line = fs::read(process.join("cmdline")).unwrap_or_default();
        let environment = fs::read(process.join("environ")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == b"--stdio")
            && line.starts_with(env!("CARGO_BIN_EXE_hikyaku").as_bytes())
            && environment.split(|byte| *byte == 0).any(|word| word == state.as_bytes())
    };
    let mut processes = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let found = processes.find(|process| is_it(process))?;
    Pid::from_raw(found.file_name()?.to_str()?.parse().ok()?)
}

/// A pipe has no time-out of its own.
#[test]
fn a_far_side_that_falls_silent_is_given_up_through_ssh_too() {
    falls_silent(&Sshd::start("no-udp-silent"), "ssh");
}

#[test]
fn a_far_side_that_falls_silent_is_given_up_over_tcp_too() {
    falls_silent(&Sshd::start("no-udp-silent-tcp"), "tcp");
}

fn falls_silent(sshd: &Sshd, via: &str) {
    let options = ["--via", via, "--timeout", "5s", "--retry-for", "0"];
    let mut command = sshd.cp(&[&options[..], &["-", &sshd.far("b")]].concat());
    let child = command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    let mut source = child.stdin.take().unwrap();
    source.write_all(&random(1, 100_000)).unwrap();
    wait_until("its unfinished file", || !partials(&sshd.at("")).is_empty());
    let far = far_side(sshd).unwrap();
    process::stop(far.as_raw_pid().cast_unsigned());
    let output = child.wait_with_output().unwrap();
    kill_process(far, Signal::KILL).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(5), "{via}: {said}");
    assert!(said.contains("the connection is lost"), "{via}: {said}");
}
