//! Mounts with a journal on the disk of this machine.

use super::place::{Place, can_mount, random, said, until};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Mounts with a journal.
fn mount(place: &Place) -> Output {
    let mut command = place.command(&["mount", "--stage"]);
    let output =
        command.arg(place.at("stage")).arg(place.source("")).arg(place.at("mnt")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    output
}

/// The segments of the journal.
fn segments(place: &Place) -> Vec<PathBuf> {
    let source = fs::read_dir(place.at("stage")).unwrap().next().unwrap().unwrap().path();
    let files = fs::read_dir(source).unwrap().map(|entry| entry.unwrap());
    let is_segment = |name: &str| name.parse::<u64>().is_ok();
    let files = files.filter(|entry| entry.file_name().to_str().is_some_and(is_segment));
    files.map(|entry| entry.path()).collect()
}

/// A mount that was killed when the server had the first part of a file and not the second one, which was synced.
fn killed(name: &str, first: &[u8], second: &[u8]) -> Place {
    let mut place = Place::with(name, &["--writable"]);
    mount(&place);
    let mut file = File::create(place.mnt("a")).unwrap();
    file.write_all(first).unwrap();
    until("the first part does not arrive", || {
        fs::metadata(place.root("a")).unwrap().len() == first.len() as u64
    });
    place.kill_daemon();
    file.write_all(second).unwrap();
    // Neither waits for the server, which is not there.
    file.sync_all().unwrap();
    drop(file);
    let server = place.server();
    assert!(Command::new("kill").args(["-9", &server]).status().unwrap().success());
    assert!(place.umount(&[]).status.success());
    assert!(!segments(&place).is_empty());
    place.start();
    place
}

#[test]
fn what_was_staged_arrives_after_the_mount_was_killed() {
    if !can_mount() {
        return;
    }
    let bytes = random(1, 5_000_003);
    let (first, second) = bytes.split_at(1_000_000);
    let place = killed("mount-stage-kill", first, second);
    assert!(fs::read(place.root("a")).unwrap() == first);
    let output = mount(&place);
    assert!(fs::read(place.root("a")).unwrap() == bytes, "{}", said(&output));
    assert!(said(&output).contains("of 1 file of an earlier mount were sent"), "{}", said(&output));
    assert!(segments(&place).is_empty());
    assert!(fs::read(place.mnt("a")).unwrap() == bytes);
}

#[test]
fn what_was_staged_is_kept_aside_where_somebody_else_has_changed_the_file() {
    if !can_mount() {
        return;
    }
    let bytes = random(2, 1_000_003);
    let (first, second) = bytes.split_at(300_000);
    type Change = fn(&Place);
    let changes: [(&str, Change); 3] = [
        ("grown", |place| {
            let mut file = File::options().append(true).open(place.root("a")).unwrap();
            file.write_all(b"more").unwrap();
        }),
        ("replaced", |place| {
            fs::write(place.root("b"), "other").unwrap();
            fs::rename(place.root("b"), place.root("a")).unwrap();
        }),
        ("removed", |place| fs::remove_file(place.root("a")).unwrap()),
    ];
    for (name, change) in changes {
        let place = killed(&format!("mount-stage-{name}"), first, second);
        change(&place);
        let theirs = fs::read(place.root("a")).ok();
        let output = mount(&place);
        let told = said(&output);
        assert!(fs::read(place.root("a")).ok() == theirs, "{name}: {told}");
        let kept = told.lines().find_map(|line| line.split("it is in ").nth(1));
        let kept = kept.unwrap_or_else(|| panic!("{name}: {told}"));
        // The first part may have left the journal before the server was killed.
        let kept = fs::read(kept).unwrap();
        assert!(kept.len() == bytes.len() && kept[first.len()..] == *second, "{name}: {told}");
        assert!(segments(&place).is_empty(), "{name}");
    }
}

#[test]
fn what_a_server_has_lost_is_sent_again() {
    if !can_mount() {
        return;
    }
    let mut place = Place::with("mount-stage-crash", &["--writable"]);
    mount(&place);
    let bytes = random(3, 200_000);
    let mut names = 0..;
    let name = loop {
        let name = names.next().unwrap().to_string();
        fs::write(place.mnt(&name), &bytes).unwrap();
        until("it does not arrive", || fs::read(place.root(&name)).unwrap() == bytes);
        place.kill_daemon();
        // On a busy machine the server may have synced it already.
        if !segments(&place).is_empty() {
            break name;
        }
        place.start();
    };
    // As a crash leaves a file that was not synced.
    File::options().write(true).open(place.root(&name)).unwrap().set_len(0).unwrap();
    place.start();
    until("it is not sent again", || fs::read(place.root(&name)).unwrap() == bytes);
    until("the journal keeps it", || segments(&place).is_empty());
}

#[test]
fn programs_work_in_a_staged_mount_and_the_server_has_everything_at_its_end() {
    if !can_mount() {
        return;
    }
    let place = Place::with("mount-stage-programs", &["--writable", "--leases"]);
    for n in 0..20 {
        fs::create_dir_all(place.at(&format!("tree/{}", n % 5))).unwrap();
        fs::write(place.at(&format!("tree/{}/{n}", n % 5)), random(n, 9000 * n as usize)).unwrap();
    }
    mount(&place);
    let script = "set -e; cp -r tree mnt/; diff -r tree mnt/tree; tar -C mnt -cf mnt/t.tar tree; \
        mkdir mnt/out; tar -C mnt/out -xf mnt/t.tar; mv mnt/out mnt/moved; rm -r mnt/tree; \
        printf one > mnt/a; printf two >> mnt/a; printf three > mnt/b; truncate -s 3 mnt/b; \
        mv mnt/b mnt/c; cat mnt/a mnt/c; chmod 600 mnt/c; printf four > mnt/d";
    let output =
        Command::new("sh").args(["-c", script]).current_dir(place.at("")).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "onetwothr");
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(segments(&place).is_empty());
    let same = "diff -r tree root/moved/tree && cat root/a root/c root/d";
    let output = Command::new("sh").args(["-c", same]).current_dir(place.at("")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "onetwothrfour", "{}", said(&output));
}
