//! Times that SFTP tells modulo 2^32 seconds: what comes from a server has its own time, and what cannot have it is named.

use super::Place;
use super::beside_rsync::set_time;
use crate::common::Sshd;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::Path;
use std::process::Command;

/// Names and times of a tree: before 1970, usual, and after 2038.
const TIMES: [(&str, i64); 6] = [
    ("t/old", -1_000_000_000),
    ("t/usual", 1_000_000_000),
    ("t/late", 3_000_000_000),
    ("t/d/old", -7),
    ("t/d", -86_400 * 400),
    ("t", -86_400 * 800),
];

fn tree(root: &Path) {
    fs::create_dir_all(root.join("t/d")).unwrap();
    for name in ["t/old", "t/usual", "t/late", "t/d/old"] {
        fs::write(root.join(name), name).unwrap();
    }
    symlink("t/old", root.join("link")).unwrap();
    TIMES.iter().for_each(|(name, time)| set_time(&root.join(name), *time));
}

fn time(path: &Path) -> i64 {
    fs::metadata(path).unwrap().mtime()
}

#[test]
fn a_copy_by_sftp_has_the_times_of_the_server() {
    let sshd = Sshd::with_lines("times-cp", "Subsystem sftp internal-sftp\n");
    tree(&sshd.at(""));
    let here = |name: &str| sshd.at(name).display().to_string();
    fs::write(sshd.at("list"), "d/old\nlate\n").unwrap();
    fs::create_dir(sshd.at("listed")).unwrap();
    let run = |words: &[&str]| {
        let mut cp: Command = sshd.cp(words);
        let output = cp.args(["--remote-path", "no-such-hikyaku"]).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    };
    run(&["-p", &sshd.far("t/old"), &here("one")]);
    run(&["-p", &sshd.far("link"), &here("followed")]);
    run(&["-rp", &sshd.far("t"), &here("whole")]);
    run(&["-p", "--files-from", &here("list"), &sshd.far("t"), &here("listed")]);
    assert_eq!((time(&sshd.at("one")), time(&sshd.at("followed"))), (TIMES[0].1, TIMES[0].1));
    for (name, wanted) in TIMES {
        let path = sshd.at(&name.replacen('t', "whole", 1));
        assert_eq!(time(&path), wanted, "{name}");
    }
    assert_eq!(time(&sshd.at("listed/d/old")), -7);
    assert_eq!(time(&sshd.at("listed/d")), -86_400 * 400);
    assert_eq!(time(&sshd.at("listed/late")), 3_000_000_000);
    // With -u the target is newer, and stays.
    fs::write(sshd.at("one"), "newer").unwrap();
    set_time(&sshd.at("one"), 5);
    run(&["-pu", &sshd.far("t/old"), &here("one")]);
    assert_eq!(fs::read_to_string(sshd.at("one")).unwrap(), "newer");
}

#[test]
fn get_and_put_keep_times_or_name_them() {
    let Some(place) = Place::new("times") else { return };
    tree(&place.at("there"));
    place.batch("get -p t/old one\nget -Rp t\n").unwrap();
    assert_eq!(time(&place.at("here/one")), TIMES[0].1);
    for (name, wanted) in TIMES {
        assert_eq!(time(&place.at("here").join(name)), wanted, "{name}");
    }
    for line in ["put -p one up", "put -Rp t up-tree"] {
        let said = place.batch(&format!("{line}\n")).unwrap_err();
        assert!(said.contains("its time is not kept") && said.contains("1970"), "{line}: {said}");
    }
    assert_eq!(place.read("there/up"), "t/old");
}

#[test]
fn sync_keeps_every_time_also_without_modes_and_of_names_that_are_otherwise_equal() {
    let sshd = Sshd::with_lines("times-alone", "Subsystem sftp internal-sftp\n");
    tree(&sshd.at(""));
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    let run = |words: &[&str]| {
        let mut sync = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
        sync.args(["sync", "-e", &rsh, "--remote-path", env!("CARGO_BIN_EXE_hikyaku")]).args(words);
        let output = sync.output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        (said, String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (from, to) = (sshd.at("t/").display().to_string(), sshd.far("up"));
    for words in [["-rt"], ["-rpt"]] {
        for (name, wanted) in &TIMES[..5] {
            // Its content and size are those of the source.
            let there = sshd.at(&name.replacen('t', "up", 1));
            if there.exists() {
                set_time(&there, 1_000_000_007);
            }
            run(&[&words[..], &[&from, &to]].concat());
            assert_eq!(time(&there), *wanted, "{name}, {words:?}");
        }
        let (said, error) = run(&[&words[..], &["-i", &from, &to]].concat());
        assert!(!said.contains(" old") && !said.contains("late"), "{said}{error}");
    }
    let mode = |name: &str| fs::metadata(sshd.at(name)).unwrap().mode() & 0o777;
    assert_eq!((mode("up/old"), mode("up/d")), (mode("t/old"), mode("t/d")));
}

#[test]
fn the_root_of_a_tree_has_its_time_when_it_is_fetched() {
    let sshd = Sshd::with_lines("times-sync", "Subsystem sftp internal-sftp\n");
    tree(&sshd.at(""));
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    for program in [env!("CARGO_BIN_EXE_hikyaku"), "none"] {
        for (source, target) in [("t/", "root"), ("t", "named")] {
            let _ = fs::remove_dir_all(sshd.at(target));
            let mut sync = Command::new(env!("CARGO_BIN_EXE_hikyaku"));
            sync.args(["sync", "-a", "-e", &rsh, "--remote-path", program, &sshd.far(source)]);
            let output = sync.arg(sshd.at(target)).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let root = sshd.at(target).join(if source == "t" { "t" } else { "" });
            assert_eq!(time(&root), TIMES[5].1, "{source} {program}");
        }
    }
}
