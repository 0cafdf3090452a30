//! Two mounts of a daemon that grants leases.

use super::place::{Place, can_mount, random, said, until};
use std::fs::{self, File};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LEASING: &[&str] = &["--writable", "--leases"];

/// Questions that the server was asked and somebody waited for.
fn asked(place: &Place) -> u64 {
    place.status()["asked_questions"].as_u64().unwrap()
}

/// Makes and removes a file until the mount does so without asking.
fn until_it_decides(place: &Place, name: &str) {
    let decided = || place.status()["decided_changes"].as_u64().unwrap();
    until("the mount decides", || {
        let before = decided();
        fs::write(place.mnt(name), "x").unwrap();
        fs::remove_file(place.mnt(name)).unwrap();
        decided() > before
    });
}

#[test]
fn a_file_that_was_written_before_its_directory_was_leased_is_opened_after_a_listing() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-leases-written", LEASING);
    fs::create_dir(place.root("d")).unwrap();
    fs::write(place.root("d/f"), "0").unwrap();
    place.mount(&[]);
    // Its time is that of this machine until the server is asked.
    let mut open = File::options().append(true).open(place.mnt("d/f")).unwrap();
    open.write_all(b"1").unwrap();
    open.sync_all().unwrap();
    until_it_decides(&place, "d/other");
    assert_eq!(fs::read_dir(place.mnt("d")).unwrap().count(), 1);
    // The lease ends with the name, so that the server is asked.
    fs::rename(place.mnt("d"), place.mnt("e")).unwrap();
    File::options().append(true).open(place.mnt("e/f")).unwrap().write_all(b"2").unwrap();
    open.write_all(b"3").unwrap();
    drop(open);
    assert_eq!(fs::read(place.mnt("e/f")).unwrap(), b"0123");
    assert!(place.umount(&[]).status.success());
    assert_eq!(fs::read(place.root("e/f")).unwrap(), b"0123");
}

#[test]
fn files_are_looked_up_while_their_directory_gets_another_name() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-leases-renamed", LEASING);
    fs::create_dir_all(place.root("a/b")).unwrap();
    fs::write(place.root("a/b/f"), "x").unwrap();
    place.mount(&[]);
    until_it_decides(&place, "other");
    let is_done = AtomicBool::new(false);
    thread::scope(|scope| {
        for name in ["a", "c"] {
            let (place, is_done) = (&place, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    if let Ok(text) = fs::read_to_string(place.mnt(&format!("{name}/b/f"))) {
                        assert_eq!(text, "x");
                    }
                    let _ = fs::read_dir(place.mnt(&format!("{name}/b")));
                }
            });
        }
        let renamed = (0..100).try_for_each(|_| {
            fs::rename(place.mnt("a"), place.mnt("c"))?;
            fs::rename(place.mnt("c"), place.mnt("a"))
        });
        is_done.store(true, Ordering::Relaxed);
        renamed.unwrap();
    });
    assert_eq!(fs::read(place.mnt("a/b/f")).unwrap(), b"x");
}

#[test]
fn what_is_leased_is_not_asked_for_and_changes_of_others_are_seen_at_once() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-leases", LEASING);
    fs::create_dir(place.root("d")).unwrap();
    for n in 0..50 {
        fs::write(place.root(&format!("d/{n}")), random(n, 1000)).unwrap();
    }
    place.mount(&[]);
    let other = place.other_mount();
    let count = |mnt: &std::path::Path| fs::read_dir(mnt.join("d")).unwrap().count();
    until("the directory is leased", || {
        count(&place.mnt(""));
        place.status()["leases"].as_u64().unwrap() >= 2
    });
    (0..50).for_each(|n| drop(File::open(place.mnt(&format!("d/{n}"))).unwrap()));
    let before = asked(&place);
    for n in 0..50 {
        assert_eq!(fs::read(place.mnt(&format!("d/{n}"))).unwrap(), random(n, 1000));
        assert!(!place.mnt(&format!("d/none {n}")).exists());
    }
    assert_eq!(asked(&place), before, "questions for what is leased");
    // Each sees what the other has closed, at once, in both directions.
    for round in 0..20 {
        let (from, to) = match round % 2 {
            0 => (&other, &place.at("mnt")),
            _ => (&place.at("mnt"), &other),
        };
        let text = format!("round {round}");
        fs::write(from.join("d/shared"), &text).unwrap();
        let seen = fs::read_to_string(to.join("d/shared"));
        // The name may be absent for as long as metadata may be old.
        let seen = seen.unwrap_or_else(|_| {
            until("the file is seen", || to.join("d/shared").exists());
            fs::read_to_string(to.join("d/shared")).unwrap()
        });
        assert_eq!(seen, text);
    }
}

