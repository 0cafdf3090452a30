//! Files that lose their name while a program has them open.

use super::place::{Place, can_mount, random, said, until};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;

/// The ways of mounting: arguments of the daemon, and whether the mount has a journal.
const MODES: [(&[&str], bool); 3] =
    [(&["--writable"], false), (&["--writable", "--leases"], false), (&["--writable"], true)];

/// A mount in each mode, of a server that has these files.
fn each(name: &str, files: &[(&str, &[u8])], check: impl Fn(&Place, &str)) {
    if !can_mount() {
        return;
    }
    for (n, (options, is_staged)) in MODES.into_iter().enumerate() {
        let place = Place::with(&format!("{name}-{n}"), options);
        for (name, bytes) in files {
            fs::write(place.root(name), bytes).unwrap();
        }
        let stage = place.at("stage");
        let options = if is_staged { vec!["--stage", stage.to_str().unwrap()] } else { Vec::new() };
        place.mount(&options);
        check(&place, &format!("mode {n}"));
        let output = place.umount(&[]);
        assert!(output.status.success(), "mode {n}: {}", said(&output));
        assert_eq!(hidden(&place.at("root")), 0, "mode {n}");
        let notes = place.at("state/hikyaku/mounts");
        let left = fs::read_dir(&notes).into_iter().flatten().map(|dir| dir.unwrap().path());
        let left: usize = left.map(|dir| fs::read_dir(dir).unwrap().count()).sum();
        assert_eq!(left, 0, "mode {n}");
    }
}

/// Hidden names below a directory.
fn hidden(dir: &Path) -> usize {
    let one = |entry: fs::DirEntry| {
        let is_hidden = entry.file_name().to_string_lossy().starts_with(".hikyaku-open");
        let below = if entry.path().is_dir() { hidden(&entry.path()) } else { 0 };
        usize::from(is_hidden) + below
    };
    fs::read_dir(dir).unwrap().map(|entry| one(entry.unwrap())).sum()
}

fn open(path: &Path) -> File {
    File::options().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

#[test]
fn a_removed_file_is_used_until_its_last_handle_is_closed() {
    each("mount-unnamed", &[], |place, mode| {
        fs::create_dir(place.mnt("d")).unwrap();
        let path = place.mnt("d/a");
        let mut first = open(&path);
        let second = open(&path);
        first.write_all(b"before").unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap_err().kind(), ErrorKind::NotFound, "{mode}");
        assert_eq!(fs::read_dir(place.mnt("d")).unwrap().count(), 0, "{mode}");
        let bytes = random(1, 3_000_000);
        first.write_all(&bytes).unwrap();
        first.sync_all().unwrap();
        assert_eq!(first.metadata().unwrap().nlink(), 0, "{mode}");
        assert_eq!(first.metadata().unwrap().len(), 3_000_006, "{mode}");
        // Another file gets the name.
        fs::write(&path, "other").unwrap();
        first.set_len(2_000_006).unwrap();
        drop(first);
        let mut read = vec![0; 2_000_000];
        second.read_exact_at(&mut read, 6).unwrap();
        assert!(read == bytes[..2_000_000], "{mode}");
        second.write_all_at(b"BEFORE", 0).unwrap();
        let mut start = [0; 6];
        second.read_exact_at(&mut start, 0).unwrap();
        assert_eq!(&start, b"BEFORE", "{mode}");
        drop(second);
        assert_eq!(fs::read(&path).unwrap(), b"other", "{mode}");
        until("the hidden name stays", || hidden(&place.at("root")) == 0);
        until("the other file is not there", || {
            fs::read(place.root("d/a")).is_ok_and(|bytes| bytes == b"other")
        });
    });
}

