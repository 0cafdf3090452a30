//! Servers whose file system is full for a while.

use super::place::{Place, can_mount, random, said, until};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

/// The file system below the root of a daemon, which is taken away at the end of the test.
struct Small(PathBuf);

impl Small {
    /// A daemon over a file system of four mebibytes.
    fn place(name: &str, daemon_options: &'static [&'static str]) -> (Place, Self) {
        let mut place = Place::with(name, daemon_options);
        place.kill_daemon();
        let small = Self(place.at("root"));
        small.mount(&["-t", "tmpfs", "-o", "size=4m", "none"]);
        place.start();
        (place, small)
    }

    fn mount(&self, options: &[&str]) {
        assert!(Command::new("mount").args(options).arg(&self.0).status().unwrap().success());
    }

    fn make_room(&self) {
        self.mount(&["-o", "remount,size=60m"]);
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Writes more to a staged mount than the server has room for, while the server says nothing.
fn staged(place: &Place, bytes: &[u8]) {
    let stage = place.at("stage");
    place.mount(&["--stage", stage.to_str().unwrap()]);
    let mut file = File::create(place.mnt("new")).unwrap();
    place.stop_daemon();
    file.write_all(bytes).unwrap();
    drop(file);
    place.go_on_daemon();
}

fn refusal(place: &Place) -> Option<String> {
    place.status()["refused_because"].as_str().map(str::to_owned)
}

#[test]
fn what_a_full_server_refuses_stays_in_the_journal_and_umount_and_the_next_mount_tell() {
    if !can_mount() {
        return;
    }
    let (place, small) = Small::place("mount-full-stage", &["--writable"]);
    let bytes = random(1, 9_000_001);
    staged(&place, &bytes);
    let output = place.umount(&[]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(told.contains("1 file: new") && told.contains("no space left"), "{told}");
    assert!(told.contains(place.at("stage").to_str().unwrap()), "{told}");
    assert!(!place.is_mounted());
    let mut command = place.command(&["mount", "--stage"]);
    command.arg(place.at("stage")).arg(place.source("")).arg(place.at("mnt"));
    let output = command.output().unwrap();
    let told = said(&output);
    assert!(!output.status.success() && !place.is_mounted(), "{told}");
    assert!(
        told.contains(": new: cannot write: no space left") && told.contains("try: make room"),
        "{told}"
    );
    small.make_room();
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read(place.root("new")).unwrap() == bytes);
    assert!(place.umount(&[]).status.success());
}

#[test]
fn umount_tells_what_a_full_server_refuses_whatever_name_the_program_has() {
    if !can_mount() {
        return;
    }
    let (mut place, _small) = Small::place("mount-full-name", &["--writable"]);
    place.rename_program("renamed");
    staged(&place, &random(1, 9_000_001));
    // Of a process that has ended there is none, even if nobody has waited for it.
    let running = PathBuf::from(format!("/proc/{}/exe", place.server()));
    assert_eq!(fs::read_link(&running).unwrap(), place.at("renamed"));
    let file = File::open(place.mnt("new")).unwrap();
    let told = said(&place.umount(&[]));
    assert!(told.contains("programs use it") && place.is_mounted(), "{told}");
    drop(file);
    place.rename_program("other");
    let output = place.umount(&[]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(told.contains("1 file: new") && told.contains("no space left"), "{told}");
    assert!(!place.is_mounted() && fs::read_link(&running).is_err());
}

#[test]
fn what_a_full_server_refuses_arrives_when_there_is_room() {
    if !can_mount() {
        return;
    }
    let (place, small) = Small::place("mount-full-room", &["--writable"]);
    let mut bytes = random(2, 9_000_001);
    staged(&place, &bytes);
    until("nothing is refused", || refusal(&place).is_some());
    // What is written afterwards comes behind, and into the place of what was refused.
    let part = random(3, 3_000_000);
    let mut file = File::options().write(true).open(place.mnt("new")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, &part, 5_000_000).unwrap();
    bytes[5_000_000..8_000_000].copy_from_slice(&part);
    file.flush().unwrap();
    drop(file);
    small.make_room();
    until("it does not arrive", || fs::read(place.root("new")).unwrap() == bytes);
    until("it is still refused", || refusal(&place).is_none());
    assert!(fs::read(place.mnt("new")).unwrap() == bytes);
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
    assert!(fs::read(place.root("new")).unwrap() == bytes);
}

#[test]
fn a_file_that_a_full_server_refuses_can_be_emptied_and_removed() {
    if !can_mount() {
        return;
    }
    for leases in [false, true] {
        let options: &[&str] = if leases { &["--writable", "--leases"] } else { &["--writable"] };
        let (place, _small) = Small::place("mount-full-remove", options);
        if leases {
            place.mount(&[]);
            fs::create_dir(place.mnt("d")).unwrap();
            fs::write(place.mnt("d/first"), "1").unwrap();
            until("it is not decided here", || {
                // A lease for writing is asked for when a name is made.
                let _ = fs::remove_file(place.mnt("d/other"));
                fs::write(place.mnt("d/other"), "2").unwrap();
                place.status()["decided_changes"].as_u64().unwrap() > 1
            });
            place.stop_daemon();
            fs::write(place.mnt("d/new"), random(4, 9_000_000)).unwrap();
            place.go_on_daemon();
        } else {
            staged(&place, &random(4, 9_000_000));
        }
        let path = place.mnt(if leases { "d/new" } else { "new" });
        until("nothing is refused", || refusal(&place).is_some());
        let error = fs::read(&path).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(28), "{leases} {error}");
        File::options().write(true).truncate(true).open(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), 0, "{leases}");
        until("it is still refused", || refusal(&place).is_none());
        fs::remove_file(&path).unwrap();
        fs::write(&path, "small").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"small", "{leases}");
        let output = place.umount(&[]);
        assert!(output.status.success(), "{leases} {}", said(&output));
    }
}

