//! `hikyaku cp` where the far side has no hikyaku: by SFTP, with a real ssh and OpenSSH's server.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

mod common;

use common::{Sshd, listing, partials, random};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// An ssh server whose sessions offer SFTP.
fn server(name: &str) -> Sshd {
    Sshd::with_lines(name, "Subsystem sftp internal-sftp\n")
}

/// `hikyaku cp` that finds no hikyaku at the far side.
fn cp(sshd: &Sshd, arguments: &[&str]) -> Command {
    let mut command = sshd.cp(arguments);
    command.args(["--remote-path", "no-such-hikyaku"]);
    command
}

fn run(command: &mut Command) -> (Output, String) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn tree(sshd: &Sshd, name: &str) -> String {
    fs::create_dir_all(sshd.at(name).join("deep/er")).unwrap();
    fs::create_dir_all(sshd.at(name).join("empty")).unwrap();
    fs::write(sshd.at(name).join("big"), random(1, 5_000_001)).unwrap();
    for n in 0..60 {
        fs::write(sshd.at(name).join(format!("deep/{n}")), random(n, n as usize * 100)).unwrap();
    }
    let odd = Path::new("deep/er").join(std::ffi::OsStr::from_bytes(b"not\xffutf8 \n"));
    fs::write(sshd.at(name).join(odd), b"x").unwrap();
    sshd.at(name).display().to_string()
}

