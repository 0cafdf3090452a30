//! Exit codes of `lab`, `config`, `keys` and `completions`, and of invalid command lines:
//! every row of `docs/cli.md`, tested with the real program.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A temporary home directory for each test.
struct Home(PathBuf);

/// A mount namespace with its own `/run`: otherwise any other lab that starts on this machine would
/// remove the remains of a dead lab that the test needs.
struct Run(Killed);

/// A child process that is killed at the end of the test.
struct Killed(Child);

impl Run {
    fn new() -> Self {
        let script = "mount -t tmpfs none /run && echo there && exec sleep 1000";
        let mut unshare = Command::new("unshare");
        unshare.args(["-m", "sh", "-c", script]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = Killed(unshare.spawn().unwrap());
        let mut there = String::new();
        BufReader::new(child.0.stdout.take().unwrap()).read_line(&mut there).unwrap();
        assert_eq!(there, "there\n");
        Self(child)
    }

    fn enter(&self, home: &Home) -> Command {
        let mut command = home.command("nsenter");
        let pid = self.0.0.id().to_string();
        command.args(["-m", "-t", &pid, env!("CARGO_BIN_EXE_hikyaku")]);
        command
    }

    fn has(&self, path: &str) -> bool {
        let process = PathBuf::from("/proc").join(self.0.0.id().to_string());
        fs::exists(process.join("root").join(path)).unwrap()
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A lab that is removed at the end of the test.
struct Down<'a>(&'a Home, &'a str);

impl Drop for Down<'_> {
    fn drop(&mut self) {
        self.0.run(&["lab", "down", self.1]);
    }
}

impl Home {
    fn new(name: &str) -> Self {
        let path = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(path.join("config/hikyaku")).unwrap();
        fs::create_dir_all(path.join("state/hikyaku")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .env("XDG_CONFIG_HOME", self.0.join("config"))
            .env("XDG_STATE_HOME", self.0.join("state"))
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(env!("CARGO_BIN_EXE_hikyaku")).args(arguments).output().unwrap()
    }

    /// Runs `line` and checks that it ends with `code` and prints `text`, with the program's name
    /// at most once.
    fn check(&self, line: &str, code: i32, text: &str) {
        let output = self.run(&line.split_whitespace().collect::<Vec<_>>());
        check(line, &output, code, text);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn check(line: &str, output: &Output, code: i32, text: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{line}: {error}");
    assert!(error.contains(text), "{line}: {error}");
    assert!(error.matches("hikyaku: ").count() <= 1, "{line}: {error}");
}

/// Whether the test can create labs. Prints a notice if not.
fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    if !is_root {
        eprintln!("\n*** SKIPPED, because a lab needs root ***\n");
    }
    is_root
}

/// The processes whose command line contains all of these words.
fn processes(words: &[&str]) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_it = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
        words.iter().all(|word| line.contains(&word.as_bytes()))
    };
    pids.filter(is_it).collect()
}

#[test]
fn success_is_0() {
    let home = Home::new("codes-0");
    for line in [
        "--help",
        "--version",
        "help lab",
        "lab run --help",
        "lab status",
        "config show",
        "config show host.example.org",
        "keys list",
        "keys forget nobody.example.org:5208",
        "keys forget nobody.example.org",
        "completions bash",
    ] {
        home.check(line, 0, "");
    }
}

#[test]
fn an_invalid_command_line_is_1() {
    let home = Home::new("codes-1");
    for (line, text) in [
        ("", "Usage"),
        ("fly", "no subcommand 'fly'\ntry: hikyaku help"),
        ("--fast", "no option --fast"),
        ("completions klingon", "SHELL: 'klingon' is none of"),
        ("keys", "Usage"),
        ("keys forget #", "is not a host name"),
        ("keys forget somewhere:door", "'door' is not a port"),
        ("cp --server-rate 0 a hikyaku://h/", "more than nothing"),
        ("cp --server-rate 10mb a hikyaku://h/", "bits or bytes\ntry: 10mbit or 10MB"),
        ("get --limit-rate 0 http://h/x", "more than nothing"),
        ("get --timeout 0 http://h/x", "more than nothing"),
        ("guc -st 0 ftp://h/x file:///x", "more than nothing"),
        ("serve --root . --rate 0", "more than nothing"),
        ("serve", "try: hikyaku serve --root DIR"),
        ("keys install --max-rate 5 h", "needs a unit"),
        ("keys install --root a\"b h", "double quote"),
        ("proxy --rate 0 -D 1080 h", "more than nothing"),
        ("cp -n --manifest m a b", "cannot be used with"),
        ("status nowhere", "try: hikyaku://nowhere"),
        ("config", "Usage"),
        ("config show a b", "one argument too many: b"),
        ("lab", "Usage"),
        ("lab run --loss 1 -- true", "'1' needs a unit: 1%"),
        ("lab run --rtt 200 -- true", "'200' needs a unit: such as 200ms"),
        ("lab run --rate fast -- true", "'fast' is not a rate"),
        ("lab run --servers 0 -- true", "must be from 1 to 254"),
        ("lab run --servers 2 --server-rtt 1ms,2ms,3ms -- true", "3 values for 2 servers"),
        ("lab run --rtt 20ms", "missing: COMMAND"),
        ("lab up Lab", "'Lab' is not a lab's name"),
        ("lab down ../etc", "'../etc' is not a lab's name"),
        ("lab set some-lab", "nothing to set"),
        ("lab exec some-lab client", "missing: COMMAND"),
    ] {
        home.check(line, 1, text);
    }
    let (a, b) = (home.write("a", "a"), home.0.join("b").display().to_string());
    let output = home.run(&["cp", "--exclude", "[", &a, &b]);
    check("cp --exclude [", &output, 1, "'[' is not a pattern");
    for source in [&a, "hikyaku://127.0.0.1/f"] {
        check("cp", &home.run(&["cp", source, ""]), 1, "try: '.'");
    }
}

#[test]
fn a_far_side_whose_near_side_has_gone_says_nothing() {
    let home = Home::new("codes-gone");
    let mut serve = home.command(env!("CARGO_BIN_EXE_hikyaku"));
    let output = serve.args(["serve", "--stdio"]).stdin(Stdio::null()).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_sweep_of_nothing_has_no_verdict() {
    let home = Home::new("codes-sweep");
    let output = home.run(&["perf", "-c", "127.0.0.1", "-p", "1", "--sweep", "2M,4M", "-t", "0.2"]);
    check("perf --sweep", &output, 5, "connection refused");
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(told.contains("not all targets were tried"), "{told}");
    assert!(!told.contains("97 %"), "{told}");
}

#[test]
fn a_lasting_failure_is_6() {
    let home = Home::new("codes-6");
    let schedule = home.write("schedule", "at 5 rate 1mbit\n");
    for (line, text) in [
        ("lab status no-such-lab", "no-such-lab: no such lab"),
        ("lab down no-such-lab", "no-such-lab: no such lab"),
        ("lab set no-such-lab --rtt 20ms", "no-such-lab: no such lab"),
        ("lab exec no-such-lab client -- true", "no-such-lab: no such lab"),
        ("lab exec no-such-lab middle -- true", "no-such-lab: no such lab"),
        ("lab run --schedule /no/such/file -- true", "/no/such/file: no such file"),
        ("lab run --report /no/such/file -- true", "/no/such/file: no such file"),
        (&format!("lab run --schedule {schedule} -- true"), "line 1: '5' needs a unit"),
        ("report /no/such/file", "/no/such/file: no such file"),
        ("proxy on", "try: hikyaku proxy HOST"),
        ("proxy off", "no gateway of this user runs"),
        ("proxy drain", "no gateway of this user runs"),
    ] {
        home.check(line, 6, text);
    }
    // Each piece that fails has a line of its own.
    let output = home.run(&["report", &schedule]);
    assert_eq!(output.status.code(), Some(6), "{}", String::from_utf8_lossy(&output.stderr));
    if cfg!(not(feature = "s3")) {
        home.check("cp s3://bucket/f .", 6, "built without S3");
        home.check("cp /dev/null s3://bucket/f", 6, "try: build it with S3");
    }
    let dir = home.0.join("dir").display().to_string();
    fs::create_dir_all(home.0.join("dir/sub")).unwrap();
    home.check(&format!("cp -r {dir} {dir}/sub"), 6, "is not copied into itself");
    let copied = home.write("a", "a");
    home.write("config/hikyaku/config.toml", "[default]\nspeed = 3\n");
    let output = home.run(&["cp", "--json", &copied, &format!("{copied}b")]);
    check("cp --json", &output, 6, "speed");
    let events = String::from_utf8_lossy(&output.stdout);
    assert!(events.contains("\"exit_code\":6"), "the last event tells the code: {events}");
    home.check("config show", 6, "[default] speed: there is no such setting");
    fs::remove_file(home.0.join("config/hikyaku/config.toml")).unwrap();
    fs::create_dir(home.0.join("config/hikyaku/config.toml")).unwrap();
    home.check("config show", 6, "config.toml: is a directory");
    fs::create_dir(home.0.join("state/hikyaku/known_peers")).unwrap();
    home.check("keys list", 6, "known_peers: is a directory");
    let mut homeless = home.command(env!("CARGO_BIN_EXE_hikyaku"));
    let homeless = homeless.args(["keys", "list"]).env_remove("XDG_STATE_HOME");
    let output = homeless.env_remove("HOME").output().unwrap();
    check("no HOME", &output, 6, "try: set HOME or XDG_STATE_HOME");
}

#[test]
fn a_host_that_ssh_cannot_reach_is_5() {
    let home = Home::new("codes-5");
    let ssh = home.write("ssh", "#!/bin/sh\nexit 255\n");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).unwrap();
    let output = home.run(&["keys", "fetch", "-S", &ssh, "far"]);
    assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
    home.check(&format!("far list -S {ssh} far"), 5, "far: ssh did not log in");
}

/// A list without an entry says so.
#[test]
fn an_empty_list_is_no_silence() {
    let home = Home::new("codes-empty");
    for line in ["keys list", "proxy status", "cp --unfinished"] {
        let output = home.run(&line.split(' ').collect::<Vec<_>>());
        assert!(output.status.success() && !output.stdout.is_empty(), "{line}");
    }
}

#[test]
fn a_lab_without_privileges_is_6() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-user");
    let mut command = home.command("setpriv");
    command.args([
        "--bounding-set=-all",
        env!("CARGO_BIN_EXE_hikyaku"),
        "lab",
        "run",
        "--",
        "true",
    ]);
    check("lab run", &command.output().unwrap(), 6, "needs root");
}

#[test]
fn a_command_that_cannot_be_executed_is_127_or_126() {
    let home = Home::new("codes-127");
    home.check("lab run -- no-such-command", 127, "there is no command 'no-such-command'");
    home.check("lab run -- /no/such/command", 127, "there is no command '/no/such/command'");
    home.check("lab run -- /etc", 126, "'/etc' cannot be executed");
    home.check("lab run -- /etc/passwd", 126, "'/etc/passwd' cannot be executed");
}

#[test]
fn lab_run_returns_the_code_of_its_command() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-run");
    let run = |command: &str| home.run(&["lab", "run", "--", "sh", "-c", command]);
    check("exit 7", &run("exit 7"), 7, "segments");
    check("killed", &run("kill -KILL $$"), 137, "segments");
    // The lab ends by the same signal as its command: a shell reports 143 and 130.
    for (name, number) in [("TERM", 15), ("INT", 2)] {
        let output = run(&format!("kill -{name} $$"));
        assert_eq!(output.status.signal(), Some(number), "{name}");
        assert!(
            String::from_utf8_lossy(&output.stderr).contains("segments"),
            "the report is missing"
        );
    }
}

