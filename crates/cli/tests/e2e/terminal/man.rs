//! `hikyaku man`: on a terminal it is man(1), and elsewhere the text of the page.

use super::{CTRL_C, Terminal, folder};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_hikyaku");

/// Puts a program of this name into a directory.
fn program(dir: &Path, name: &str, text: &str) {
    fs::create_dir_all(dir).unwrap();
    fs::write(dir.join(name), format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(dir.join(name), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_page_on_a_terminal_is_shown_by_man() {
    let dir = folder("man");
    // It reads all of the page, and Ctrl-C is its own.
    let text = "trap 'echo interrupted; exit 3' INT\necho \"man $*: $(grep -c '^.SH' -) parts\"\nsleep 60 & wait";
    program(&dir.join("bin"), "man", text);
    let path = format!("{}:/usr/bin:/bin", dir.join("bin").display());
    let line = format!("trap : INT; {PROGRAM} man cp; echo code=$?");
    let Some(mut terminal) = Terminal::run(&line, &dir, &[("PATH", &path)]) else { return };
    terminal.shows("man -l -: ");
    terminal.press(CTRL_C);
    let lines = terminal.ended();
    let text = lines.join("\n");
    assert!(text.contains("interrupted\ncode=3"), "{text}");
    assert!(!text.contains("man -l -: 0 parts") && !text.contains(".SH"), "{text}");
    fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_page_is_printed_where_there_is_no_man() {
    let dir = folder("no-man");
    let line = format!("PATH={} {PROGRAM} man cp", dir.display());
    let Some(terminal) = Terminal::run(&line, &dir, &[]) else { return };
    let lines = terminal.ended();
    assert!(lines.iter().any(|line| line.starts_with(".SH NAME")), "{lines:#?}");
    // A pipe gets the text of the page, whether there is man(1) or not.
    let output = Command::new(PROGRAM).args(["man", "cp"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("\n.SH NAME"));
    fs::remove_dir_all(&dir).unwrap();
}
