//! `hikyaku keys install`: two users with homes of their own, and hosts that answer what they like.

use crate::common::Sshd;
use crate::common::daemon::{Client, said};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
/// Where the daemon of the test is, for ssh as for hikyaku.
const HOST: &str = "127.0.0.1";

/// `hikyaku serve` of the user whom sshd serves, without a list of keys.
struct Serving {
    child: Child,
    port: u16,
    /// Its output on standard error.
    warned: String,
}

impl Serving {
    fn of(sshd: &Sshd, root: &Path) -> Self {
        let said = sshd.at("serve.err");
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--listen", &format!("{HOST}:0"), "--root"])
            .arg(root)
            .env("XDG_STATE_HOME", sshd.at("state"))
            .stdout(Stdio::piped())
            .stderr(fs::File::create(&said).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.split([':', ',']).find_map(|word| word.parse().ok());
        let port = port.unwrap_or_else(|| panic!("{line:?}: {:?}", fs::read_to_string(&said)));
        Self { child, port, warned: fs::read_to_string(said).unwrap() }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Options by which ssh finds `sshd` under the address of the daemon.
fn way(sshd: &Sshd) -> [String; 4] {
    let config = fs::read_to_string(sshd.at("ssh_config")).unwrap();
    let config = config.replace("Host far other", &format!("Host far other {HOST}"));
    fs::write(sshd.at("ssh_config_here"), config).unwrap();
    let config = sshd.at("ssh_config_here").display().to_string();
    ["-F".to_owned(), config, "--remote-path".to_owned(), PROGRAM.to_owned()]
}

fn install(client: &Client, way: &[String], more: &[&str]) -> Output {
    let mut command = client.command(&["keys", "install"]);
    command.args(way).args(more).stdin(Stdio::null()).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn one_command_lets_a_new_client_use_a_daemon_that_runs() {
    let (sshd, client) = (Sshd::with_home("keys-install"), Client::new("keys-install-near"));
    let (way, root) = (way(&sshd), sshd.at("root"));
    fs::create_dir(&root).unwrap();
    fs::write(root.join("file"), "text").unwrap();
    // Without a daemon the command prints how to start one.
    let port = "5";
    let early = install(&client, &way, &["--port", port, HOST]);
    assert!(early.status.success(), "{}", said(&early));
    let shown = text(&early);
    let start = format!("try: ssh {HOST} hikyaku serve --root DIR --listen {port}\n");
    assert!(shown.contains("no daemon serves") && shown.ends_with(&start), "{shown}");
    let list = sshd.at("state/hikyaku/authorized_keys");
    fs::remove_file(&list).unwrap();
    // The daemon starts without a list, and prints how to fill it.
    let daemon = Serving::of(&sshd, &root);
    let port = daemon.port.to_string();
    let missing = format!("{} has no keys: no client can connect yet\n", list.display());
    assert!(daemon.warned.contains(&missing), "{}", daemon.warned);
    let remedy = format!("try: on a client: hikyaku keys install --port {port} ");
    assert!(daemon.warned.contains(&remedy), "{}", daemon.warned);
    let source = format!("hikyaku://{HOST}:{port}/file");
    let out = client.at("out").display().to_string();
    let options = ["--port", &port, "--ro", HOST];
    // A rehearsal changes nothing.
    let rehearsed = install(&client, &way, &["--dry-run", "--port", &port, "--ro", HOST]);
    assert!(text(&rehearsed).contains("would add") && !list.exists(), "{}", text(&rehearsed));
    let done = install(&client, &way, &options);
    assert!(done.status.success(), "{}", said(&done));
    let shown = text(&done);
    let added = format!("{HOST}: this user's key added to {}\n", list.display());
    assert!(shown.starts_with(&added), "{shown}");
    assert!(shown.contains(&format!(" recorded for {HOST}:{port}\n")), "{shown}");
    assert!(shown.ends_with(&format!("a daemon serves this user at {HOST}:{port}\n")), "{shown}");
    let lines = fs::read_to_string(&list).unwrap();
    assert!(lines.starts_with("ro ed25519:") && lines.lines().count() == 1, "{lines}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&list), mode(list.parent().unwrap())), (0o600, 0o700));
    // The daemon that runs takes the client, which knows its key.
    let copied = client.run(&["cp", &source, &out]);
    assert!(copied.status.success() && !said(&copied).contains("is new"), "{}", said(&copied));
    // The second run changes nothing, with the options or without.
    for options in [&options[..], &["--port", &port, HOST]] {
        let again = install(&client, &way, options);
        assert!(again.status.success(), "{}", said(&again));
        assert_eq!(text(&again).matches(" is already ").count(), 2, "{}", text(&again));
    }
    assert_eq!(fs::read_to_string(&list).unwrap(), lines);
    // Other options than those in the list are the decision of its owner.
    let other = install(&client, &way, &["--port", &port, "--root", "/a", HOST]);
    assert_eq!(other.status.code(), Some(6), "{}", said(&other));
    assert!(said(&other).contains("has this key with other options"), "{}", said(&other));
    // Two hosts at a time, of which one is not reached.
    let several = install(&client, &way, &["--port", &port, HOST, "broken"]);
    assert_eq!(several.status.code(), Some(5), "{}", said(&several));
    assert!(said(&several).contains("broken: ssh did not log in"), "{}", said(&several));
    assert!(text(&several).contains(" is already in "), "{}", text(&several));
    assert_eq!(fs::read_to_string(&list).unwrap(), lines);
}

/// A program in place of ssh that runs this script, whatever its arguments are.
fn host(client: &Client, name: &str, script: &str) -> String {
    let path = client.at(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

#[test]
fn a_host_that_answers_something_else_changes_nothing() {
    let client = Client::new("keys-install-answers");
    let no_program = "exit 127";
    let old = "exit 1";
    let endless = "yes hikyaku-keys";
    let no_key = r#"echo 'hikyaku-keys {"done":{"list":"l","was":"absent","key":"ed25519:AAAA"}}'"#;
    let denied = r#"echo 'hikyaku-keys "denied"'"#;
    let refused = r#"printf 'hikyaku-keys {"refused":{"why":"\\u001b[2Jbad\\nhikyaku: fine"}}\n'"#;
    let list = ["--list", "/etc/a list"];
    for (name, script, more, wanted) in [
        ("none", no_program, &[][..], "try: hikyaku far install far"),
        ("old", old, &[], "too old for this command\ntry: hikyaku far install far\n"),
        ("endless", endless, &[], "hikyaku: far: the answer is longer than 64 KiB\n"),
        ("no-key", no_key, &[], "too old"),
        ("denied", denied, &list, "| ssh far sudo tee -a '/etc/a list'\n"),
        ("refused", refused, &[], "bad"),
    ] {
        let ssh = host(&client, name, script);
        let way = ["-S".to_owned(), ssh];
        let output = install(&client, &way, &[more, &["far"]].concat());
        let shown = said(&output);
        assert_eq!(output.status.code(), Some(6), "{name}: {shown}");
        assert!(shown.contains(wanted), "{name}: {shown}");
        assert!(shown.contains("hikyaku: far: ") && !shown.contains('\u{1b}'), "{name}: {shown}");
        assert!(!shown.contains("\nhikyaku: fine"), "{name}: {shown}");
        assert!(!client.at("state/hikyaku/known_peers").exists(), "{name}");
    }
}

#[test]
fn a_request_that_is_none_changes_nothing() {
    let client = Client::new("keys-receive");
    let key = String::from_utf8(client.run(&["keys", "show"]).stdout).unwrap();
    assert_eq!(key, "", "no key yet");
    let made = String::from_utf8(client.run(&["keys", "new"]).stdout).unwrap();
    let key = made.trim();
    let other = client.at("other/list").display().to_string();
    for (input, why) in [
        (String::new(), "the request is none"),
        ("{}\n".to_owned(), "the request is none"),
        (format!("{{\"line\":\"{key}\",\"until\":\"2030\"}}\n"), "the request is none"),
        (format!("{{\"line\":\"{key}\\nro {key}\"}}\n"), "control character"),
        (format!("{{\"line\":\"fast {key}\"}}\n"), "unknown option 'fast'"),
        (format!("{{\"line\":\"{}\"}}\n", "x".repeat(1 << 20)), "the request is none"),
        (format!("{{\"line\":\"{key}\",\"list\":\"{other}\"}}\n"), "does not exist"),
    ] {
        let mut receiver = client.command(&["keys", "receive"]);
        let receiver = receiver.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = receiver.spawn().unwrap();
        // A long request is not read to its end.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        let answer = text(&child.wait_with_output().unwrap());
        assert!(answer.starts_with("hikyaku-keys {\"refused\""), "{why}: {answer}");
        assert!(answer.contains(why), "{why}: {answer}");
        assert!(!client.at("state/hikyaku/authorized_keys").exists(), "{why}");
        assert!(!client.at("other").exists(), "{why}");
    }
}