#[test]
fn a_failing_server_command_is_reported_at_once() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-server");
    let run = |server: &str| {
        home.run(&["lab", "run", "--server-cmd", server, "--", "sh", "-c", "echo the command ran"])
    };
    for (server, code) in [("no-such-server", 6), ("/etc/passwd", 6), ("exit 3", 2), ("true", 2)] {
        let output = run(server);
        check(server, &output, code, &format!("the server command '{server}'"));
        // Not only after the timeout, when the command would be started anyway.
        assert!(output.stdout.is_empty(), "{server}: the command was run");
    }
}

#[test]
fn a_signal_during_the_start_ends_the_lab() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-early");
    // A number that no other process has in its command line.
    let length = format!("10{}", std::process::id());
    let mut lab = home.command(env!("CARGO_BIN_EXE_hikyaku"));
    lab.args(["lab", "run", "--server-cmd", &format!("sleep {length}"), "--", "true"]);
    let lab = lab.stderr(Stdio::piped()).spawn().unwrap();
    until(|| !processes(&["sleep", &length]).is_empty());
    signal(lab.id(), "INT");
    let output = lab.wait_with_output().unwrap();
    assert_eq!(output.status.signal(), Some(2));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "the command was started");
    assert!(processes(&["sleep", &length]).is_empty(), "the server command is still running");
}

