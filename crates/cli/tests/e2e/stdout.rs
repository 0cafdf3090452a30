//! A write error on standard output is an error with exit code 2, and so is an output that was closed; a closed reader is
//! not.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

/// Commands that print something and need no lab.
const COMMANDS: [&str; 11] = [
    "--help",
    "--version",
    "help cp",
    "lab up --help",
    "cp --help",
    "config show",
    "keys list",
    "keys forget nobody.example.org:5208",
    "completions zsh",
    "man lab run",
    "lab status --json",
];

/// Creates a home directory with a remembered server.
static STATE: LazyLock<PathBuf> = LazyLock::new(|| {
    let state = crate::common::scratch("stdout");
    fs::create_dir_all(state.join("hikyaku")).unwrap();
    let line = format!("host.example.org:5208 SHA256:{} 2026-01-01\n", "A".repeat(43));
    fs::write(state.join("hikyaku/known_peers"), line).unwrap();
    state
});

fn run(line: &str, stdout: impl Into<Stdio>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_hikyaku"))
        .args(line.split_whitespace())
        .env("XDG_STATE_HOME", STATE.as_path())
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap()
}

/// The same with a redirection of a shell.
fn by_shell(line: &str, redirection: &str) -> Output {
    Command::new("sh")
        .args(["-c", &format!("exec \"$0\" \"$@\" {redirection}")])
        .arg(env!("CARGO_BIN_EXE_hikyaku"))
        .args(line.split_whitespace())
        .env("XDG_STATE_HOME", STATE.as_path())
        .env("XDG_CONFIG_HOME", STATE.as_path())
        .stderr(Stdio::piped())
        .output()
        .unwrap()
}

fn is_refused(line: &str, ended: &Output) {
    let error = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(2), "{line}: {error}");
    assert!(error.starts_with("hikyaku: cannot write to standard output: "), "{line}: {error}");
}

