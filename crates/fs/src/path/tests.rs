//! What a peer may call a file.

use super::*;

#[test]
fn what_could_lead_elsewhere_is_no_path() {
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
}

#[test]
fn odd_names_are_names() {
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
