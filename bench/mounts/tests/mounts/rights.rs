//! What a user may do, and no more: drop boxes, read-only trees, group directories, limits.

use hikyaku_bench_mounts::{Scratch, cp, cp_as_nobody, nobody, program, random, run};
use rustix::fs::{Gid, chown};
use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

fn is_root() -> bool {
    let is_root = rustix::process::geteuid().is_root();
    if !is_root {
        eprintln!("\n*** SKIPPED, because becoming another user needs root ***\n");
    }
    is_root
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

/// A directory of a mode that belongs to nobody.
fn dir_of_nobody(path: &Path, mode: u32) {
    fs::create_dir(path).unwrap();
    chown(path, Some(nobody().0), Some(nobody().1)).unwrap();
    set_mode(path, mode);
}

#[test]
fn new_directories_take_the_set_group_id_bit_that_they_are_born_with() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights-group").unwrap();
    fs::create_dir_all(scratch.at("s/deep")).unwrap();
    fs::write(scratch.at("s/deep/f"), b"f").unwrap();
    let group = Gid::from_raw(12_345);
    for options in [&["-r"][..], &["-rp"], &["-a"]] {
        let shared = scratch.at(&format!("shared{}", options[0]));
        fs::create_dir(&shared).unwrap();
        chown(&shared, None, Some(group)).unwrap();
        set_mode(&shared, 0o2775);
        let mut arguments: Vec<OsString> = options.iter().map(Into::into).collect();
        arguments.extend([scratch.at("s").into(), shared.clone().into()]);
        let said = cp(&scratch.at("state"), &arguments).unwrap();
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{options:?}");
        for name in ["s", "s/deep"] {
            let meta = fs::metadata(shared.join(name)).unwrap();
            assert_eq!(meta.mode() & 0o2000, 0o2000, "{options:?} {name}: {:o}", meta.mode());
            // Where owners are kept the group is the source's.
            let source = fs::metadata(scratch.at(name)).unwrap().gid();
            let wanted = if options == ["-a"] { source } else { group.as_raw() };
            assert_eq!(meta.gid(), wanted, "{options:?} {name}");
        }
        // The mode itself is the source's, as always.
        assert_eq!(mode(&shared.join("s/deep")) & 0o777, mode(&scratch.at("s/deep")) & 0o777);
        assert_eq!(mode(&shared), 0o2775, "{options:?}");
    }
}

#[test]
fn a_file_over_the_limit_of_a_file_fails_alone() {
    let scratch = Scratch::new("rights-limit").unwrap();
    fs::create_dir(scratch.at("s")).unwrap();
    let files = [("a", 900, true), ("b-large", 3_000_000, false), ("c", 200_000, true)];
    let files = files.into_iter().chain([("d-large", 1_500_000, false), ("e", 900_000, true)]);
    let files: Vec<_> = files.collect();
    for (name, length, _) in &files {
        fs::write(scratch.at("s").join(name), random(1, *length)).unwrap();
    }
    // In units of 1024 bytes.
    let mut command = Command::new("bash");
    command.args(["-c", "ulimit -f 1024; exec \"$@\"", "bash"]).arg(program());
    command.arg("cp").arg("-r").arg(scratch.at("s")).arg(scratch.at("d"));
    let said = run(command, &scratch.at("state")).unwrap();
    assert_eq!(said.code, Some(6), "some files failed: {said:?}");
    for (name, length, fits) in files {
        let has = fs::read(scratch.at("d").join(name)).ok();
        let wanted = fits.then(|| random(1, length));
        assert!(has == wanted, "{name} is there: {}, {said:?}", has.is_some());
        assert_eq!(said.stderr.contains(&format!("/{name}: ")), !fits, "{name}: {said:?}");
    }
    let names = fs::read_dir(scratch.at("d")).unwrap().count();
    assert_eq!(names, 3, "nothing unfinished is left");
}

