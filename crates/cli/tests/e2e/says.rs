//! `-v` and `-q` of the commands that have them from one definition.

use crate::common::Sshd;
use crate::common::daemon::{Client, Daemon, said};
use crate::common::perf::Server;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

/// A daemon with a file, and clients that it lets in.
struct Ground {
    client: Client,
    daemon: Daemon,
}

impl Ground {
    fn new(name: &str) -> Self {
        let client = Client::new(name);
        let keys = client.authorized("keys", "");
        fs::create_dir(client.at("root")).unwrap();
        fs::write(client.at("root/a.pgm"), b"P5 2 2 255\nabcd").unwrap();
        let daemon = Daemon::start(&client, &client.at("root"), &keys);
        Self { client, daemon }
    }

    /// Runs a command of a client that meets the daemon for the first time.
    fn first(&self, arguments: &[&str]) -> Output {
        let _ = fs::remove_file(self.client.at("state/hikyaku/known_peers"));
        let output = self.client.run(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {}", said(&output));
        output
    }
}

#[test]
fn a_daemon_that_is_new_is_noted_and_how_it_is_reached_is_a_detail() {
    let ground = Ground::new("says-daemon");
    let address = format!("hikyaku://{}", ground.daemon.address);
    let picture = format!("{address}/a.pgm");
    for command in [&["ls", &address][..], &["view", "--bench", "1", &picture]] {
        let usual = said(&ground.first(command));
        assert!(usual.contains(" is new, its key is "), "{command:?}: {usual}");
        assert!(!usual.contains(" is reached by "), "{command:?}: {usual}");
        let quiet = said(&ground.first(&[command, &["-q"]].concat()));
        assert_eq!(quiet, "", "{command:?}");
        let detailed = said(&ground.first(&[command, &["-v"]].concat()));
        let reached = format!("hikyaku: {} is reached by UDP\n", ground.daemon.address);
        assert!(detailed.contains(&reached), "{command:?}: {detailed}");
    }
    let detailed = said(&ground.first(&["status", "-v", &address]));
    assert!(detailed.contains(" is reached by UDP\n"), "{detailed}");
}

#[test]
fn what_is_well_is_left_out_by_a_quiet_status_and_doctor() {
    let ground = Ground::new("says-well");
    let address = format!("hikyaku://{}", ground.daemon.address);
    assert_eq!(ground.first(&["status", "-q", &address]).stdout, b"");
    let both = format!("{address},127.0.0.1:1");
    let output = ground.client.run(&["status", "-q", "--no-udp", &both]);
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(lines.lines().count() == 2 && lines.contains("\n127.0.0.1:1 "), "{lines}");
    let [usual, quiet] = [&["doctor"][..], &["doctor", "-q"]]
        .map(|command| String::from_utf8(ground.client.run(command).stdout).unwrap());
    let is_bad = |line: &&str| line.starts_with("FAIL") || line.starts_with("WARN");
    assert!(usual.contains("\nOK "), "{usual}");
    assert!(quiet.lines().all(|line| is_bad(&line) || line.contains("try: ")), "{quiet}");
    let detailed = said(&ground.client.run(&["doctor", "-v"]));
    assert!(detailed.contains("hikyaku: checking this machine\n"), "{detailed}");
}

#[test]
fn a_daemon_says_who_comes_and_a_quiet_one_gives_no_advice() {
    let ground = Ground::new("says-serve");
    let root = ground.client.at("root").display().to_string();
    let begin = |keys: &str, flag: &str| {
        let keys = ground.client.at(keys).display().to_string();
        let words = ["serve", "--listen", "127.0.0.1:0", "--root", &root, flag];
        let mut serve =
            ground.client.command(&[&words[..], &["--authorized-keys", &keys]].concat());
        serve.env("XDG_STATE_HOME", ground.client.at("server-state"));
        let mut serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(serve.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (serve, line)
    };
    let end = |(mut serve, line): (std::process::Child, String)| {
        serve.kill().unwrap();
        let output = serve.wait_with_output().unwrap();
        (line, said(&output))
    };
    fs::write(ground.client.at("none"), "").unwrap();
    let (line, quiet) = end(begin("none", "-q"));
    assert!(line.starts_with("serving ") && quiet.is_empty(), "{line} {quiet}");
    let detailed = begin("keys", "-v");
    let address = detailed.1.split(" at ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let output = ground.client.run(&["ls", &format!("hikyaku://{address}")]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let (_, detailed) = end(detailed);
    assert!(detailed.contains(" begins a session\n"), "{detailed}");
}

#[test]
fn a_quiet_test_has_no_lines_of_intervals() {
    let server = Server::start(&[]);
    let run = |flag: &str| {
        let output = server.run(&["-n", "1M", "-i", "0.1", "-u", flag]);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        (String::from_utf8(output.stdout.clone()).unwrap(), said(&output))
    };
    let (quiet, notes) = run("-q");
    assert!(notes.is_empty() && quiet.contains("goodput"), "{quiet} {notes}");
    let (detailed, notes) = run("-v");
    let intervals = |text: &str| {
        let table = text.lines().skip_while(|line| !line.contains("seconds received")).skip(1);
        table.take_while(|line| *line != "- - -").count()
    };
    assert_eq!(intervals(&quiet), 0, "{quiet}");
    assert!(intervals(&detailed) > 0, "{detailed}");
    assert!(
        notes.contains("dialling 127.0.0.1:") && notes.contains("-u (--udp) has no"),
        "{notes}"
    );
}

#[test]
fn how_ssh_gets_to_a_host_is_a_detail() {
    let sshd = Sshd::start("says-ssh");
    for command in
        [&mut sshd.doctor(&["-v", "far"]), &mut sshd.perf(&["-v", "ssh://far", "-n", "1M"])]
    {
        let said = said(&command.output().unwrap());
        assert!(said.contains("hikyaku: starting hikyaku on far: "), "{said}");
    }
}
