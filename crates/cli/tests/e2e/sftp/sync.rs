//! `hikyaku sync`: trees become alike, here and through a real ssh, and nothing is deleted that was not due.

use super::trees::{Entry, Scratch, state};
use crate::common::{Sshd, random};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

fn tree(scratch: &Scratch, root: &str) {
    for n in 0..30_u64 {
        scratch.write(&format!("{root}/d{}/f{n}", n % 3), random(n, n as usize * 997));
    }
    scratch.write(&format!("{root}/big"), random(99, 700_000));
    fs::create_dir_all(scratch.at(root).join("empty")).unwrap();
    symlink("d1/f1", scratch.at(root).join("link")).unwrap();
    symlink("nowhere", scratch.at(root).join("d1/dangling")).unwrap();
    fs::set_permissions(scratch.at(root).join("d0/f0"), fs::Permissions::from_mode(0o440)).unwrap();
    fs::set_permissions(scratch.at(root).join("d2"), fs::Permissions::from_mode(0o750)).unwrap();
}

/// The state of a tree with times in whole seconds, as SFTP tells and sets them.
fn seconds(root: &Path) -> Vec<Entry> {
    let whole = |(name, mode, (secs, _), content)| (name, mode, (secs, 0), content);
    state(root).into_iter().map(whole).collect()
}

#[test]
fn a_rehearsal_says_what_the_run_says_and_the_second_run_says_nothing() {
    let scratch = Scratch::new("alike");
    tree(&scratch, "a");
    let would = scratch.sync(&["-ain", "--delete", "a/", "b"]);
    assert_eq!(would.0, 0, "{}", would.2);
    assert!(!scratch.at("b").exists());
    let did = scratch.sync(&["-ai", "--delete", "a/", "b"]);
    assert_eq!(did.0, 0, "{}", did.2);
    assert_eq!(did.1, would.1);
    assert!(did.1.starts_with("cd+++++++++ ./\n>f+++++++++ big\n"), "{}", did.1);
    assert!(did.1.contains("cL+++++++++ link -> d1/f1\ncd+++++++++ d0/\n"), "{}", did.1);
    assert!(state(&scratch.at("a")) == state(&scratch.at("b")));
    assert_eq!(scratch.sync(&["-ai", "--delete", "a/", "b/"]), (0, String::new(), String::new()));
    // Without the slash it is the directory itself.
    assert_eq!(scratch.sync(&["-a", "a", "c/"]).0, 0);
    assert!(state(&scratch.at("a")) == state(&scratch.at("c/a")));
    // Modes and times each alone.
    scratch.write("a/d0/f0", "new");
    fs::set_permissions(scratch.at("a/d0/f0"), fs::Permissions::from_mode(0o604)).unwrap();
    let meta = |name: &str| {
        let meta = fs::metadata(scratch.at(name)).unwrap();
        (meta.permissions().mode() & 0o777, meta.modified().unwrap())
    };
    assert_eq!(scratch.sync(&["-rt", "a/d0/", "b/d0/"]).0, 0);
    assert_eq!(meta("b/d0/f0"), (0o440, meta("a/d0/f0").1));
    assert_eq!(scratch.sync(&["-rpI", "a/d0/", "c/a/d0/"]).0, 0);
    let kept = meta("c/a/d0/f0");
    assert!(kept.0 == 0o604 && kept.1 != meta("a/d0/f0").1, "{kept:?}");
}

