//! A write error on standard output is an error with exit code 2; a closed reader is not.

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
    "known-peers list",
    "known-peers forget nobody.example.org:5208",
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

fn check(line: &str) {
    let full = run(line, File::options().write(true).open("/dev/full").unwrap());
    let error = String::from_utf8_lossy(&full.stderr);
    assert_eq!(full.status.code(), Some(2), "{line}: {error}");
    assert!(error.starts_with("hikyaku: cannot write to standard output: "), "{line}: {error}");
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
