//! What a mount shows of its own changes: a call that begins after a change sees it, whatever was asked for before.

use super::place::{Mode, Place, can_mount, said, until};
use rustix::fs::Dir;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

fn names(dir: &Path) -> BTreeSet<String> {
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    fs::read_dir(dir).unwrap().map(|entry| name(entry).into_string().unwrap()).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn a_listing_has_all_files_that_were_made_before_it() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases] {
        let place = mode.place("mount-made");
        let dir = place.mnt("d");
        fs::create_dir(&dir).unwrap();
        (0..300).for_each(|n| drop(File::create(dir.join(format!("old {n}"))).unwrap()));
        for round in 0..20 {
            let made: BTreeSet<String> = (0..20).map(|n| format!("new {round} {n}")).collect();
            made.iter().for_each(|name| drop(File::create(dir.join(name)).unwrap()));
            let listed = names(&dir);
            assert!(made.is_subset(&listed), "{mode:?}, round {round}");
            made.iter().for_each(|name| fs::remove_file(dir.join(name)).unwrap());
            assert!(made.is_disjoint(&names(&dir)), "{mode:?}, round {round}");
        }
    }
}

#[test]
fn an_open_directory_that_is_read_again_has_what_was_made_meanwhile() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases, Mode::LongNames] {
        let place = mode.place("mount-rewound");
        fs::write(place.mnt("first"), "").unwrap();
        let mut dir = Dir::read_from(File::open(place.mnt("")).unwrap()).unwrap();
        let mut again = || -> BTreeSet<String> {
            dir.rewind();
            let all = std::iter::from_fn(|| dir.read());
            let all = all.map(|entry| entry.unwrap().file_name().to_str().unwrap().to_owned());
            all.filter(|name| name != "." && name != "..").collect()
        };
        assert_eq!(again(), set(&["first"]), "{mode:?}");
        fs::write(place.mnt("second"), "").unwrap();
        fs::remove_file(place.mnt("first")).unwrap();
        assert_eq!(again(), set(&["second"]), "{mode:?}");
    }
}

/// A program with a directory open does not notice that a directory above it gets another name.
#[test]
fn a_directory_is_used_while_one_above_it_is_renamed() {
    if !can_mount() {
        return;
    }
    for mode in Mode::ALL {
        let place = mode.place("mount-above");
        fs::create_dir_all(place.mnt("a/b")).unwrap();
        let dir = File::open(place.mnt("a/b")).unwrap();
        let at = |name: &str| format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
        let is_done = AtomicBool::new(false);
        thread::scope(|scope| {
            let renames = scope.spawn(|| {
                while !is_done.load(Ordering::Relaxed) {
                    fs::rename(place.mnt("a"), place.mnt("c")).unwrap();
                    fs::rename(place.mnt("c"), place.mnt("a")).unwrap();
                }
            });
            let used = (0..20).try_for_each(|n| {
                let step = |what: &str, done: std::io::Result<()>| {
                    done.map_err(|error| format!("{mode:?}, {what} {n}: {error}"))
                };
                let (file, other) = (at(&format!("{n}")), at(&format!("other {n}")));
                step("mkdir", fs::create_dir(at(&format!("d{n}"))))?;
                step("write", fs::write(&file, "x"))?;
                step("chmod", fs::set_permissions(&file, fs::Permissions::from_mode(0o600)))?;
                step("fsync", File::open(&file).and_then(|file| file.sync_all()))?;
                step("fsync of a directory", dir.sync_all())?;
                step("rename", fs::rename(&file, &other))?;
                step("symlink", symlink("x", &file))?;
                step("readlink", fs::read_link(&file).map(drop))?;
                step("read", fs::read(&other).map(|bytes| assert_eq!(bytes, b"x")))?;
                step("readdir", fs::read_dir(at(".")).map(drop))?;
                step("unlink", fs::remove_file(&file))?;
                step("rmdir", fs::remove_dir(at(&format!("d{n}"))))
            });
            is_done.store(true, Ordering::Relaxed);
            renames.join().unwrap();
            used.unwrap();
        });
        assert_eq!(names(&place.mnt("a/b")).len(), 20, "{mode:?}");
    }
}