#[test]
fn nothing_is_deleted_that_was_not_due() {
    let scratch = Scratch::new("due");
    tree(&scratch, "a");
    scratch.write("b/extra", "x");
    scratch.write("b/cache/kept", "x");
    let delete =
        |words: &[&str]| scratch.sync(&[&["-ai", "--delete"], words, &["a/", "b/"]].concat());
    assert_eq!(scratch.sync(&["-a", "a/", "b/"]).0, 0);
    assert!(scratch.at("b/extra").exists(), "without --delete");
    let (code, said, error) = delete(&["--max-delete", "2"]);
    assert_eq!((code, &said[..]), (25, ""), "{error}");
    assert!(scratch.at("b/extra").exists() && scratch.at("b/cache/kept").exists());
    // A source without a file is an unmounted disk rather than a wish.
    fs::create_dir_all(scratch.at("none/mount-point")).unwrap();
    let (code, _, error) = scratch.sync(&["-a", "--delete", "none/", "b/"]);
    assert_eq!(code, 6, "{error}");
    assert!(error.contains("try: --delete-all") && scratch.at("b/big").exists(), "{error}");
    assert_eq!(scratch.sync(&["-a", "--delete", "nowhere/", "b/"]).0, 6);
    assert_eq!(scratch.sync(&["-a", "--delete", "a/big/", "b/"]).0, 6);
    assert!(scratch.at("b/big").exists() && scratch.at("b/extra").exists());
    // The source is in the target, and is a name there that the source does not have.
    scratch.write("b/deep/inner/x", "x");
    let (code, _, error) = scratch.sync(&["-a", "--delete", "b/deep/inner/", "b/"]);
    assert!(code == 6 && error.contains("deep/inner"), "{code} {error}");
    assert!(scratch.at("b/deep/inner/x").exists() && scratch.at("b/big").exists());
    fs::remove_dir_all(scratch.at("b/deep")).unwrap();
    // A directory is in the way of a file: what is in it is deleted, and counted, or nothing is done.
    fs::remove_file(scratch.at("b/big")).unwrap();
    scratch.write("b/big/inner", "x");
    let (code, _, error) = scratch.sync(&["-a", "a/", "b/"]);
    assert!(code == 23 && error.contains("big: a directory has this name"), "{code} {error}");
    let (code, _, error) = delete(&["--max-delete", "3"]);
    assert!(code == 25 && scratch.at("b/big/inner").exists(), "{code} {error}");
    // A link at the target is a name: what it leads to is neither listed nor changed.
    scratch.write("outside/precious", "x");
    symlink("../outside", scratch.at("b/way-out")).unwrap();
    fs::rename(scratch.at("b/d1"), scratch.at("outside/d1")).unwrap();
    symlink("../outside/d1", scratch.at("b/d1")).unwrap();
    let before = state(&scratch.at("outside"));
    let (code, said, error) = delete(&[]);
    assert_eq!(code, 0, "{error}");
    assert!(said.contains("*deleting   way-out\n") && !said.contains("precious"), "{said}");
    assert!(state(&scratch.at("a")) == state(&scratch.at("b")));
    assert!(before == state(&scratch.at("outside")));
    // A directory that cannot be read: nothing in it is deleted, and all elsewhere.
    scratch.write("b/d1/extra", "x");
    scratch.write("b/d2/extra", "x");
    let closed = |name: &str| {
        let mode = fs::metadata(scratch.at(name)).unwrap().permissions();
        fs::set_permissions(scratch.at(name), fs::Permissions::from_mode(0o0)).unwrap();
        let mut command = Command::new("setpriv");
        if rustix::process::geteuid().is_root() {
            command.arg("--bounding-set=-dac_override,-dac_read_search");
        }
        command.arg(env!("CARGO_BIN_EXE_hikyaku"));
        let told = scratch.run(command.args(["sync", "-ai", "--delete", "a/", "b/"]));
        fs::set_permissions(scratch.at(name), mode).unwrap();
        told
    };
    let (code, said, error) = closed("a/d1");
    assert!(code == 23 && error.contains("d1: permission denied"), "{code} {error}");
    assert!(scratch.at("b/d1/extra").exists() && scratch.at("b/d1/f1").exists(), "{said}{error}");
    assert!(!scratch.at("b/d2/extra").exists(), "{said}{error}");
    // A file that cannot be copied: nothing is deleted.
    scratch.write("a/d2/secret", "x");
    let (code, said, error) = closed("a/d2/secret");
    assert!(code == 23 && error.contains("what the source does not have stays"), "{code} {error}");
    assert!(scratch.at("b/d1/extra").exists() && !said.contains("deleting"), "{said}{error}");
    assert_eq!(scratch.sync(&["-a", "--delete-all", "--delete", "none/", "b/"]).0, 0);
    assert_eq!(fs::read_dir(scratch.at("b")).unwrap().count(), 1);
}

#[test]
fn files_are_chosen_by_what_is_at_the_target() {
    let scratch = Scratch::new("choice");
    for name in ["same", "changed", "newer", "only-here"] {
        scratch.write(&format!("a/{name}"), "12345");
        scratch.write(&format!("b/{name}"), "12345");
    }
    fs::remove_file(scratch.at("b/only-here")).unwrap();
    scratch.write("b/changed", "old");
    fs::write(scratch.at("b/newer"), "later").unwrap();
    let told = |words: &[&str]| {
        let (code, told, error) = scratch.sync(&[&["-rptn"], words, &["a/", "b"]].concat());
        assert_eq!(code, 0, "{error}");
        told.lines().filter(|line| *line != "./").map(str::to_owned).collect::<Vec<_>>()
    };
    let cases: [(&[&str], &[&str]); 9] = [
        (&[], &["changed", "newer", "only-here"]),
        (&["-u"], &["changed", "only-here"]),
        (&["--existing"], &["changed", "newer"]),
        (&["--ignore-existing"], &["only-here"]),
        (&["--ignore-times"], &["changed", "newer", "only-here", "same"]),
        (&["--modify-window", "4000000000", "--exclude", "only*"], &["changed"]),
        (&["--include", "new*", "--exclude", "*"], &["newer"]),
        (&["--exclude", "*", "--include", "new*"], &[]),
        (&["--max-size", "4"], &[]),
    ];
    for (words, wanted) in cases {
        assert_eq!(told(words), wanted, "{words:?}");
    }
    assert_eq!(scratch.sync(&["-ab", "--suffix", ".old", "a/", "b"]).0, 0);
    assert_eq!(fs::read(scratch.at("b/changed.old")).unwrap(), b"old");
    assert_eq!(fs::read(scratch.at("b/changed")).unwrap(), b"12345");
    // One file goes into a directory that is there.
    fs::create_dir(scratch.at("c")).unwrap();
    assert_eq!(scratch.sync(&["a/same", "c"]).0, 0);
    assert_eq!(fs::read_dir(scratch.at("c")).unwrap().count(), 1);
    for words in [&["-a", "--filter", "? x"][..], &["-aH"], &["--delete"], &["a"]] {
        assert_eq!(scratch.sync(&[words, &["a/", "c"]].concat()).0, 1, "{words:?}");
    }
}

