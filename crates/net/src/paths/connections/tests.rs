//! Numbers in a file of the test.

use super::*;
use hikyaku_tcp::{Grants, NoPlace, Others};
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

fn cache(name: &str) -> (std::path::PathBuf, PathCache) {
    let folder = std::env::temp_dir().join(format!("hikyaku-{name}-{}", std::process::id()));
    (folder.clone(), PathCache::at(folder.join("paths.json")))
}

#[test]
fn numbers_are_remembered_for_a_day() {
    let (folder, cache) = cache("numbers");
    let today = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let key = |last| PathKey::new(Ipv4Addr::new(192, 0, 2, last).into(), [10, 0, 0, 1].into());
    cache.note_held(&key(1), Some(64), today).unwrap();
    cache.note_granted("a:80", Some(2), today).unwrap();
    cache.note_granted("b:80", Some(3), today).unwrap();
    assert_eq!((cache.held(&key(9), today), cache.held(&key(9), today + KEEP)), (Some(64), None));
    let granted = |server, day| cache.granted(server, today + KEEP * day);
    assert_eq!([granted("a:80", 0), granted("b:80", 0)], [Some(2), Some(3)]);
    assert_eq!([granted("a:80", 1), granted("a:81", 0)], [None; 2]);
    cache.note_held(&key(1), None, today).unwrap();
    cache.note_granted("a:80", None, today).unwrap();
    assert_eq!((cache.held(&key(1), today), granted("a:80", 0)), (None, None));
    assert_eq!(granted("b:80", 0), Some(3));
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn nothing_is_remembered_of_this_host() {
    let (folder, cache) = cache("own-numbers");
    let memory = Memory::File(cache);
    for server in ["127.0.0.1:80", "[::1]:80", "LocalHost:80", "[::ffff:127.0.0.2]:80"] {
        memory.note(server, Some(2));
        assert_eq!(memory.recall(server), None, "{server}");
    }
    let here = IpAddr::from(Ipv4Addr::LOCALHOST);
    memory.note_held(here, here, Some(64));
    assert_eq!(memory.held(here, here), None);
    assert!(!folder.exists());
}

#[test]
fn a_later_command_keeps_to_the_number_that_a_server_has_granted() {
    let (folder, cache) = cache("granted");
    let memory = Arc::new(Memory::File(cache));
    let (server, goes_on) = ("host.example:80", &|| true);
    let open = |grants: &Grants| {
        let mut place = grants.place(server).unwrap();
        place.granted();
        place
    };
    let first = Grants::remembering(memory.clone());
    let two = [open(&first), open(&first)];
    let mut third = first.place(server).unwrap();
    assert_eq!(third.refused(goes_on), Others::Open);
    drop(two);
    let later = Grants::remembering(memory);
    let _two = [open(&later), open(&later)];
    assert_eq!(later.place(server).err(), Some(NoPlace::Full));
    std::fs::remove_dir_all(folder).unwrap();
}