#[test]
fn files_are_made_without_asking_and_the_other_mount_has_them() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-decides", LEASING);
    for n in 0..300 {
        fs::create_dir_all(place.at(&format!("tree/{}", n % 7))).unwrap();
        fs::write(place.at(&format!("tree/{}/{n}", n % 7)), random(n, 37 * n as usize)).unwrap();
    }
    place.mount(&[]);
    let other = place.other_mount();
    until_it_decides(&place, "probe");
    let before = asked(&place);
    let script = "set -e; tar -cf t.tar tree; tar -C mnt -xf t.tar; cd mnt; mv tree/0/0 tree/moved; \
        ln -s moved tree/link; chmod 640 tree/1/1; rm tree/2/2; echo more >> tree/3/3";
    let output =
        Command::new("sh").args(["-c", script]).current_dir(place.at("")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let status = place.status();
    assert!(status["decided_changes"].as_u64().unwrap() > 900, "{status}");
    assert!(asked(&place) - before < 60, "{status}");
    // Whoever looks makes the first mount tell what it has decided.
    let local = "set -e; cp -a tree copy; cd copy; mv 0/0 moved; ln -s moved link; chmod 640 1/1; rm 2/2; \
        echo more >> 3/3; cd ..; diff -r copy mnt2/tree; stat -c %a mnt2/tree/1/1; readlink mnt2/tree/link; \
        stat -c %Y copy/4/4 mnt2/tree/4/4 mnt/tree/4/4 | uniq | wc -l; diff -r copy mnt/tree";
    let output = Command::new("sh").args(["-c", local]).current_dir(place.at("")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "640\nmoved\n1\n");
    // The end waits until the server has everything.
    let mut file = File::create(other.join("last")).unwrap();
    file.write_all(&random(5, 3_000_000)).unwrap();
    drop(file);
    let output = place.umount_other();
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read(place.root("last")).unwrap() == random(5, 3_000_000));
    assert_eq!(status["lost_changes"], 0);
}

#[test]
fn a_file_that_was_appended_to_is_read_after_it_was_renamed_under_a_lease() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-append-rename", LEASING);
    place.mount(&[]);
    fs::create_dir(place.mnt("d")).unwrap();
    for round in 0..10 {
        let (old, new) = (place.mnt("d/old"), place.mnt(&format!("d/new {round}")));
        fs::write(&old, "one").unwrap();
        // The server decides where the end is, and the mount does not decide in the directory until it has listed it again.
        let mut end = File::options().append(true).open(&old).unwrap();
        end.write_all(b", two").unwrap();
        until_it_decides(&place, "d/probe");
        fs::rename(&old, &new).unwrap();
        drop(end);
        // Until the server has answered all that was decided.
        File::create(place.mnt("d/probe")).unwrap().sync_all().unwrap();
        assert_eq!(fs::read_to_string(&new).unwrap(), "one, two", "round {round}");
    }
}

#[test]
fn what_was_decided_survives_a_restart_of_the_server() {
    if !can_mount() {
        return;
    }
    let mut place = Place::with("mount-retake", LEASING);
    place.mount(&["--timeout", "60s"]);
    fs::create_dir(place.mnt("d")).unwrap();
    until_it_decides(&place, "d/first");
    let script = "for n in $(seq 3000); do echo $n > mnt/d/$n || exit 1; done; sync -d mnt/d/3000";
    let mut writer =
        Command::new("sh").args(["-c", script]).current_dir(place.at("")).spawn().unwrap();
    let made = |place: &Place| fs::read_dir(place.root("d")).map_or(0, Iterator::count);
    until("nothing is written", || made(&place) > 30);
    place.kill_daemon();
    place.start();
    assert!(writer.wait().unwrap().success());
    for n in 1..=3000 {
        assert_eq!(fs::read_to_string(place.root(&format!("d/{n}"))).unwrap(), format!("{n}\n"));
    }
    assert_eq!(place.status()["lost_changes"], 0);
}

#[test]
fn a_name_that_another_mount_has_made_since_the_listing_is_there() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-leases-absent", LEASING);
    fs::write(place.root("old"), "").unwrap();
    // Names may be older than the test takes, but not those of which a lease was taken back.
    place.mount(&["--attr-ttl", "60s"]);
    let other = place.other_mount();
    assert_eq!(fs::read_dir(place.mnt("")).unwrap().count(), 1);
    fs::write(other.join("new"), "made since").unwrap();
    assert_eq!(fs::read_to_string(place.mnt("new")).unwrap(), "made since");
}