// spec: store-feature-7
#[test]
fn nothing_of_a_removed_file_is_at_the_server_when_its_last_close_has_returned() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-withdrawn", &["--writable"]);
    place.mount(&[]);
    let there = |dir: &str| fs::read_dir(place.root(dir)).unwrap().count();
    fs::create_dir(place.mnt("d")).unwrap();
    for round in 0..20 {
        let mut file = open(&place.mnt("d/a"));
        file.write_all(b"bytes").unwrap();
        fs::remove_file(place.mnt("d/a")).unwrap();
        file.write_all(b" and more").unwrap();
        drop(file);
        assert_eq!(there("d"), 0, "round {round}");
    }
    // A copy of a descriptor is used after the first one was closed, while the directory goes and others come.
    let mut file = open(&place.mnt("d/a"));
    file.write_all(b"bytes").unwrap();
    fs::remove_file(place.mnt("d/a")).unwrap();
    let mut copy = file.try_clone().unwrap();
    drop(file);
    assert_eq!(there("d"), 0);
    copy.write_all(b" and more").unwrap();
    copy.sync_all().unwrap();
    fs::rename(place.mnt("d"), place.mnt("e")).unwrap();
    copy.write_all(b", and more").unwrap();
    fs::remove_dir(place.mnt("e")).unwrap();
    fs::write(place.mnt("e"), "another").unwrap();
    copy.set_len(20).unwrap();
    assert_eq!(copy.metadata().unwrap().nlink(), 0);
    let mut read = String::new();
    copy.rewind().unwrap();
    copy.read_to_string(&mut read).unwrap();
    assert_eq!(read, "bytes and more, and ");
    drop(copy);
    assert!(place.umount(&[]).status.success());
    assert_eq!(fs::read(place.root("e")).unwrap(), b"another");
    assert_eq!(there(""), 1);
}

#[test]
fn a_file_that_is_replaced_is_read_to_its_end() {
    each("mount-replaced", &[], |place, mode| {
        let bytes = random(2, 20_000_000);
        fs::write(place.mnt("a"), &bytes).unwrap();
        let mut old = File::open(place.mnt("a")).unwrap();
        let mut whole = vec![0; 100];
        old.read_exact(&mut whole).unwrap();
        for round in 0..3 {
            fs::write(place.mnt("new"), format!("round {round}")).unwrap();
            fs::rename(place.mnt("new"), place.mnt("a")).unwrap();
            assert_eq!(fs::read(place.mnt("a")).unwrap(), format!("round {round}").as_bytes());
        }
        old.read_to_end(&mut whole).unwrap();
        assert!(whole == bytes, "{mode}: {} bytes", whole.len());
        // It cannot be replaced by what is not there, or by a directory, and keeps its name.
        let again = File::open(place.mnt("a")).unwrap();
        fs::create_dir(place.mnt("dir")).unwrap();
        assert!(fs::rename(place.mnt("none"), place.mnt("a")).is_err(), "{mode}");
        assert!(fs::rename(place.mnt("dir"), place.mnt("a")).is_err(), "{mode}");
        assert_eq!(fs::read(place.mnt("a")).unwrap(), b"round 2", "{mode}");
        drop((again, old));
    });
}

#[test]
fn a_directory_is_removed_with_files_in_it_that_are_open_and_have_no_name() {
    each("mount-unnamed-dir", &[], |place, mode| {
        fs::create_dir_all(place.mnt("a/b/c")).unwrap();
        let mut files: Vec<File> = Vec::new();
        for (n, dir) in ["a", "a/b", "a/b/c", "a/b/c"].into_iter().enumerate() {
            let mut file = open(&place.mnt(&format!("{dir}/{n}")));
            file.write_all(format!("file {n}").as_bytes()).unwrap();
            files.push(file);
        }
        fs::remove_file(place.mnt("a/b/c/3")).unwrap();
        fs::rename(place.mnt("a/b"), place.mnt("a/moved")).unwrap();
        for name in ["a/0", "a/moved/1", "a/moved/c/2"] {
            fs::remove_file(place.mnt(name)).unwrap();
        }
        for name in ["a/moved/c", "a/moved", "a"] {
            let removed = fs::remove_dir(place.mnt(name));
            let left = || fs::read_dir(place.root(name)).map(|all| all.map(|e| e.unwrap().path()));
            assert!(
                removed.is_ok(),
                "{mode}: {name}: {removed:?} {:?}",
                left().map(Vec::from_iter)
            );
        }
        for (n, file) in files.iter_mut().enumerate() {
            file.rewind().unwrap();
            let mut text = String::new();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("file {n}"), "{mode}");
        }
        assert!(!place.root("a").exists() || mode == "mode 1", "{mode}");
    });
}

