//! Two mounts that write to one file, or lock it.

use super::place::{Mode, Place, can_mount, said, until};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::Command;

// spec: store-feature-8, store-process-1
#[test]
fn the_next_mount_has_the_locks_of_one_that_was_killed() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases, Mode::Stage] {
        let place = mode.place("mount-succeeds");
        fs::write(place.mnt("locked"), "").unwrap();
        let locked = File::open(place.mnt("locked")).unwrap();
        flock(&locked, FlockOperation::LockExclusive).unwrap();
        // Another mount of the user lives on.
        let other = place.other_mount();
        fs::write(other.join("other"), "").unwrap();
        let kept = File::open(other.join("other")).unwrap();
        flock(&kept, FlockOperation::LockExclusive).unwrap();
        assert!(Command::new("kill").args(["-9", &place.server()]).status().unwrap().success());
        drop(locked);
        assert!(place.umount(&[]).status.success());
        mode.mount(&place);
        let file = File::open(place.mnt("locked")).unwrap();
        let had = flock(&file, FlockOperation::NonBlockingLockExclusive);
        assert_eq!(had, Ok(()), "{mode:?}");
        let file = File::open(place.mnt("other")).unwrap();
        let had = flock(&file, FlockOperation::NonBlockingLockExclusive);
        assert!(had.is_err(), "{mode:?}: the lock of a mount that lives");
        drop(kept);
    }
}

/// Metadata may be older than the test takes, but for those of a file that is opened or locked.
#[test]
fn whoever_opens_or_locks_a_file_reads_it_to_the_end_that_it_has_then() {
    if !can_mount() {
        return;
    }
    for options in [&["--writable"][..], &["--writable", "--leases"]] {
        let place = Place::with("mount-grown", options);
        fs::write(place.root("file"), "one").unwrap();
        place.mount(&["--attr-ttl", "60s"]);
        let other = place.other_mount().join("file");
        let mut text = "one".to_owned();
        let is_read = |text: &str, file: &File| {
            let mut bytes = [0; 100];
            let length = file.read_at(&mut bytes, 0).unwrap();
            assert_eq!(String::from_utf8_lossy(&bytes[..length]), *text, "{options:?}");
            assert_eq!(file.metadata().unwrap().len(), text.len() as u64, "{options:?}");
        };
        let kept = File::open(place.mnt("file")).unwrap();
        is_read(&text, &kept);
        for locks_first in [false, true, false, true] {
            text += " more";
            File::options().append(true).open(&other).unwrap().write_all(b" more").unwrap();
            if !locks_first {
                is_read(&text, &File::open(place.mnt("file")).unwrap());
            }
            flock(&kept, FlockOperation::LockShared).unwrap();
            is_read(&text, &kept);
            flock(&kept, FlockOperation::Unlock).unwrap();
        }
    }
}

#[test]
fn what_is_appended_goes_behind_the_end_of_a_file_that_another_mount_has_changed() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases, Mode::Stage] {
        let place = mode.place("mount-append-changed");
        fs::write(place.mnt("log"), "one\n").unwrap();
        let mut log = File::options().append(true).open(place.mnt("log")).unwrap();
        let other = place.other_mount().join("log");
        for (change, text) in [("two\n", "two\n"), ("six\n", "six\nmore\n")] {
            let file = File::options().write(true).open(&other).unwrap();
            file.write_all_at(change.as_bytes(), 0).unwrap();
            drop(file);
            // This mount knows the other content by now.
            assert_eq!(fs::read_to_string(place.mnt("log")).unwrap(), text, "{mode:?}");
            log.write_all(b"more\n").unwrap();
            log.sync_all().unwrap();
        }
        assert_eq!(fs::read_to_string(place.root("log")).unwrap(), "six\nmore\nmore\n", "{mode:?}");
        // Another file has the name.
        fs::write(other.with_extension("new"), "new").unwrap();
        fs::rename(other.with_extension("new"), &other).unwrap();
        assert_eq!(fs::read_to_string(place.mnt("log")).unwrap(), "new", "{mode:?}");
        let lost = log.write_all(b"lost").and_then(|()| log.sync_all()).unwrap_err();
        assert_eq!(lost.raw_os_error(), Some(116), "{mode:?}");
        assert_eq!(fs::read_to_string(place.root("log")).unwrap(), "new", "{mode:?}");
    }
}

#[test]
fn two_mounts_append_and_lose_nothing() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-append", &["--writable"]);
    fs::write(place.root("log"), "").unwrap();
    place.mount(&[]);
    place.other_mount();
    let script = |mnt: &str, who: &str| {
        // Opening may fail with ESTALE while another host changes the file: nothing is appended then.
        let line = format!("echo {who} $n >> {mnt}/log");
        let script = format!("for n in $(seq 200); do {line} || {line} || {line} || exit 1; done");
        let mut command = Command::new("sh");
        command.args(["-c", &script]).current_dir(place.at(""));
        command
    };
    let mut other = script("mnt2", "b").spawn().unwrap();
    assert!(script("mnt", "a").status().unwrap().success());
    assert!(other.wait().unwrap().success());
    let text = fs::read_to_string(place.root("log")).unwrap();
    for who in ["a", "b"] {
        let lines: Vec<_> = text.lines().filter(|line| line.starts_with(who)).collect();
        let all: Vec<_> = (1..=200).map(|n| format!("{who} {n}")).collect();
        assert_eq!(lines, all);
    }
    assert_eq!(text.lines().count(), 400);
}