#[test]
fn a_taken_name_is_5_and_free_again_after_down() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-taken");
    let name = format!("taken-{}", std::process::id());
    let _down = Down(&home, &name);
    home.check(&format!("lab up {name}"), 0, "");
    home.check(&format!("lab up {name}"), 5, &format!("there is a lab '{name}' already"));
    home.check(&format!("lab up {name}-2 --cc warp"), 6, "no congestion control 'warp'");
    home.check(&format!("lab exec {name} server7 -- true"), 6, "has no server 7");
    home.check(&format!("lab exec {name} middle -- true"), 1, "'middle' is not 'client'");
    home.check(&format!("lab exec {name} client -- no-such-command"), 127, "no command");
    home.check(&format!("lab exec {name} client -- sh -c false"), 1, "");
    home.check(&format!("lab down {name}"), 0, "");
    home.check(&format!("lab down {name}"), 6, "no such lab");
}

#[test]
fn a_lab_in_the_foreground_ends_by_the_signal_it_receives() {
    if !is_root() {
        return;
    }
    let home = Home::new("codes-signal");
    let name = format!("signal-{}", std::process::id());
    let mut command = home.command(env!("CARGO_BIN_EXE_hikyaku"));
    command.args(["lab", "up", &name, "--foreground"]).stdout(Stdio::piped());
    let mut lab = command.spawn().unwrap();
    let mut ready = String::new();
    let stdout = lab.stdout.take().unwrap();
    BufReader::new(stdout).read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    signal(lab.id(), "TERM");
    assert_eq!(lab.wait().unwrap().signal(), Some(15));
    home.check(&format!("lab down {name}"), 6, "no such lab");
}

