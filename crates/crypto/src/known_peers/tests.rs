//! The list after edits by users, concurrent writers and damage.

use super::*;
use crate::testing::Folder;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, UNIX_EPOCH};

fn peer(host: &str) -> PeerName {
    PeerName::new(host, 4433).unwrap()
}

fn print(number: u8) -> Fingerprint {
    Fingerprint::of(&[number])
}

fn today() -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(20_454 * 86_400)
}

#[test]
fn a_recorded_entry_is_found() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("state/hikyaku/known_peers"));
    assert_eq!(list.find(&peer("a")).unwrap(), None);
    assert_eq!(list.record(&peer("a"), print(1), today()).unwrap(), Recorded::Added);
    assert_eq!(list.record(&peer("::1"), print(2), today()).unwrap(), Recorded::Added);
    let text = fs::read_to_string(list.path()).unwrap();
    assert_eq!(
        text,
        format!("a:4433 {} 2026-01-01\n[::1]:4433 {} 2026-01-01\n", print(1), print(2))
    );
    let known = list.find(&peer("::1")).unwrap().unwrap();
    assert_eq!((known.line, known.fingerprint, known.since.as_str()), (2, print(2), "2026-01-01"));
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(list.path()), 0o600);
    assert_eq!(mode(list.path().parent().unwrap()), 0o700);
}

#[test]
fn an_entry_is_never_overwritten() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    list.record(&peer("a"), print(1), today()).unwrap();
    let Recorded::Present(known) = list.record(&peer("a"), print(2), today()).unwrap() else {
        panic!("replaced");
    };
    assert_eq!(known.fingerprint, print(1));
    assert_eq!(list.list().unwrap(), [known]);
}

#[test]
fn garbage_is_skipped_and_kept() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    let mut before =
        b"\n# a remark\n  \t\nb:4433\nc:4433 SHA256:short\n\xff\xfe\x00 x\r\n".to_vec();
    before.extend_from_slice(format!("  A:4433\t{}\r\nd:4433 {}", print(1), print(4)).as_bytes());
    fs::write(list.path(), &before).unwrap();
    let known = list.find(&peer("a")).unwrap().unwrap();
    assert_eq!((known.line, known.fingerprint), (7, print(1)));
    assert_eq!(known.since, "an unknown day");
    assert_eq!(list.list().unwrap().len(), 2);
    list.record(&peer("e"), print(5), today()).unwrap();
    let after = fs::read(list.path()).unwrap();
    let added = format!("\ne:4433 {} 2026-01-01\n", print(5));
    assert_eq!(after, [before.as_slice(), added.as_bytes()].concat());
}

/// Treating a damaged entry as absent would accept any key for a known server.
#[test]
fn a_damaged_entry_of_the_server_in_question_is_an_error() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    for text in ["a:4433", "a:4433 SHA256:abc 2026-01-01", "A:4433 \u{fffd}"] {
        fs::write(list.path(), format!("# one\n{text}\n")).unwrap();
        let error = list.find(&peer("a")).unwrap_err();
        assert!(matches!(error, ReadKnownPeers::Damaged { line: 2, .. }), "{error}");
        assert!(error.remedy().unwrap().contains("hikyaku keys forget a:4433"));
        assert!(list.record(&peer("a"), print(1), today()).is_err());
        assert_eq!(list.forget(&Peers::One(peer("a"))).unwrap().len(), 1);
        assert_eq!(list.find(&peer("a")).unwrap(), None);
    }
}

#[test]
fn forgetting_leaves_the_others() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    let forget = |text: &str| list.forget(&text.parse().unwrap()).unwrap();
    assert_eq!(forget("a:4433"), [""; 0]);
    for host in ["a", "aa", "b"] {
        list.record(&peer(host), print(1), today()).unwrap();
    }
    list.record(&PeerName::new("b", 1).unwrap(), print(1), today()).unwrap();
    assert_eq!(forget("a:4433"), ["a:4433"]);
    assert_eq!(forget("b"), ["b:4433", "b:1"]);
    let names: Vec<_> = list.list().unwrap().into_iter().map(|known| known.name).collect();
    assert_eq!(names, ["aa:4433"]);
}

#[test]
fn concurrent_writers_lose_no_entry() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    std::thread::scope(|scope| {
        for number in 0..8 {
            let list = &list;
            scope.spawn(move || {
                for host in ["x", "y", "z"] {
                    let peer = PeerName::new(host, number).unwrap();
                    list.record(&peer, print(1), today()).unwrap();
                }
            });
        }
    });
    assert_eq!(list.list().unwrap().len(), 24);
}

#[test]
fn a_file_that_is_too_large_or_a_directory_is_an_error() {
    let folder = Folder::new();
    let list = KnownPeers::at(folder.path("known_peers"));
    fs::write(list.path(), vec![b'\n'; FILE_BYTES_MAX as usize + 1]).unwrap();
    assert!(matches!(list.find(&peer("a")), Err(ReadKnownPeers::Io { .. })));
    let list = KnownPeers::at(folder.path(""));
    assert!(matches!(list.find(&peer("a")), Err(ReadKnownPeers::Io { .. })));
}
