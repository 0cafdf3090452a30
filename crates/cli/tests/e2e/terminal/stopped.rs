//! Ctrl-C: the sentence stands on a line of its own, the terminal is as before, and no process of the command is left.

use super::{CTRL_C, Terminal, processes};
use crate::common::daemon::{Client, Daemon};
use crate::common::{Sshd, partials, random, wait_until};
use std::fs;
use std::path::Path;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");
const CONTINUES: &str = "hikyaku: stopped; the same command continues from here";
const WITH_A: &str = "hikyaku: stopped; the unfinished file has its final name, and the same transfer with -a continues it";

/// A mount has no message: it is a line in this list of the kernel.
const MOUNTED: &str = "/proc/self/mounts";

fn is_mounted(dir: &Path) -> bool {
    let mounts = fs::read_to_string(MOUNTED).unwrap();
    mounts.contains(&format!(" {}/", dir.display()))
}

/// Runs `hikyaku` with these words, presses Ctrl-C when it shows `ready`, and returns the lines of the terminal. All processes
/// that it has started have `state` in their environment.
pub(crate) fn stopped(
    words: &str,
    (dir, state): (&Path, &Path),
    ready: &str,
) -> Option<Vec<String>> {
    // The shell outlives Ctrl-C, and prints the exit code and the settings of the terminal.
    let line = format!(
        "stty cols 120; trap : INT; {PROGRAM} {words}; code=$?; echo; echo code=$code; stty -a"
    );
    let set = [("XDG_STATE_HOME", &*state.display().to_string())];
    let mut terminal = Terminal::run(&line, dir, &set)?;
    match ready {
        MOUNTED => wait_until("the mount", || is_mounted(dir)),
        text => terminal.shows(text),
    }
    terminal.press(CTRL_C);
    let lines = terminal.ended();
    assert!(lines.iter().any(|line| line == "code=130"), "{words}: {lines:#?}");
    let set: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    for flag in ["icanon", "isig", "echo", "icrnl", "onlcr"] {
        assert!(set.contains(&flag), "{words}: the terminal has no {flag}: {lines:#?}");
    }
    wait_until("the end of all that it has started", || processes(state).is_empty());
    Some(lines)
}

/// Whether one line is this sentence, and no other has a part of it.
pub(crate) fn is_told(lines: &[String], sentence: &str) -> bool {
    let told: Vec<_> = lines.iter().filter(|line| line.contains("stopped;")).collect();
    told == [sentence]
}

#[test]
fn copies_through_ssh_end_with_one_sentence() {
    let sshd = Sshd::with_lines("terminal-ssh", "Subsystem sftp internal-sftp\n");
    fs::create_dir_all(sshd.at("from")).unwrap();
    fs::write(sshd.at("from/big"), random(2, 30_000_000)).unwrap();
    let config = sshd.at("ssh_config").display().to_string();
    let near = sshd.at("near");
    fs::create_dir(&near).unwrap();
    let here = sshd.at("from").display().to_string();
    let there = sshd.far("from");
    let ssh = format!("-F {config} --remote-path {PROGRAM}");
    let rsh = format!("-e 'ssh -F {config}' --remote-path {PROGRAM}");
    let far = |name: &str| sshd.far(name);
    // The program that perf starts in place of ssh.
    let program = sshd.at("ssh").display().to_string();
    drop(sshd.perf(&[]));
    for (words, ready, sentence, left) in [
        (format!("cp {ssh} -l 8m {here}/big {}", far("put")), " MB of 30.0 MB", CONTINUES, 1),
        (format!("cp {ssh} -l 8m {there}/big get"), " MB of 30.0 MB", CONTINUES, 1),
        (format!("cp {ssh} --via sftp -l 8m {there}/big by-sftp"), " MB of 30.0 MB", CONTINUES, 1),
        (format!("sync -r {rsh} --rate 8m {there}/ synced/"), " MB of 30.0 MB", CONTINUES, 1),
        (format!("sftp {ssh} -l 8m {there}/big fetched"), " MB/s", WITH_A, 0),
        (format!("proxy {ssh} far -D 0"), "listening on", "", 0),
        (
            format!("perf --ssh {program} --remote-path {PROGRAM} -b 8m -t 60 ssh://far"),
            " 0.00-",
            "",
            0,
        ),
    ] {
        let before = partials(&sshd.at("")).len();
        let Some(lines) = stopped(&words, (&near, &sshd.at("state")), ready) else { return };
        let is_told = if sentence.is_empty() {
            !lines.iter().any(|line| line.contains("hikyaku:"))
        } else {
            is_told(&lines, sentence)
        };
        assert!(is_told, "{words}: {lines:#?}");
        assert_eq!(partials(&sshd.at("")).len() - before, left, "{words}");
    }
}