#[test]
fn lab_down_removes_the_remains_of_a_killed_lab() {
    if !is_root() {
        return;
    }
    let (home, run) = (Home::new("codes-killed"), Run::new());
    let name = format!("killed-{}", std::process::id());
    let try_it = |words: &str| {
        let words = words.replace("NAME", &name);
        run.enter(&home).args(words.split(' ')).output().unwrap()
    };
    let check = |words: &str, code, text: &str| check(words, &try_it(words), code, text);
    check("lab up NAME", 0, "");
    let mut sleeper = run.enter(&home);
    sleeper.args(["lab", "exec", &name, "server", "--", "sleep", "1000"]);
    let mut sleeper = Killed(sleeper.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    let relay = processes(&["lab", "up", &name, "--foreground"]);
    assert_eq!(relay.len(), 1, "{relay:?}");
    assert!(run.has(&format!("run/netns/hikyaku-{name}-server1")));
    signal(relay[0], "KILL");
    // The kernel takes a moment to tear the process down.
    until(|| try_it("lab status NAME").status.code() != Some(5));
    check("lab status NAME", 6, "was killed\ntry: hikyaku lab down");
    check("lab status", 0, &format!("lab: '{name}' was killed"));
    check("lab down NAME", 0, "");
    assert!(!sleeper.0.wait().unwrap().success(), "the program in the lab is still running");
    for path in
        ["run/netns/hikyaku-NAME-client", "etc/netns/hikyaku-NAME-client", "run/hikyaku-lab/NAME"]
    {
        assert!(!run.has(&path.replace("NAME", &name)), "{path}");
    }
    check("lab down NAME", 6, "no such lab");
}

fn signal(pid: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status();
    assert!(status.unwrap().success());
}

fn until(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(20));
        thread::sleep(Duration::from_millis(10));
    }
}