#[test]
fn what_was_closed_under_a_lease_and_a_full_server_refuses_is_not_lost_by_umount() {
    if !can_mount() {
        return;
    }
    let (place, small) = Small::place("mount-full-leases", &["--writable", "--leases"]);
    place.mount(&[]);
    fs::create_dir(place.mnt("d")).unwrap();
    fs::write(place.mnt("d/first"), "1").unwrap();
    until("it is not decided here", || {
        // A lease for writing is asked for when a name is made.
        let _ = fs::remove_file(place.mnt("d/other"));
        fs::write(place.mnt("d/other"), "2").unwrap();
        place.status()["decided_changes"].as_u64().unwrap() > 1
    });
    let bytes = random(5, 1_500_000);
    place.stop_daemon();
    for n in 0..4 {
        fs::write(place.mnt(&format!("d/s{n}")), &bytes).unwrap();
    }
    fs::rename(place.mnt("d/s3"), place.mnt("d/moved")).unwrap();
    place.go_on_daemon();
    let output = place.umount(&[]);
    let told = said(&output);
    assert_eq!(output.status.code(), Some(6), "{told}");
    assert!(told.contains("no space left") && told.contains("d/moved"), "{told}");
    assert!(told.contains("\ntry: make room at the server"), "{told}");
    assert!(place.is_mounted());
    // Nothing more is promised while that is so.
    let mut more = File::create(place.mnt("d/more")).unwrap();
    let error = more.write_all(&bytes).and_then(|()| more.sync_all()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(28), "{error}");
    drop(more);
    small.make_room();
    let output = place.umount(&[]);
    assert!(output.status.success(), "{}", said(&output));
    for name in ["s0", "s1", "s2", "moved"] {
        assert!(fs::read(place.root(&format!("d/{name}"))).unwrap() == bytes, "{name}");
    }
}

#[test]
fn umount_tells_of_writes_that_no_program_has_been_told_are_lost() {
    if !can_mount() {
        return;
    }
    let mut place = Place::with("mount-lost", &["--writable", "--leases"]);
    place.mount(&["--timeout", "1s"]);
    fs::create_dir(place.mnt("d")).unwrap();
    fs::write(place.mnt("d/first"), "1").unwrap();
    until("it is not decided here", || {
        // A lease for writing is asked for when a name is made.
        let _ = fs::remove_file(place.mnt("d/other"));
        fs::write(place.mnt("d/other"), "2").unwrap();
        place.status()["decided_changes"].as_u64().unwrap() > 1
    });
    place.stop_daemon();
    fs::write(place.mnt("d/lost"), "3").unwrap();
    place.kill_daemon();
    until("it is not given up", || place.status()["lost_changes"].as_u64().unwrap() > 0);
    let output = place.umount(&[]);
    let told = said(&output);
    assert!(!output.status.success() && !place.is_mounted(), "{told}");
    assert!(told.contains("are lost") && told.contains("d/lost"), "{told}");
}