fn check(line: &str) {
    let full = run(line, File::options().write(true).open("/dev/full").unwrap());
    is_refused(line, &full);
    is_refused(line, &by_shell(line, ">&-"));
    is_refused(line, &by_shell(line, "1</dev/null"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let closed = run(line, writer);
    let error = String::from_utf8_lossy(&closed.stderr);
    assert_eq!((closed.status.code(), &*error), (Some(0), ""), "{line}");
}

#[test]
fn a_write_error_is_an_error_and_a_closed_reader_is_not() {
    for line in COMMANDS {
        check(line);
    }
}

/// Files that a command may read and write.
fn ground(name: &str) -> PathBuf {
    let dir = STATE.join(name);
    fs::create_dir_all(dir.join("tree/deep")).unwrap();
    fs::write(dir.join("tree/deep/file"), "text").unwrap();
    fs::write(dir.join("file"), "text").unwrap();
    dir
}

#[test]
fn a_command_whose_result_nobody_takes_fails() {
    let at = ground("results");
    let at = at.display();
    let logged = run(&format!("cp -q --log-dir {at}/log -r {at}/tree {at}/logged"), Stdio::null());
    assert!(logged.status.success(), "{}", String::from_utf8_lossy(&logged.stderr));
    let commands = [
        format!("cp {at}/file -"),
        format!("cp {at}/file /dev/stdout"),
        format!("cp {at}/file /dev/fd/1"),
        format!("cp -n -r {at}/tree {at}/new"),
        format!("cp --json -r {at}/tree {at}/copy"),
        format!("cp --json-lines -r {at}/tree {at}/more"),
        format!("sync -n -v -r {at}/tree/ {at}/new/"),
        format!("sync -i -r {at}/tree/ {at}/synced/"),
        format!("sync -v -r {at}/tree/ {at}/again/"),
        format!("report {at}/log -o -"),
        "get --json http://127.0.0.1:9/x".to_owned(),
        "cp --json hikyaku://127.0.0.1:9/x /tmp/x".to_owned(),
        "keys new".to_owned(),
        "keys show".to_owned(),
        "doctor --json".to_owned(),
        "man cp".to_owned(),
        "config show".to_owned(),
    ];
    for line in commands {
        for redirection in [">&-", "1</dev/null", ">/dev/full"] {
            let ended = by_shell(&line, redirection);
            let error = String::from_utf8_lossy(&ended.stderr);
            assert!(!ended.status.success(), "{line} {redirection}: {error}");
            assert!(
                error.contains("standard output") || error.contains("/dev/"),
                "{line} {redirection}: {error}"
            );
        }
    }
}

#[test]
fn the_same_holds_under_other_names() {
    for program in [env!("CARGO_BIN_EXE_hscp"), env!("CARGO_BIN_EXE_hsftp")] {
        let mut shell = Command::new("sh");
        let ended = shell.args(["-c", "exec \"$0\" --help >&-", program]).output().unwrap();
        assert!(!ended.status.success(), "{program}");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(error.contains("standard output: it is closed"), "{program}: {error}");
    }
}

#[test]
fn a_command_that_prints_nothing_needs_no_output_and_no_input() {
    let at = ground("silent");
    let at = at.display();
    for line in [
        format!("cp -q {at}/file {at}/copied"),
        format!("cp -r {at}/tree {at}/tree-copied"),
        format!("sync -r {at}/tree/ {at}/synced/"),
    ] {
        let ended = by_shell(&line, "<&- >&-");
        let error = String::from_utf8_lossy(&ended.stderr);
        assert!(ended.status.success(), "{line}: {error}");
    }
    assert_eq!(fs::read(STATE.join("silent/copied")).unwrap(), b"text");
    assert_eq!(fs::read(STATE.join("silent/synced/deep/file")).unwrap(), b"text");
}

#[test]
fn an_input_that_was_closed_is_not_an_empty_one() {
    let at = ground("inputs");
    for line in [
        format!("cp - {}/made", at.display()),
        format!("cp /dev/stdin {}/made", at.display()),
        format!("cp --files-from - {0}/tree {0}/made", at.display()),
        format!("sync -r --files-from - {0}/tree/ {0}/made/", at.display()),
    ] {
        for redirection in ["<&-", "0>/dev/null"] {
            let ended = by_shell(&line, redirection);
            let error = String::from_utf8_lossy(&ended.stderr);
            assert!(!ended.status.success(), "{line} {redirection}: {error}");
            assert!(!at.join("made").exists(), "{line} {redirection}");
        }
    }
}

/// A lab that is removed at the end of the test.
struct Down(String);

impl Drop for Down {
    fn drop(&mut self) {
        run(&format!("lab down {}", self.0), Stdio::null());
    }
}

#[test]
fn the_same_holds_for_the_output_of_a_lab() {
    let name = format!("stdout-{}", std::process::id());
    let up = run(&format!("lab up {name}"), Stdio::null());
    let error = String::from_utf8_lossy(&up.stderr);
    if error.contains("needs root") {
        eprintln!("\n*** SKIPPED, because {error} ***\n");
        return;
    }
    assert!(up.status.success(), "{error}");
    let _down = Down(name.clone());
    for line in ["lab status", &format!("lab status {name}"), &format!("lab status {name} --json")]
    {
        check(line);
    }
}

#[test]
fn errors_keep_their_codes_without_standard_error() {
    for (line, code) in [("fly", 1), ("lab down no-such-lab", 6)] {
        let status = Command::new(env!("CARGO_BIN_EXE_hikyaku"))
            .args(line.split_whitespace())
            .stderr(File::options().write(true).open("/dev/full").unwrap())
            .status();
        assert_eq!(status.unwrap().code(), Some(code), "{line}");
    }
}

#[test]
fn the_error_of_a_document_has_its_cause() {
    let target = STATE.join("never").display().to_string();
    for line in [
        "cp --json hikyaku://127.0.0.1:1/x",
        "sync --json -r hikyaku://127.0.0.1:1/x",
        "get --json http://127.0.0.1:1/x -o",
        "guc -json ftp://127.0.0.1:1/x",
    ] {
        let ended = run(&format!("{line} {target}"), Stdio::piped());
        let text = String::from_utf8_lossy(&ended.stdout).into_owned();
        let document: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        let error = document["error"].as_str().unwrap_or_default();
        assert!(
            error.contains("efused"),
            "{line}: {text}{}",
            String::from_utf8_lossy(&ended.stderr)
        );
    }
}
