//! Several users of this machine, and what mounting needs of it.

use super::place::{Place, can_mount, said};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output};

/// What a user without rights gets of a command. `None` if the test's directory is closed to such a user.
fn as_nobody(place: &Place, script: &str) -> Option<Output> {
    let user = ["--reuid=47123", "--regid=47123", "--clear-groups", "sh", "-c"];
    let run = |script: &str| {
        let mut command = Command::new("setpriv");
        command.args(user).arg(script).arg("sh").arg(place.at("mnt")).current_dir("/");
        command.output().ok()
    };
    let scratch = place.at("");
    let mut above = scratch.ancestors().filter(|dir| !dir.as_os_str().is_empty());
    let is_open = |dir: &Path| fs::metadata(dir).is_ok_and(|m| m.permissions().mode() & 0o1 != 0);
    if !above.all(is_open) || !run("true").is_some_and(|output| output.status.success()) {
        eprintln!("\n*** SKIPPED, because no other user can enter {} ***\n", scratch.display());
        return None;
    }
    run(script)
}

#[test]
fn other_users_of_a_shared_mount_have_no_more_rights_than_the_modes_give_them() {
    if !can_mount() {
        return;
    }
    for options in ["allow_other", "allow_other,idmap=none", "allow_other,no_default_permissions"] {
        let place = Place::with("mount-users", &["--writable"]);
        fs::write(place.root("private"), "PRIVATE").unwrap();
        fs::set_permissions(place.root("private"), fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(place.root("public"), "PUBLIC").unwrap();
        place.mount(&["-o", options]);
        let script = "cd $1; cat public; cat private; echo x >private; echo x >new; rm public";
        let Some(output) = as_nobody(&place, script) else { return };
        let read = String::from_utf8_lossy(&output.stdout).into_owned();
        let (private, is_new) = (fs::read(place.root("private")), place.root("new").exists());
        let is_left = place.root("public").exists();
        let what = format!("{options}: {read:?}, {private:?}, {}", said(&output));
        if options.contains("no_default") {
            assert_eq!((read.as_str(), is_new, is_left), ("PUBLICPRIVATE", true, false), "{what}");
        } else {
            assert_eq!((read.as_str(), is_new, is_left), ("PUBLIC", false, true), "{what}");
            assert_eq!(private.unwrap(), b"PRIVATE", "{what}");
        }
    }
}

#[test]
fn a_mount_is_ended_by_a_symbolic_link_to_it() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-link");
    symlink("mnt", place.at("link")).unwrap();
    symlink(place.at("link"), place.at("far")).unwrap();
    for kill in [false, true] {
        place.mount(&[]);
        if kill {
            assert!(Command::new("kill").args(["-9", &place.server()]).status().unwrap().success());
        }
        let output = place.command(&["umount"]).arg(place.at("far")).output().unwrap();
        assert!(output.status.success() && !place.is_mounted(), "{}", said(&output));
    }
    symlink("circle", place.at("circle")).unwrap();
    let output = place.command(&["umount"]).arg(place.at("circle")).output().unwrap();
    assert!(!output.status.success() && said(&output).contains("symbolic links"));
}

#[test]
fn a_closed_fuse_device_is_named() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-device");
    // A mount namespace of its own, in which there are no devices.
    let script = "mount -t tmpfs none /dev && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh", env!("CARGO_BIN_EXE_hikyaku"), "mount", "-f"]);
    command.arg(place.source("")).arg(place.at("mnt")).env("XDG_STATE_HOME", place.at("state"));
    let output = command.output().unwrap();
    let told = said(&output);
    assert!(!output.status.success(), "{told}");
    assert!(
        told.contains("cannot open /dev/fuse") && told.contains("\ntry: modprobe fuse"),
        "{told}"
    );
    assert!(!told.contains("os error"), "{told}");
}

#[test]
fn only_directories_are_mounted_and_only_on_directories() {
    if !can_mount() {
        return;
    }
    let place = Place::new("mount-kinds");
    fs::write(place.at("root/file"), "f").unwrap();
    fs::write(place.at("plain"), "p").unwrap();
    for (source, target, told) in [
        ("", "plain", "plain: not a directory"),
        ("", "absent", "absent: no such file"),
        ("file", "mnt", "file: not a directory"),
        ("absent", "mnt", "no such file or directory"),
    ] {
        let mut command = place.command(&["mount"]);
        let output = command.arg(place.source(source)).arg(place.at(target)).output().unwrap();
        assert_eq!(output.status.code(), Some(6), "{source} {target}: {}", said(&output));
        assert!(said(&output).contains(told), "{source} {target}: {}", said(&output));
    }
    assert_eq!(fs::read_to_string(place.at("plain")).unwrap(), "p");
}