#[test]
fn a_drop_box_takes_files() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights-box").unwrap();
    fs::create_dir_all(scratch.at("s/deep")).unwrap();
    for (name, length) in [("f", 300_000), ("deep/g", 900)] {
        fs::write(scratch.at("s").join(name), random(1, length)).unwrap();
    }
    fs::create_dir(scratch.at("box")).unwrap();
    set_mode(&scratch.at("box"), 0o1733);
    let state = scratch.at("state");
    let cases: [(&[&str], &str, &str, &str); 3] = [
        (&[], "s/f", "box/renamed", "box/renamed"),
        (&[], "s/f", "box/", "box/f"),
        (&["-r"], "s", "box/tree", "box/tree/f"),
    ];
    for (options, from, to, file) in cases {
        let mut arguments: Vec<OsString> = options.iter().map(Into::into).collect();
        // A path joined by hand keeps its slash.
        arguments.extend([scratch.at(from).into(), scratch.at(to).into()]);
        let said = cp_as_nobody(&state, &arguments).unwrap();
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{to}: {said:?}");
        assert!(fs::read(scratch.at(file)).ok() == Some(random(1, 300_000)), "{to}");
    }
    assert!(fs::read(scratch.at("box/tree/deep/g")).ok() == Some(random(1, 900)));
    assert_eq!(mode(&scratch.at("box")), 0o1733);
}

#[test]
fn a_writable_file_in_a_directory_that_is_not_names_the_remedy() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights-file").unwrap();
    fs::write(scratch.at("new"), b"new").unwrap();
    fs::create_dir(scratch.at("d")).unwrap();
    fs::write(scratch.at("d/f"), b"old").unwrap();
    chown(scratch.at("d/f"), Some(nobody().0), None).unwrap();
    let arguments = [scratch.at("new"), scratch.at("d/f")];
    let said = cp_as_nobody(&scratch.at("state"), &arguments).unwrap();
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    assert!(said.stderr.contains("--inplace"), "{said:?}");
    let arguments = [&["--inplace".into()][..], &arguments.map(OsString::from)].concat();
    let said = cp_as_nobody(&scratch.at("state"), &arguments).unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(fs::read(scratch.at("d/f")).unwrap(), b"new");
}

#[test]
fn a_read_only_tree_is_brought_up_to_date_by_its_owner() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights-tree").unwrap();
    let (state, source) = (scratch.at("state"), scratch.at("s"));
    let write = |name: &str, text: &str| fs::write(source.join(name), text).unwrap();
    let dirs = ["a/b", "a", ""];
    let set = |mode| dirs.iter().for_each(|dir| set_mode(&source.join(dir), mode));
    fs::create_dir_all(source.join("a/b")).unwrap();
    write("a/f", "1");
    write("a/b/g", "2");
    dir_of_nobody(&scratch.at("in"), 0o755);
    for options in ["-r", "-rp", "-a"] {
        set(0o555);
        let target = scratch.at("in").join(options);
        let copy = || {
            let from = scratch.at("s/.").into_os_string();
            cp_as_nobody(&state, &[options.into(), from, target.clone().into_os_string()]).unwrap()
        };
        let said = copy();
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{options}: {said:?}");
        set(0o755);
        write("a/f", &format!("changed {options}"));
        write(&format!("a/b/new{options}"), "new");
        set(0o555);
        let said = copy();
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{options}: {said:?}");
        assert_eq!(fs::read_to_string(target.join("a/f")).unwrap(), format!("changed {options}"));
        assert_eq!(fs::read(target.join(format!("a/b/new{options}"))).unwrap(), b"new");
        for dir in ["a/b", "a"] {
            assert_eq!(mode(&target.join(dir)), 0o555, "{options} {dir}");
        }
        set(0o755);
    }
}

/// A directory of somebody else's stays as it is, and that is said.
#[test]
fn nobody_lends_rights_to_what_is_not_theirs() {
    if !is_root() {
        return;
    }
    let scratch = Scratch::new("rights-others").unwrap();
    fs::create_dir_all(scratch.at("s/a")).unwrap();
    fs::write(scratch.at("s/a/f"), b"f").unwrap();
    fs::create_dir_all(scratch.at("in/s/a")).unwrap();
    let arguments: [OsString; 3] = ["-r".into(), scratch.at("s").into(), scratch.at("in").into()];
    let said = cp_as_nobody(&scratch.at("state"), &arguments).unwrap();
    assert!(said.code.is_some_and(|code| code != 0), "{said:?}");
    assert!(said.stderr.to_lowercase().contains("permission denied"), "{said:?}");
    assert!(!scratch.at("in/s/a/f").exists());
    assert_eq!(mode(&scratch.at("in/s/a")), 0o755);
}
