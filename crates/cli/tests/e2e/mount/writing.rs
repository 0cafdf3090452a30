//! Programs that write through a mount.

use super::place::{Mode, Place, can_mount, random, said, until};
use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

#[test]
fn programs_write_files_that_the_server_has() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-write", &["--writable"]);
    place.mount(&[]);
    for (n, size) in [0, 1, 4097, 300_000, 5_000_003].into_iter().enumerate() {
        let bytes = random(n as u64, size);
        fs::write(place.mnt(&size.to_string()), &bytes).unwrap();
        // Closed here means that the server has it.
        assert!(fs::read(place.root(&size.to_string())).unwrap() == bytes, "{size}");
        assert!(fs::read(place.mnt(&size.to_string())).unwrap() == bytes, "{size} read back");
    }
    // What is written in the middle of a file is read back through the same handle.
    let mut bytes = random(9, 3_000_000);
    fs::write(place.mnt("a"), &bytes).unwrap();
    let mut file = File::options().read(true).write(true).open(place.mnt("a")).unwrap();
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..60 {
        let at = rng.usize(..bytes.len() - 100_000);
        let part = random(rng.u64(..), 1 + rng.usize(..100_000));
        file.write_all_at(&part, at as u64).unwrap();
        bytes[at..at + part.len()].copy_from_slice(&part);
        let from = rng.usize(..bytes.len() - 200_000);
        let mut read = vec![0; 200_000];
        file.read_exact_at(&mut read, from as u64).unwrap();
        assert!(read == bytes[from..from + 200_000]);
    }
    file.set_len(1_000_000).unwrap();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(b"the end").unwrap();
    file.sync_all().unwrap();
    bytes.truncate(1_000_000);
    bytes.extend_from_slice(b"the end");
    assert!(fs::read(place.root("a")).unwrap() == bytes);
    assert_eq!(file.metadata().unwrap().len(), 1_000_007);
    let mut whole = Vec::new();
    file.rewind().unwrap();
    file.read_to_end(&mut whole).unwrap();
    assert!(whole == bytes);
    let output = place.umount(&[]);
    assert!(!output.status.success(), "the file is open");
    drop(file);
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
}

#[test]
fn names_and_metadata_change_at_the_server() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-names", &["--writable"]);
    place.mount(&[]);
    fs::create_dir_all(place.mnt("a/b/c")).unwrap();
    fs::write(place.mnt("a/b/file"), "one").unwrap();
    let mut open = File::options().append(true).open(place.mnt("a/b/file")).unwrap();
    fs::rename(place.mnt("a/b"), place.mnt("a/new")).unwrap();
    // An open file goes with its directory.
    open.write_all(b" two").unwrap();
    drop(open);
    assert_eq!(fs::read(place.root("a/new/file")).unwrap(), b"one two");
    assert_eq!(fs::read(place.mnt("a/new/file")).unwrap(), b"one two");
    assert!(!place.mnt("a/b").exists());
    // As editors save.
    fs::write(place.mnt("a/temporary"), "three").unwrap();
    fs::rename(place.mnt("a/temporary"), place.mnt("a/new/file")).unwrap();
    assert_eq!(fs::read(place.mnt("a/new/file")).unwrap(), b"three");
    std::os::unix::fs::symlink("new/file", place.mnt("a/link")).unwrap();
    assert_eq!(fs::read(place.root("a/link")).unwrap(), b"three");
    fs::set_permissions(place.mnt("a/new/file"), fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(fs::metadata(place.root("a/new/file")).unwrap().permissions().mode() & 0o777, 0o640);
    let time = std::time::UNIX_EPOCH + Duration::from_secs(1_234_567);
    File::options().write(true).open(place.mnt("a/new/file")).unwrap().set_modified(time).unwrap();
    assert_eq!(fs::metadata(place.root("a/new/file")).unwrap().modified().unwrap(), time);
    let full = fs::remove_dir(place.mnt("a")).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::DirectoryNotEmpty);
    let taken = File::create_new(place.mnt("a/new/file")).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
    for name in ["a/link", "a/new/file"] {
        fs::remove_file(place.mnt(name)).unwrap();
        assert!(!place.root(name).exists() && !place.mnt(name).exists(), "{name}");
    }
    for name in ["a/new/c", "a/new", "a"] {
        fs::remove_dir(place.mnt(name)).unwrap();
    }
    assert_eq!(fs::read_dir(place.at("root")).unwrap().count(), 0);
    assert_eq!(fs::read_dir(place.at("mnt")).unwrap().count(), 0);
}