#[test]
fn trees_become_alike_through_ssh_in_both_directions() {
    let sshd = Sshd::with_lines("sync-ssh", "Subsystem sftp internal-sftp\n");
    let scratch = Scratch::new("through");
    tree(&scratch, "a");
    let rsh = format!("ssh -F {}", sshd.at("ssh_config").display());
    for (name, program) in [("native", env!("CARGO_BIN_EXE_hikyaku")), ("by-sftp", "no-such")] {
        let far = format!("far:{}", scratch.at(name).display());
        let back = format!("{name}-back");
        scratch.write(&format!("{name}/extra/x"), "x");
        let run = |ends: [&str; 2]| {
            let words = ["-ai", "--delete", "-e", &rsh, "--remote-path", program];
            let (code, told, error) = scratch.sync(&[&words[..], &ends].concat());
            assert_eq!(code, 0, "{name}: {told}{error}");
            told
        };
        let told = run(["a/", &far]);
        assert!(told.contains("<f+++++++++ big\n"), "{name}: {told}");
        assert!(told.contains("*deleting   extra/x\n*deleting   extra/\n"), "{name}: {told}");
        assert!(seconds(&scratch.at("a")) == seconds(&scratch.at(name)), "{name}");
        assert_eq!(run(["a/", &far]), "", "{name}");
        let told = run([&format!("{far}/"), &back]);
        assert!(told.contains(">f+++++++++ big\n"), "{name}: {told}");
        assert!(seconds(&scratch.at("a")) == seconds(&scratch.at(&back)), "{name}");
    }
}

#[test]
fn names_of_a_list_are_copied_contents_are_compared_and_sources_removed() {
    let scratch = Scratch::new("list");
    for name in ["x", "d/y", "d/z", "e/deep/w", "other"] {
        scratch.write(&format!("a/{name}"), name);
    }
    fs::write(scratch.at("list"), "x\nd/y\n# no name\n/e/deep\n").unwrap();
    let names = |root: &str| {
        let all = state(&scratch.at(root)).into_iter();
        all.map(|(name, ..)| name.display().to_string()).collect::<Vec<_>>()
    };
    let (code, _, error) = scratch.sync(&["-a", "--files-from", "list", "a/", "b"]);
    assert_eq!(
        (code, names("b")),
        (0, ["", "d", "d/y", "e", "e/deep", "x"].map(str::to_owned).to_vec()),
        "{error}"
    );
    assert_eq!(scratch.sync(&["-ar", "--files-from", "list", "a", "b"]).0, 0);
    assert!(scratch.at("b/e/deep/w").exists() && !scratch.at("b/other").exists());
    fs::write(scratch.at("list"), "x\0none\0").unwrap();
    let (code, _, error) = scratch.sync(&["-a0", "--files-from", "list", "a/", "c"]);
    assert_eq!((code, names("c").len()), (23, 2), "{error}");
    assert!(error.contains("none: no such file"), "{error}");
    assert_eq!(scratch.sync(&["-a", "--delete", "--files-from", "list", "a/", "b"]).0, 1);
    // Equal sizes and times, and another content.
    scratch.write("c/x", "y");
    // The root is no name of a list, and has its own time until then.
    assert_eq!(scratch.sync(&["-a", "--existing", "a/", "c/"]).0, 0);
    assert_eq!(scratch.sync(&["-ai", "--existing", "a/", "c/"]).1, "");
    assert_eq!(scratch.sync(&["-aic", "--existing", "a/", "c/"]).1, ">fc........ x\n");
    assert_eq!(fs::read(scratch.at("c/x")).unwrap(), b"x");
    // What was copied is removed; what was there before, and what was left alone, stays.
    scratch.write("c/d/y", "more");
    let words = ["-a", "--remove-source-files", "--ignore-existing"];
    let (code, _, error) = scratch.sync(&[&words[..], &["a/", "c/"]].concat());
    assert_eq!(
        (code, names("a")),
        (0, ["", "d", "d/y", "e", "e/deep", "x"].map(str::to_owned).to_vec()),
        "{error}"
    );
    assert!(scratch.at("c/d/z").exists() && scratch.at("c/other").exists());
    assert_eq!(scratch.sync(&["-aI", "--remove-source-files", "c/", "c"]).0, 1);
    assert!(scratch.at("c/other").exists());
}
