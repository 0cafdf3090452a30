//! What is made of what servers tell.

use super::*;
use hikyaku_store::{Identity, Owner, Time};

fn entry(path: &str, kind: Kind, size: u64) -> Entry {
    let found = Found {
        kind,
        size,
        allocated: size,
        mode: 0o644,
        owner: Owner::default(),
        modified: Time::default(),
        identity: Identity { device: 1, number: 1 },
        version: None,
    };
    let link = (kind == Kind::Link).then(|| b"to".to_vec());
    Entry { path: path.as_bytes().to_vec(), found: Ok(found), link }
}

#[test]
fn a_server_is_believed_only_what_it_was_asked_for() {
    for path in ["run7", "run7/a", "run7/.hidden/b"] {
        assert!(is_within(path.as_bytes(), b"run7"), "{path}");
    }
    for path in ["", "run", "run70", "run70/a", ".ssh/authorized_keys", "a/run7"] {
        assert!(!is_within(path.as_bytes(), b"run7"), "{path}");
    }
    assert!(is_within(b"anything", b""));
}

#[test]
fn replicas_are_files_of_one_name_size_and_time() {
    let first = vec![
        entry("", Kind::Dir, 0),
        entry("d", Kind::Dir, 0),
        entry("d/a", Kind::File, 7),
        entry("d/b", Kind::File, 8),
        entry("l", Kind::Link, 2),
        entry("fifo", Kind::Special, 0),
        entry("../x", Kind::File, 1),
    ];
    let second = vec![
        entry("d", Kind::Dir, 0),
        entry("d/a", Kind::File, 7),
        entry("d/b", Kind::File, 9),
        entry("d/c", Kind::File, 1),
    ];
    let lost = Err(RemoteError::Closed(None));
    let census = merge(vec![Ok(first), lost, Ok(second)]);
    let at = |name: &str| {
        let mut files = census.files.iter();
        files.find(|file| file.path.as_bytes() == name.as_bytes()).map(|file| &file.at[..])
    };
    assert_eq!(at("d/a"), Some(&[ServerId(0), ServerId(2)][..]));
    assert_eq!(at("d/b"), None);
    assert_eq!(at("d/c"), Some(&[ServerId(2)][..]));
    let why = |name: &str| {
        let mut all = census.left_out.iter();
        all.find(|left| left.path == name.as_bytes()).map(|left| left.why)
    };
    assert_eq!(why("d/b"), Some(Why::Differs));
    assert_eq!(why("fifo"), Some(Why::Special));
    assert_eq!(why("../x"), Some(Why::BadName));
    assert_eq!((census.dirs.len(), census.links.len(), census.bytes()), (1, 1, 8));
    assert_eq!(census.lost.len(), 1);
}