#[test]
fn other_programs_work_in_a_mount() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-programs", &["--writable"]);
    for n in 0..40 {
        fs::create_dir_all(place.at(&format!("tree/{}", n % 5))).unwrap();
        let bytes = random(n, 1000 * n as usize);
        fs::write(place.at(&format!("tree/{}/{n}", n % 5)), bytes).unwrap();
    }
    place.mount(&[]);
    let script = "set -e; cp -r tree mnt/; diff -r tree mnt/tree; tar -C mnt -cf mnt/t.tar tree; \
        mkdir mnt/out; tar -C mnt/out -xf mnt/t.tar; diff -r tree mnt/out/tree; \
        mv mnt/out mnt/moved; rm -r mnt/moved mnt/tree; ls -A mnt";
    let output =
        Command::new("sh").args(["-c", script]).current_dir(place.at("")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "t.tar\n");
}

#[test]
fn a_server_that_may_not_be_written_to_is_mounted_to_read() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-refused");
    let mut command = place.command(&["mount", "-o", "rw", &place.source("")]);
    let output = command.arg(place.at("mnt")).output().unwrap();
    assert!(said(&output).contains("--writable"), "{}", said(&output));
    place.mount(&[]);
    assert_eq!(fs::write(place.mnt("a"), "x").unwrap_err().kind(), ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn writes_survive_a_restart_of_the_server() {
    if !can_mount() {
        return;
    }
    let mut place = Place::with("mount-restart", &["--writable"]);
    let bytes = random(1, 60_000_000);
    fs::write(place.at("payload"), &bytes).unwrap();
    place.mount(&["--timeout", "60s"]);
    // Another process writes: starting a daemon closes this one's files in the child, and closing waits for the server.
    let mut dd = Command::new("dd");
    dd.arg(format!("if={}", place.at("payload").display()));
    dd.arg(format!("of={}", place.mnt("a").display())).args(["bs=1M", "conv=fsync", "status=none"]);
    let mut writer = dd.spawn().unwrap();
    until("nothing is written", || fs::metadata(place.root("a")).is_ok_and(|a| a.len() > 0));
    place.kill_daemon();
    thread::sleep(Duration::from_millis(300));
    place.start();
    assert!(writer.wait().unwrap().success());
    assert!(fs::read(place.root("a")).unwrap() == bytes);
}

#[test]
fn a_lost_write_is_told_once() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-error", &["--writable"]);
    place.mount(&[]);
    let mut file = File::create(place.mnt("a")).unwrap();
    file.write_all(b"one").unwrap();
    file.sync_all().unwrap();
    // The file is replaced at the server: what is written now has no place.
    fs::write(place.root("b"), "other").unwrap();
    fs::rename(place.root("b"), place.root("a")).unwrap();
    let _ = file.write_all(b"two");
    let error = file.sync_all().unwrap_err();
    assert_eq!(error.raw_os_error(), Some(116), "{error}");
    assert_eq!(fs::read(place.root("a")).unwrap(), b"other");
    until("the other file is not seen", || {
        let mut text = String::new();
        // The file of before may be opened once more, and is stale.
        let read = File::open(place.mnt("a")).and_then(|mut file| file.read_to_string(&mut text));
        read.is_ok() && text == "other"
    });
}

#[test]
fn times_before_1970_are_kept_to_the_nanosecond() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases] {
        let place = mode.place("mount-old-times");
        let mut file = File::create(place.mnt("file")).unwrap();
        let shown = |path: &Path| fs::metadata(path).unwrap().modified().unwrap();
        for before in [1_500_000_000, 1, 999_999_999, 86_400_000_000_001] {
            let time = std::time::UNIX_EPOCH - Duration::from_nanos(before);
            file.set_modified(time).unwrap();
            assert_eq!(shown(&place.mnt("file")), time, "{mode:?}");
            file.sync_all().unwrap();
            assert_eq!(shown(&place.root("file")), time, "{mode:?}");
        }
        // The lowest time of all is answered, whatever the server makes of it.
        let lowest = ["-d", "@-9223372036854775807.5"];
        let mut touch = Command::new("touch").args(lowest).arg(place.mnt("file")).spawn().unwrap();
        until("touch ends", || touch.try_wait().unwrap().is_some());
        file.write_all(b"x").unwrap();
        assert_eq!(fs::read(place.mnt("file")).unwrap(), b"x", "{mode:?}");
    }
}

#[test]
fn the_sticky_bit_of_a_file_is_kept() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases] {
        let place = mode.place("mount-sticky");
        fs::write(place.mnt("file"), "").unwrap();
        fs::create_dir(place.mnt("dir")).unwrap();
        for name in ["file", "dir"] {
            let new = fs::Permissions::from_mode(0o1755);
            fs::set_permissions(place.mnt(name), new).unwrap();
            assert_eq!(fs::metadata(place.mnt(name)).unwrap().mode() & 0o7777, 0o1755, "{name}");
        }
        assert!(place.umount(&[]).status.success());
        for name in ["file", "dir"] {
            assert_eq!(fs::metadata(place.root(name)).unwrap().mode() & 0o7777, 0o1755, "{name}");
        }
    }
}