#[test]
fn names_below_a_renamed_directory_are_its_own() {
    if !can_mount() {
        return;
    }
    for mode in Mode::ALL {
        let place = mode.place("mount-swap");
        let mnt = place.mnt("");
        // Two directories change their places.
        for (dir, text) in [("live", "1"), ("next", "22222")] {
            fs::create_dir_all(mnt.join(dir).join("sub/deep")).unwrap();
            for file in [format!("{dir} only"), "same".to_owned(), format!("deep/{dir}")] {
                fs::write(mnt.join(dir).join("sub").join(file), text).unwrap();
            }
        }
        fs::create_dir(mnt.join("next/sub/kind")).unwrap();
        fs::write(mnt.join("live/sub/kind"), "").unwrap();
        for dir in ["live/sub", "next/sub", "live/sub/deep", "next/sub/deep"] {
            names(&mnt.join(dir)).iter().for_each(|name| {
                fs::metadata(mnt.join(dir).join(name)).unwrap();
            });
        }
        fs::rename(mnt.join("live"), mnt.join("old")).unwrap();
        fs::rename(mnt.join("next"), mnt.join("live")).unwrap();
        let of = |dir: &str| set(&[&format!("{dir} only"), "deep", "kind", "same"]);
        assert_eq!(names(&mnt.join("live/sub")), of("next"), "{mode:?}");
        assert_eq!(names(&mnt.join("old/sub")), of("live"), "{mode:?}");
        assert_eq!(names(&mnt.join("live/sub/deep")), set(&["next"]), "{mode:?}");
        assert_eq!(fs::read_to_string(mnt.join("live/sub/same")).unwrap(), "22222", "{mode:?}");
        assert!(fs::metadata(mnt.join("live/sub/kind")).unwrap().is_dir(), "{mode:?}");
        assert!(fs::metadata(mnt.join("live/sub/live only")).is_err(), "{mode:?}");
        // A directory is made in the place of one that was moved away.
        fs::create_dir_all(mnt.join("d/sub")).unwrap();
        fs::write(mnt.join("d/f"), "old").unwrap();
        names(&mnt.join("d"));
        fs::rename(mnt.join("d"), mnt.join("d.old")).unwrap();
        fs::create_dir(mnt.join("d")).unwrap();
        assert_eq!(names(&mnt.join("d")), set(&[]), "{mode:?}");
        assert!(!mnt.join("d/f").exists(), "{mode:?}");
        fs::create_dir(mnt.join("d/sub")).unwrap();
        fs::write(mnt.join("d/sub/y"), "new").unwrap();
        // One is moved onto an empty one, and made again.
        fs::create_dir_all(mnt.join("v/w")).unwrap();
        fs::create_dir(mnt.join("u")).unwrap();
        names(&mnt.join("v"));
        fs::rename(mnt.join("v"), mnt.join("u")).unwrap();
        fs::create_dir(mnt.join("v")).unwrap();
        assert_eq!(names(&mnt.join("v")), set(&[]), "{mode:?}");
        fs::remove_dir(mnt.join("v")).unwrap();
        fs::remove_dir(mnt.join("u/w")).unwrap();
        assert!(place.umount(&[]).status.success());
        assert_eq!(fs::read_to_string(place.root("d/sub/y")).unwrap(), "new");
        assert_eq!(fs::read_to_string(place.root("d.old/f")).unwrap(), "old");
    }
}

#[test]
fn a_name_that_was_given_away_is_gone_while_others_look_for_it() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases] {
        let place = mode.place("mount-away");
        let mnt = place.mnt("");
        fs::create_dir(mnt.join("b")).unwrap();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let _ = fs::metadata(mnt.join("b/x"));
                        let _ = fs::read_dir(mnt.join("b")).map(Iterator::count);
                        let _ = File::open(mnt.join("t"));
                    }
                });
            }
            for round in 0..100 {
                fs::write(mnt.join("b/x"), round.to_string()).unwrap();
                fs::rename(mnt.join("b/x"), mnt.join("t")).unwrap();
                let is_listed = names(&mnt.join("b")).contains("x");
                let is_there = mnt.join("b/x").exists();
                let text = fs::read_to_string(mnt.join("t"));
                let is_right = text.as_ref().is_ok_and(|text| *text == round.to_string());
                if is_listed || is_there || !is_right {
                    is_over.store(true, Ordering::Relaxed);
                    panic!("{mode:?}, round {round}: {is_listed} {is_there} {text:?}");
                }
            }
            is_over.store(true, Ordering::Relaxed);
        });
    }
}

#[test]
fn own_files_are_seen_after_a_lease_was_taken_back_or_given_up() {
    if !can_mount() {
        return;
    }
    let place = Mode::Leases.place("mount-taken-back");
    let (mnt, other) = (place.mnt(""), place.other_mount());
    for n in 0..4 {
        let dir = format!("d{n}");
        fs::create_dir(mnt.join(&dir)).unwrap();
        fs::write(mnt.join(&dir).join("old"), "").unwrap();
        // It decides in the directory, of which it has a listing of before.
        let decided = || place.status()["decided_changes"].as_u64().unwrap();
        until("the other mount sees the directory", || other.join(&dir).exists());
        until("the mount decides", || {
            names(&mnt.join(&dir));
            let before = decided();
            fs::write(mnt.join(&dir).join("new"), "").unwrap();
            let is_decided = decided() > before;
            if !is_decided {
                fs::remove_file(mnt.join(&dir).join("new")).unwrap();
            }
            is_decided
        });
        match n % 2 {
            0 => drop(names(&other.join(&dir))),
            _ => {
                // Nothing is changed by it, but leases of directories that are moved are given up.
                fs::create_dir_all(mnt.join("x/y")).unwrap();
                assert!(fs::rename(mnt.join("x"), mnt.join(&dir)).is_err());
            }
        }
        assert_eq!(names(&mnt.join(&dir)), set(&["new", "old"]), "{n}");
        fs::remove_file(mnt.join(&dir).join("old")).unwrap();
        assert_eq!(names(&mnt.join(&dir)), set(&["new"]), "{n}");
        fs::remove_dir_all(mnt.join(&dir)).unwrap();
    }
    assert_eq!(place.status()["lost_changes"], 0);
}

