//! The names of the program: `--version` prints the same under every subcommand and name, every
//! subcommand has a manual page, and `hscp` runs hikyaku.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use std::time::Duration;

const HIKYAKU: &str = env!("CARGO_BIN_EXE_hikyaku");
const HSCP: &str = env!("CARGO_BIN_EXE_hscp");
const HSFTP: &str = env!("CARGO_BIN_EXE_hsftp");
const VERSION: &str = concat!("hikyaku ", env!("CARGO_PKG_VERSION"), "\n");

/// The words that follow `hikyaku` for every subcommand, taken from its help.
fn verbs() -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut at = 0;
    while at < all.len() {
        let words: Vec<String> = all[at].clone();
        let help = text(Command::new(HIKYAKU).args(&words).arg("--help"));
        for name in crate::common::commands(&help) {
            all.push([&words[..], &[name]].concat());
        }
        at += 1;
    }
    all
}

fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    output
}

fn text(command: &mut Command) -> String {
    String::from_utf8(output(command).stdout).unwrap()
}

/// A temporary directory.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = crate::common::scratch(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn every_subcommand_prints_the_same_version() {
    let verbs = verbs();
    assert!(verbs.len() > 10, "{verbs:?}");
    for words in &verbs {
        assert_eq!(text(Command::new(HIKYAKU).args(words).arg("--version")), VERSION, "{words:?}");
    }
    assert_eq!(text(Command::new(HIKYAKU).arg("-V")), VERSION);
    for program in [HSCP, HSFTP] {
        assert_eq!(text(Command::new(program).arg("--version")), VERSION);
    }
}

#[test]
fn every_subcommand_has_a_manual_page() {
    let folder = Scratch::new("pages");
    let pages = folder.0.join("share/man1");
    output(Command::new(HIKYAKU).args(["man", "--all"]).arg(&pages));
    let mut expected = BTreeSet::from(["hscp.1".to_owned(), "hsftp.1".to_owned()]);
    for words in verbs() {
        let name = [&["hikyaku".to_owned()], &words[..]].concat().join("-");
        let page = text(Command::new(HIKYAKU).arg("man").args(&words));
        let head = format!(".TH {name} 1  \"{}\" hikyaku\n", VERSION.trim());
        assert!(page.contains(&head), "{name}: {page}");
        assert!(!page.contains("help(1)"), "{name} refers to a page that does not exist");
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{name}: {page}");
        assert_eq!(fs::read_to_string(pages.join(format!("{name}.1"))).unwrap(), page);
        expected.insert(format!("{name}.1"));
    }
    let written = fs::read_dir(&pages).unwrap();
    let written = written.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(written.collect::<BTreeSet<_>>(), expected);
    for name in ["hscp", "hsftp"] {
        let page = text(Command::new(HIKYAKU).args(["man", name]));
        assert!(page.contains(&format!(".TH {name} 1 ")) && page.contains("ssh"), "{page}");
    }
    let unknown = Command::new(HIKYAKU).args(["man", "lab", "fly"]).output().unwrap();
    assert_eq!(unknown.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&unknown.stderr).contains("no subcommand 'lab fly'"));
}

#[test]
fn hscp_runs_the_hikyaku_beside_it_or_in_the_path() {
    let folder = Scratch::new("names");
    let (alone, beside) = (folder.0.join("alone"), folder.0.join("beside"));
    for place in [&alone, &beside] {
        fs::create_dir(place).unwrap();
        fs::copy(HSCP, place.join("hscp")).unwrap();
    }
    symlink(HIKYAKU, beside.join("hikyaku")).unwrap();
    symlink(HIKYAKU, folder.0.join("hscp")).unwrap();
    let help = |program: &Path, path: &Path| {
        let mut command = Command::new(program);
        command.arg("--help").env("PATH", path);
        // A process that another test has just started may hold the copy open for writing until it is a program.
        let output = loop {
            match command.output() {
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                    thread::sleep(Duration::from_millis(10));
                }
                output => break output.unwrap(),
            }
        };
        (output.status.code(), String::from_utf8_lossy(&output.stdout).contains("Usage: hscp "))
    };
    let nowhere = folder.0.as_path();
    assert_eq!(help(&beside.join("hscp"), nowhere), (Some(0), true), "beside it");
    assert_eq!(help(&alone.join("hscp"), &beside), (Some(0), true), "in the path");
    assert_eq!(help(&alone.join("hscp"), nowhere), (Some(127), false), "there is none");
    assert_eq!(help(&folder.0.join("hscp"), nowhere), (Some(0), true), "by a link of this name");
}
