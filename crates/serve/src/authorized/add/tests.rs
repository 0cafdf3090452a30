//! Keys that are added to a list.

use super::*;
use hikyaku_crypto::Identity;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-add-key-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    /// A path of a list in it with this text.
    fn list(&self, text: &str) -> PathBuf {
        let path = self.0.join("list");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn key() -> String {
    Identity::generate().unwrap().public_key().to_string()
}

#[test]
fn a_list_and_its_folder_are_made_for_their_owner_only() {
    let scratch = Scratch::new();
    let list = scratch.0.join("state/hikyaku/authorized_keys");
    let line = format!("{} anna@laptop", key());
    assert_eq!(add_key(&list, &line).unwrap(), Added::Now);
    assert_eq!(fs::read_to_string(&list).unwrap(), format!("{line}\n"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&list), mode(list.parent().unwrap())), (0o600, 0o700));
    assert_eq!(add_key(&list, &line).unwrap(), Added::Before);
    assert_eq!(fs::read_to_string(&list).unwrap(), format!("{line}\n"));
}

#[test]
fn a_last_line_without_its_end_stays_a_line() {
    let (scratch, first, second) = (Scratch::new(), key(), key());
    let list = scratch.list(&format!("# clients\n{first} ben"));
    assert_eq!(add_key(&list, &second).unwrap(), Added::Now);
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text, format!("# clients\n{first} ben\n{second}\n"));
}

#[test]
fn a_key_that_is_restricted_stays_so() {
    let (scratch, key) = (Scratch::new(), key());
    let text = format!("root=/runs,ro {key} anna\n");
    let list = scratch.list(&text);
    assert_eq!(add_key(&list, &key).unwrap(), Added::Before);
    assert_eq!(add_key(&list, &format!("ro,root=\"/runs\" {key}")).unwrap(), Added::Before);
    let other = add_key(&list, &format!("ro {key}"));
    assert!(matches!(other, Err(NotAdded::OtherOptions(_))), "{other:?}");
    assert_eq!(fs::read_to_string(&list).unwrap(), text);
}

#[test]
fn a_list_that_another_user_may_have_chosen_is_not_changed() {
    let (scratch, line) = (Scratch::new(), key());
    let list = scratch.list("# clients\n");
    let link = scratch.0.join("link");
    symlink(&list, &link).unwrap();
    let refused = add_key(&link, &line);
    assert!(matches!(refused, Err(NotAdded::Link(_))), "{refused:?}");
    let dangling = scratch.0.join("dangling");
    symlink(scratch.0.join("nothing"), &dangling).unwrap();
    assert!(matches!(add_key(&dangling, &line), Err(NotAdded::Link(_))));
    assert!(!scratch.0.join("nothing").exists());
    fs::set_permissions(&list, fs::Permissions::from_mode(0o620)).unwrap();
    let refused = add_key(&list, &line);
    assert!(matches!(refused, Err(NotAdded::Distrust { .. })), "{refused:?}");
    assert_eq!(fs::read_to_string(&list).unwrap(), "# clients\n");
}

#[test]
fn neither_a_damaged_list_nor_a_damaged_line_is_written() {
    let (scratch, line) = (Scratch::new(), key());
    let text = format!("fast {}\n", key());
    let list = scratch.list(&text);
    let damaged = add_key(&list, &line);
    assert!(matches!(damaged, Err(NotAdded::List { number: 1, .. })), "{damaged:?}");
    let list = scratch.list("");
    for line in [
        format!("ro {line}\n{}", key()),
        format!("{line} \u{1b}[2J"),
        "ro ed25519:AAAA".to_owned(),
        format!("{line} {}", "x".repeat(LINE_BYTES_MAX)),
    ] {
        assert!(matches!(add_key(&list, &line), Err(NotAdded::Line(_))), "{line:?}");
    }
    assert_eq!((text.is_empty(), fs::read_to_string(&list).unwrap().len()), (false, 0));
}

#[test]
fn keys_that_are_added_at_the_same_time_are_all_whole_lines() {
    let scratch = Scratch::new();
    let list = scratch.0.join("new/list");
    let keys: Vec<String> = (0..8).map(|_| key()).collect();
    std::thread::scope(|scope| {
        // Each key twice, by two threads.
        for line in keys.iter().chain(&keys) {
            let list = &list;
            scope.spawn(move || add_key(list, line).unwrap());
        }
    });
    let text = fs::read_to_string(&list).unwrap();
    assert_eq!(text.lines().count(), keys.len(), "{text}");
    assert_eq!(Keys::parse(&text).unwrap().0.len(), keys.len());
}