#[test]
fn commands_of_daemons_end_and_a_copy_leaves_what_the_next_one_continues() {
    let client = Client::new("terminal-daemon");
    let (root, near) = (client.at("root"), client.at("near"));
    for dir in [&root, &near, &near.join("m")] {
        fs::create_dir_all(dir).unwrap();
    }
    fs::write(root.join("big"), random(2, 30_000_000)).unwrap();
    let image = [&b"P6 64 64 255\n"[..], &random(3, 64 * 64 * 3)].concat();
    fs::write(near.join("a.ppm"), image).unwrap();
    let keys = client.authorized("keys", "");
    let daemon = Daemon::start(&client, &root, &keys);
    let (url, state) = (format!("hikyaku://{}", daemon.address), client.at("state"));
    let keys = keys.display();
    for (words, ready, sentence) in [
        (format!("cp -l 8m {url}/big got"), " MB of 30.0 MB", CONTINUES),
        (format!("mount -f {url}/ m"), MOUNTED, ""),
        (format!("serve --root . --listen 127.0.0.1:0 --authorized-keys {keys}"), "serving", ""),
        ("perf -s -p 0".to_owned(), "listening on", ""),
        ("view --web 0 '*.ppm'".to_owned(), "the pictures are at", ""),
    ] {
        let Some(lines) = stopped(&words, (&near, &state), ready) else { return };
        if !sentence.is_empty() {
            assert!(is_told(&lines, sentence), "{words}: {lines:#?}");
        }
        let left = usize::from(sentence == CONTINUES);
        assert_eq!(partials(&near).len(), left, "{words}");
        partials(&near).iter().for_each(|partial| fs::remove_file(near.join(partial)).unwrap());
        assert!(!is_mounted(&near), "{words}");
    }
}

#[test]
fn a_command_of_a_session_ends_at_once_and_the_session_goes_on() {
    let sshd = Sshd::start("terminal-session");
    fs::write(sshd.at("big"), random(2, 30_000_000)).unwrap();
    let near = sshd.at("near");
    fs::create_dir(&near).unwrap();
    let config = sshd.at("ssh_config").display().to_string();
    // The whole file takes a minute, and its first segment of 1 MiB two seconds.
    let line = format!(
        "stty cols 120; {PROGRAM} sftp -F {config} --remote-path {PROGRAM} -l 4m {}",
        sshd.far("")
    );
    let set = [("XDG_STATE_HOME", &*sshd.at("state").display().to_string())];
    let Some(mut terminal) = Terminal::run(&line, &near, &set) else { return };
    terminal.shows("sftp>");
    terminal.press(b"get big\r");
    wait_until("a part of the file", || fs::metadata(near.join("big")).is_ok_and(|m| m.len() > 0));
    terminal.press(CTRL_C);
    terminal.shows("stopped; the unfinished file has its final name");
    terminal.press(b"lpwd\r");
    terminal.shows("Local working directory");
    terminal.press(b"bye\r");
    terminal.ended();
    assert!(fs::read(near.join("big")).unwrap().len() < 16 << 20);
}