/// Two files of one program lock ranges for themselves, not for the program (fcntl(2), open file description locks).
const OF_FILES: &str = r#"
import fcntl, os, struct, sys, time
def lock(file, kind):
    wish = struct.pack("hhqqi4x", kind, os.SEEK_SET, 0, 0, 0)
    try:
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, wish)
        return True
    except BlockingIOError:
        return False
first, second = [os.open(sys.argv[1], os.O_RDWR) for _ in range(2)]
assert lock(first, fcntl.F_WRLCK) and not lock(second, fcntl.F_WRLCK)
os.close(os.dup(first))
assert not lock(second, fcntl.F_WRLCK), "a copy of the descriptor was closed"
os.close(first)
until = time.monotonic() + 60
while not lock(second, fcntl.F_WRLCK):
    assert time.monotonic() < until, "the lock of a file that was closed"
    time.sleep(0.05)
"#;

#[test]
fn a_lock_of_an_open_file_ends_with_it() {
    if !can_mount() {
        return;
    }
    let python = Command::new("python3").args(["-c", "import fcntl; fcntl.F_OFD_SETLK"]).status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("\n*** SKIPPED, because there is no python3 with F_OFD_SETLK ***\n");
        return;
    }
    let place = Mode::Plain.place("mount-locks-of-files");
    fs::write(place.mnt("file"), "").unwrap();
    let output = Command::new("python3").args(["-c", OF_FILES]).arg(place.mnt("file")).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}", said(&output));
}

// spec: store-feature-9, store-lock-4
#[test]
fn a_program_that_hears_a_signal_waits_no_more_for_a_lock() {
    if !can_mount() {
        return;
    }
    let place = Mode::Plain.place("mount-lock-waits");
    fs::write(place.mnt("file"), "").unwrap();
    let held = File::open(place.other_mount().join("file")).unwrap();
    flock(&held, FlockOperation::LockExclusive).unwrap();
    // An alarm ends its waiting, which the program handles.
    let flock_within = |secs: &str| {
        Command::new("flock").args(["-w", secs]).arg(place.mnt("file")).arg("true").spawn().unwrap()
    };
    let mut waits = flock_within("1");
    until("flock -w ends", || waits.try_wait().unwrap().is_some());
    assert_eq!(waits.wait().unwrap().code(), Some(1), "it has no lock");
    // It does not get the lock when that is free.
    flock(&held, FlockOperation::Unlock).unwrap();
    let file = File::open(place.mnt("file")).unwrap();
    flock(&file, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut waits = flock_within("60");
    flock(&file, FlockOperation::Unlock).unwrap();
    until("flock has the lock", || waits.try_wait().unwrap().is_some());
    assert!(waits.wait().unwrap().success());
}

/// Adds to a number in a database, and holds flock(2) of a file while it adds to another number.
const ADDS: &str = r#"
import fcntl, os, sqlite3, sys
mnt, times = sys.argv[1], int(sys.argv[2])
base = sqlite3.connect(mnt + "/base", timeout=60, isolation_level=None)
for n in range(times):
    base.execute("BEGIN IMMEDIATE")
    base.execute("UPDATE numbers SET n = n + 1")
    base.execute("COMMIT")
    with open(mnt + "/number", "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        n = int(file.read())
        file.seek(0)
        file.write(str(n + 1))
        file.flush()
assert base.execute("PRAGMA integrity_check").fetchone() == ("ok",)
"#;

#[test]
fn a_database_is_shared_by_two_mounts() {
    if !can_mount() {
        return;
    }
    let python = Command::new("python3").args(["-c", "import sqlite3"]).status();
    if !python.is_ok_and(|status| status.success()) {
        eprintln!("\n*** SKIPPED, because there is no python3 with sqlite3 ***\n");
        return;
    }
    let place = Place::with("mount-locks", &["--writable"]);
    fs::write(place.root("number"), "0").unwrap();
    place.mount(&[]);
    place.other_mount();
    let make = "import sqlite3\nbase = sqlite3.connect('mnt/base')\nbase.execute('CREATE TABLE numbers (n)')\n\
        base.execute('INSERT INTO numbers VALUES (0)')\nbase.commit()";
    let python = |words: &[&str]| {
        let mut command = Command::new("python3");
        command.arg("-c").args(words).current_dir(place.at(""));
        command
    };
    let output = python(&[make]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let other = python(&[ADDS, "mnt2", "25"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let output = python(&[ADDS, "mnt", "25"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let output = other.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let read = "import sqlite3\nprint(sqlite3.connect('root/base').execute('SELECT n FROM numbers').fetchone()[0])";
    let output = python(&[read]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "50\n");
    assert_eq!(fs::read_to_string(place.root("number")).unwrap(), "50");
}