#[test]
fn a_tree_goes_there_and_back() {
    let sshd = server("sftp-tree");
    let source = tree(&sshd, "run7");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    let big = fs::File::options().append(true).open(sshd.at("run7/big")).unwrap();
    big.set_times(fs::FileTimes::new().set_modified(old).set_accessed(old)).unwrap();
    fs::set_permissions(sshd.at("run7/deep/3"), fs::Permissions::from_mode(0o440)).unwrap();
    fs::set_permissions(sshd.at("run7/deep"), fs::Permissions::from_mode(0o550)).unwrap();
    let (output, said) = run(&mut cp(&sshd, &["-rp", &source, &sshd.far("put")]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.contains("far has no hikyaku") && said.contains("by SFTP"), "{said}");
    assert!(said.contains("\ntry: install hikyaku on far"), "{said}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("put")));
    assert!(sshd.at("put/empty").is_dir());
    fs::create_dir(sshd.at("got")).unwrap();
    let target = sshd.at("got").display().to_string();
    let (output, said) = run(&mut cp(&sshd, &["-rp", &sshd.far("put"), &target]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("got/put")));
    for copy in ["put", "got/put"] {
        let meta = |name: &str| fs::metadata(sshd.at(copy).join(name)).unwrap();
        assert_eq!(meta("big").mtime(), 1_000_000_000, "{copy}");
        assert_eq!(meta("deep/3").mode() & 0o7777, 0o440, "{copy}");
        assert_eq!(meta("deep").mode() & 0o7777, 0o550, "{copy}");
        assert!(partials(&sshd.at(copy)).is_empty());
    }
}

#[test]
fn files_are_placed_as_scp_places_them() {
    let sshd = server("sftp-places");
    for name in ["a1", "a2", "b"] {
        fs::write(sshd.at(name), name).unwrap();
    }
    let here = |name: &str| sshd.at(name).display().to_string();
    let read = |name: &str| fs::read_to_string(sshd.at(name)).unwrap();
    // A new name, a name that is taken, and a link to a file.
    fs::write(sshd.at("taken"), "old, and longer").unwrap();
    symlink("taken-too", sshd.at("link")).unwrap();
    fs::write(sshd.at("taken-too"), "old").unwrap();
    for target in ["new", "taken", "link"] {
        let (output, said) = run(&mut cp(&sshd, &["-q", &here("b"), &sshd.far(target)]));
        assert!(output.status.success() && said.is_empty(), "{target}: {said}");
        assert_eq!(read(target), "b", "{target}");
    }
    assert!(sshd.at("link").is_symlink());
    assert_eq!(read("taken-too"), "b");
    // Several go into a directory, and a pattern is matched there.
    fs::create_dir(sshd.at("into")).unwrap();
    let (output, said) = run(&mut cp(&sshd, &[&here("a1"), &here("b"), &sshd.far("into")]));
    assert!(output.status.success(), "{said}");
    assert_eq!((read("into/a1"), read("into/b")), ("a1".into(), "b".into()));
    fs::create_dir(sshd.at("globbed")).unwrap();
    let (output, said) = run(&mut cp(&sshd, &[&sshd.far("a*"), &here("globbed")]));
    assert!(output.status.success(), "{said}");
    let names: Vec<_> = listing(&sshd.at("globbed")).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [Path::new("a1"), Path::new("a2")]);
    // The contents of a directory.
    let (output, said) = run(&mut cp(&sshd, &["-r", &here("into/."), &sshd.far("globbed")]));
    assert!(output.status.success(), "{said}");
    assert_eq!(read("globbed/b"), "b");
}

#[test]
fn what_cannot_be_copied_is_said_and_leaves_nothing() {
    let sshd = server("sftp-errors");
    fs::write(sshd.at("a"), b"a").unwrap();
    fs::create_dir_all(sshd.at("tree/sub")).unwrap();
    fs::write(sshd.at("tree/a"), b"a").unwrap();
    fs::create_dir_all(sshd.at("taken/tree/a")).unwrap();
    let here = |name: &str| sshd.at(name).display().to_string();
    let cases: [(Vec<String>, i32, &str); 7] = [
        (vec![here("a"), sshd.far("no/such/b")], 6, "no such file"),
        (vec![sshd.far("nothing"), here("x")], 6, "nothing: no such file"),
        (vec![here("tree"), sshd.far("b")], 6, "-r was not given"),
        (vec![sshd.far("tree"), here("b")], 6, "-r was not given"),
        (vec!["-r".into(), here("tree"), sshd.far("taken")], 6, "a directory has this name"),
        (vec!["--verify".into(), here("a"), sshd.far("b")], 6, "a copy by SFTP has no --verify"),
        (vec!["--via".into(), "native".into(), here("a"), sshd.far("b")], 6, "install hikyaku"),
    ];
    for (arguments, code, wanted) in cases {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (output, said) = run(&mut cp(&sshd, &arguments));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {said}");
        assert!(said.contains(wanted), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{said}");
    }
    assert!(!sshd.at("b").exists());
    assert!(sshd.at("taken/tree/a").is_dir() && sshd.at("taken/tree/sub").is_dir());
    assert!(partials(&sshd.at("")).is_empty(), "{:?}", partials(&sshd.at("")));
}

#[test]
fn an_account_with_sftp_only_is_served() {
    let lines = "Subsystem sftp internal-sftp\nForceCommand internal-sftp\n";
    let sshd = Sshd::with_lines("sftp-only", lines);
    let source = tree(&sshd, "run7");
    // Even where hikyaku is installed, it cannot be started.
    let (output, said) = run(&mut sshd.cp(&["-r", &source, &sshd.far("put")]));
    assert!(output.status.success(), "{said}\n{}", sshd.log());
    assert!(said.contains("by SFTP"), "{said}");
    assert!(listing(&sshd.at("run7")) == listing(&sshd.at("put")));
}

#[test]
fn a_server_without_sftp_is_named() {
    let sshd = Sshd::start("sftp-none");
    fs::write(sshd.at("a"), b"a").unwrap();
    let a = sshd.at("a").display().to_string();
    let (output, said) = run(&mut cp(&sshd, &[&a, &sshd.far("b")]));
    assert_eq!(output.status.code(), Some(6), "{said}");
    assert!(said.contains("far has neither hikyaku nor SFTP"), "{said}");
    assert!(said.contains("\ntry: install hikyaku on far"), "{said}");
}

#[test]
fn sftp_is_used_where_it_is_asked_for() {
    let sshd = server("sftp-via");
    fs::write(sshd.at("a"), random(7, 300_000)).unwrap();
    let a = sshd.at("a").display().to_string();
    let (output, said) = run(&mut sshd.cp(&["--via", "sftp", &a, &sshd.far("b")]));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("by SFTP"), "{said}");
    assert!(fs::read(sshd.at("b")).unwrap() == random(7, 300_000));
    let (output, said) = run(&mut sshd.cp(&["--via", "sftp", &a, "broken:b"]));
    assert_eq!(output.status.code(), Some(5), "{said}");
    assert!(said.contains("ssh cannot start anything on broken"), "{said}");
    let (output, said) = run(&mut sshd.cp(&[&a, &sshd.far("c")]));
    assert!(output.status.success() && said.is_empty(), "{said}");
}