#[test]
fn a_directory_has_the_time_of_the_last_change_in_it() {
    if !can_mount() {
        return;
    }
    for mode in Mode::ALL {
        let place = mode.place("mount-dir-time");
        let dir = place.mnt("d");
        fs::create_dir(&dir).unwrap();
        let time_of = |dir: &Path| {
            let found = fs::metadata(dir).ok()?;
            Some((found.mtime(), found.mtime_nsec()))
        };
        let times = || (time_of(&dir).unwrap(), time_of(&place.root("d")));
        type Change = fn(&Path);
        let changes: [(&str, Change); 7] = [
            ("create", |dir| drop(File::create(dir.join("f")).unwrap())),
            ("mkdir", |dir| fs::create_dir(dir.join("sub")).unwrap()),
            ("symlink", |dir| std::os::unix::fs::symlink("f", dir.join("l")).unwrap()),
            ("rename", |dir| fs::rename(dir.join("f"), dir.join("g")).unwrap()),
            ("rename of a directory", |dir| fs::rename(dir.join("sub"), dir.join("s")).unwrap()),
            ("unlink", |dir| fs::remove_file(dir.join("g")).unwrap()),
            ("rmdir", |dir| fs::remove_dir(dir.join("s")).unwrap()),
        ];
        for (what, change) in changes {
            let (before, before_there) = times();
            change(&dir);
            let (after, there) = times();
            // tmpfs removes a name without a new time, within 10 ms of another change.
            let is_as_there = there == Some(after) && there == before_there;
            assert!(after > before || is_as_there, "{mode:?}: {what}: {after:?} after {before:?}");
            // Under leases the mount gives the time.
            assert!(there == Some(after) || mode == Mode::Leases, "{mode:?}: {what}");
        }
    }
}

#[test]
fn what_is_written_while_its_directory_is_renamed_arrives() {
    if !can_mount() {
        return;
    }
    for mode in [Mode::Plain, Mode::Leases] {
        let place = mode.place("mount-write-renamed");
        let mnt = place.mnt("");
        fs::create_dir(mnt.join("a")).unwrap();
        let mut file = File::create(mnt.join("a/f")).unwrap();
        let is_over = AtomicBool::new(false);
        let lines = thread::scope(|scope| {
            let written = scope.spawn(|| {
                let mut lines = 0;
                while !is_over.load(Ordering::Relaxed) {
                    writeln!(file, "{lines:05}").unwrap();
                    lines += 1;
                }
                lines
            });
            for _ in 0..20 {
                fs::rename(mnt.join("a"), mnt.join("b")).unwrap();
                fs::rename(mnt.join("b"), mnt.join("a")).unwrap();
            }
            is_over.store(true, Ordering::Relaxed);
            written.join().unwrap()
        });
        file.sync_all().unwrap();
        drop(file);
        let text = fs::read_to_string(place.root("a/f")).unwrap();
        let all: String = (0..lines).map(|n| format!("{n:05}\n")).collect();
        assert!(text == all, "{mode:?}: {} bytes of {}", text.len(), all.len());
    }
}

/// Whether dbench passes with so many clients, each for so many seconds.
fn dbench(mode: Mode, seconds: &str, clients: &[&str]) {
    let script = "/usr/share/dbench/client.txt";
    if !can_mount() {
        return;
    }
    if !Path::new(script).exists() {
        eprintln!("\n*** SKIPPED, because there is no dbench ***\n");
        return;
    }
    let place: Place = mode.place("mount-dbench");
    for clients in clients {
        let output = std::process::Command::new("dbench")
            .args(["-t", seconds, "-c", script, clients, "-D"])
            .arg(place.mnt(""))
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{mode:?}, {clients}: {told}{}", said(&output));
        eprintln!("{mode:?}, {clients} clients: {}", told.trim_end().lines().last().unwrap_or(""));
    }
    assert!(place.umount(&[]).status.success());
}

#[test]
fn dbench_passes_in_leases() {
    dbench(Mode::Leases, "4", &["1", "2"]);
}

#[test]
#[ignore = "takes three minutes: dbench in each mode"]
fn dbench_passes_in_each_mode() {
    for mode in [Mode::Plain, Mode::Leases, Mode::Stage] {
        dbench(mode, "30", &["1", "4"]);
    }
}
