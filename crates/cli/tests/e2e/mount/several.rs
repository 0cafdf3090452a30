//! A mount of several servers.

use super::place::{Place, can_mount, date, random, until};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

#[test]
fn several_servers_are_one_tree_and_each_is_read() {
    if !can_mount() {
        return;
    }
    let mut place = Place::new("mount-several");
    let both = random(1, 30_000_001);
    let second = place.second();
    for root in [place.root(""), second.root.clone()] {
        fs::create_dir(root.join("dir")).unwrap();
        fs::write(root.join("dir/both"), &both).unwrap();
        date(&root.join("dir/both"), 1_000_000_000);
        fs::write(root.join("dir/newer"), root.display().to_string()).unwrap();
    }
    date(&place.root("dir/newer"), 1_000_000_000);
    fs::write(place.root("dir/first"), "at the first").unwrap();
    fs::write(second.root.join("dir/second"), "at the second").unwrap();
    place.mount_of(&["--timeout", "8s"], &format!("{},{}", place.address(), second.address));
    let mut names: Vec<_> =
        fs::read_dir(place.mnt("dir")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["both", "first", "newer", "second"]);
    assert_eq!(fs::read(place.mnt("dir/first")).unwrap(), b"at the first");
    assert_eq!(fs::read(place.mnt("dir/second")).unwrap(), b"at the second");
    let newer = fs::read_to_string(place.mnt("dir/newer")).unwrap();
    assert_eq!(newer, second.root.display().to_string());
    assert_eq!(fs::read(place.mnt("dir/none")).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        fs::write(place.mnt("dir/new"), "x").unwrap_err().kind(),
        ErrorKind::ReadOnlyFilesystem
    );
    // A file that both have comes from the one that is left.
    place.kill_daemon();
    assert!(fs::read(place.mnt("dir/both")).unwrap() == both);
    let lost = fs::metadata(place.mnt("dir/lost")).unwrap_err();
    assert!(lost.raw_os_error() == Some(5) || lost.kind() == ErrorKind::NotFound, "{lost}");
    // What is lost for longer is not waited for.
    until("the first server is given up", || {
        fs::metadata(place.mnt("dir/other")).is_err_and(|error| error.kind() == ErrorKind::NotFound)
    });
    std::thread::sleep(Duration::from_millis(1100));
    assert!(fs::metadata(place.mnt("dir/first")).is_err());
    place.start();
    until("the first server is back", || fs::read(place.mnt("dir/first")).is_ok());
}

#[test]
fn a_file_of_two_servers_comes_from_both() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-both");
    let both = random(2, 60_000_001);
    let second = place.second();
    for root in [place.root(""), second.root.clone()] {
        fs::write(root.join("both"), &both).unwrap();
        date(&root.join("both"), 1_000_000_000);
    }
    place.mount_of(&[], &format!("{},{}", place.address(), second.address));
    assert!(fs::read(place.mnt("both")).unwrap() == both);
    let asked = place.status()["asked_of_servers"].clone();
    let asked: Vec<u64> = asked.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect();
    assert!(asked.iter().all(|&bytes| bytes > 10_000_000), "{asked:?}");
}

#[test]
fn a_name_that_servers_have_as_different_kinds_is_the_newest_of_them() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-kinds");
    let second = place.second();
    // A directory here, and a file or a link there that is older, or newer.
    for (name, secs) in [("dir", 1_000_000_000), ("file", 3_000_000_000)] {
        fs::create_dir(place.root(name)).unwrap();
        fs::write(place.root(&format!("{name}/below")), "below").unwrap();
        fs::write(second.root.join(name), "text").unwrap();
        date(&second.root.join(name), secs);
        date_dir(&place.root(name), 2_000_000_000);
    }
    fs::create_dir(place.root("other")).unwrap();
    fs::write(place.root("other/below"), "below").unwrap();
    std::os::unix::fs::symlink("file", second.root.join("other")).unwrap();
    date_dir(&place.root("other"), 4_000_000_000);
    place.mount_of(&[], &format!("{},{}", place.address(), second.address));
    for name in ["dir", "other"] {
        assert_eq!(fs::read_to_string(place.mnt(&format!("{name}/below"))).unwrap(), "below");
        assert_eq!(fs::read_dir(place.mnt(name)).unwrap().count(), 1, "{name}");
        let absent = fs::metadata(place.mnt(&format!("{name}/absent"))).unwrap_err();
        assert_eq!(absent.kind(), ErrorKind::NotFound, "{name}");
    }
    assert_eq!(fs::read_to_string(place.mnt("file")).unwrap(), "text");
    let below = fs::metadata(place.mnt("file/below")).unwrap_err();
    assert_eq!(below.kind(), ErrorKind::NotADirectory);
}

fn date_dir(path: &Path, secs: u64) {
    let time = std::time::UNIX_EPOCH + Duration::from_secs(secs);
    File::open(path).unwrap().set_modified(time).unwrap();
}
