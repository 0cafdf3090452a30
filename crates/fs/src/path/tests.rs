//! Which names and paths a peer may send.

use super::*;

#[test]
fn paths_that_could_leave_the_directory_are_refused() {
    let hostile: [(&[u8], PathError); 13] = [
        (b"", PathError::Empty),
        (b"/", PathError::Absolute),
        (b"/etc/passwd", PathError::Absolute),
        (b".", PathError::Dots(".")),
        (b"..", PathError::Dots("..")),
        (b"a/..", PathError::Dots("..")),
        (b"../a", PathError::Dots("..")),
        (b"a/../../b", PathError::Dots("..")),
        (b"a/./b", PathError::Dots(".")),
        (b"a//b", PathError::Empty),
        (b"a/", PathError::Empty),
        (b"a\0b", PathError::Forbidden("a zero byte")),
        (&[b'a'; 256], PathError::TooLong(256)),
    ];
    for (path, error) in hostile {
        assert_eq!(PeerPath::new(path), Err(error), "{}", Shown::new(path));
    }
    let deep = b"a/".repeat(5000);
    assert!(matches!(PeerPath::new(&deep), Err(PathError::TooDeep(_))));
    assert_eq!(Name::new(b"a/b"), Err(PathError::Forbidden("a slash")));
    let long = |names| vec!["n".repeat(255); names].join("/").into_bytes();
    assert_eq!(PeerPath::new(&long(1025)), Err(PathError::PathTooLong(1025 * 256 - 1)));
    let longest = PeerPath::new(&long(1024)).unwrap();
    assert!(longest.join(&longest.name()).is_err());
}

#[test]
fn unusual_names_are_accepted() {
    for name in [&b"..."[..], b"-rf", b" ", b"\n", b"\xff\xfe", b"a\\b", b"..a", "名前".as_bytes()]
    {
        assert_eq!(Name::new(name).unwrap().as_bytes(), name);
    }
}

#[test]
fn paths_are_taken_apart_and_joined() {
    let path = PeerPath::new(b"run/7/a.dat").unwrap();
    assert_eq!(path.name().as_bytes(), b"a.dat");
    let parent = path.parent().unwrap();
    assert_eq!(parent.as_bytes(), b"run/7");
    assert_eq!(parent.join(&path.name()).unwrap(), path);
    assert_eq!(PeerPath::from(path.name()).parent(), None);
    assert_eq!(path.names().count(), 3);
}