#[test]
fn a_file_is_removed_while_it_is_read() {
    let bytes = random(3, 30_000_000);
    let files: [(&str, &[u8]); 2] = [("removed", &bytes), ("moved", &bytes)];
    each("mount-unnamed-read", &files, |place, mode| {
        for (name, _) in files {
            let mut file = File::open(place.mnt(name)).unwrap();
            let mut whole = vec![0; 5_000_000];
            file.read_exact(&mut whole).unwrap();
            if name == "moved" {
                fs::rename(place.mnt(name), place.mnt("new")).unwrap();
            } else {
                fs::remove_file(place.mnt(name)).unwrap();
            }
            file.read_to_end(&mut whole).unwrap();
            assert!(whole == bytes, "{mode} {name}: {} bytes", whole.len());
        }
    });
}

#[test]
fn hidden_names_of_a_mount_that_was_killed_are_removed_by_the_next_one() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-unnamed-kill", &["--writable"]);
    place.mount(&[]);
    fs::create_dir(place.mnt("d")).unwrap();
    let removed = open(&place.mnt("d/removed"));
    fs::remove_file(place.mnt("d/removed")).unwrap();
    fs::write(place.mnt("kept"), "old").unwrap();
    let replaced = File::open(place.mnt("kept")).unwrap();
    fs::write(place.mnt("new"), "new").unwrap();
    fs::rename(place.mnt("new"), place.mnt("kept")).unwrap();
    assert_eq!(hidden(&place.at("root")), 2);
    // A second mount lives, and its hidden names stay.
    let other = place.other_mount();
    let living = open(&other.join("living"));
    fs::remove_file(other.join("living")).unwrap();
    assert!(Command::new("kill").args(["-9", &place.server()]).status().unwrap().success());
    drop((removed, replaced));
    assert!(place.umount(&[]).status.success());
    assert_eq!(hidden(&place.at("root")), 3);
    place.mount(&[]);
    assert_eq!(hidden(&place.at("root")), 1);
    assert_eq!(fs::read(place.root("kept")).unwrap(), b"new");
    drop(living);
    let output = place.umount_other();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(hidden(&place.at("root")), 0);
}

#[test]
fn a_name_that_begins_like_a_hidden_one_is_shown_or_refused() {
    each("mount-like-hidden", &[], |place, mode| {
        let shown = [".hikyaku-open-", ".hikyaku-open-notes.txt", ".hikyaku-open-12-3"];
        shown.iter().for_each(|name| fs::write(place.mnt(name), name).unwrap());
        let listed: Vec<_> = fs::read_dir(place.mnt("")).unwrap().collect();
        assert_eq!(listed.len(), shown.len(), "{mode}");
        for name in shown {
            assert_eq!(fs::read_to_string(place.mnt(name)).unwrap(), name, "{mode}");
        }
        let taken = format!(".hikyaku-open-{}-1", "0123456789abcdef".repeat(2));
        let is_refused = |error: std::io::Error| error.kind() == ErrorKind::InvalidInput;
        assert!(is_refused(fs::write(place.mnt(&taken), "").unwrap_err()), "{mode}");
        assert!(is_refused(fs::create_dir(place.mnt(&taken)).unwrap_err()), "{mode}");
        let renamed = fs::rename(place.mnt(shown[0]), place.mnt(&taken));
        assert!(is_refused(renamed.unwrap_err()), "{mode}");
        shown.iter().for_each(|name| fs::remove_file(place.mnt(name)).unwrap());
    });
}
