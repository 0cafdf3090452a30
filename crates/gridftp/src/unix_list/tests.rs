//! Lines of several servers, and lines of other forms.

use super::*;

#[test]
fn lines_of_the_known_form_are_read() {
    let text = b"total 12\r\n\
        drwxr-xr-x    2 ftp      ftp          4096 Jan 02 13:05 .\r\n\
        drwxr-xr-x    2 ftp      ftp          4096 Jan 02 13:05 ..\r\n\
        -rw-r--r--    1 ftp      ftp             5 Jan 02 13:05 a b\r\n\
        -rwxr-x---    1 1000     1000  99999999999 Dec 31  2019   two spaces\n\
        drwxrwxrwt    9 root     domain users 4096 Mar  5 2020 sub\n\
        -rw-------    1 owner            7 Feb 29 2020 no group\n\
        lrwxrwxrwx    1 ftp      ftp            11 Jan 02 13:05 link -> target\n\
        crw-rw-rw-    1 root     root     1,     3 Jan 02 13:05 null\n\
        -rw-r--r--    1 ftp      ftp             1 Jan 02 13:05 may 5 2020 x\n";
    assert!(has_itself(text));
    let found: Vec<_> = listing(text)
        .into_iter()
        .map(|entry| {
            let name = String::from_utf8(entry.name.unwrap().as_bytes().to_vec()).unwrap();
            let Facts { kind, size, mode, .. } = entry.facts;
            (name, kind, size, mode.unwrap())
        })
        .collect();
    let wanted = [
        ("a b", Kind::File, Some(5), 0o644),
        ("  two spaces", Kind::File, Some(99_999_999_999), 0o750),
        ("sub", Kind::Directory, Some(4096), 0o777),
        ("no group", Kind::File, Some(7), 0o600),
        ("link", Kind::Link, Some(11), 0o777),
        ("null", Kind::Other, Some(3), 0o666),
        ("may 5 2020 x", Kind::File, Some(1), 0o644),
    ];
    assert_eq!(found, wanted.map(|(name, kind, size, mode)| (name.to_owned(), kind, size, mode)));
}

#[test]
fn other_lines_are_entries_with_an_error() {
    for line in [
        &b"01-02-26  01:05PM       <DIR>          sub"[..],
        b"-rw-r--r-- 1 ftp ftp 5 a",
        b"-rw-r--r-- 1 ftp ftp 5 Jan 32 13:05 a",
        b"-rw-r--r-- 1 ftp ftp five Jan 02 13:05 a",
        b"-rw-r--r-- 1 ftp ftp 5 Jan 02 13:05 ",
        b"-rw-r--r-- 1 ftp ftp 5 Jan 02 13:05",
        b"-rq-r--r-- 1 ftp ftp 5 Jan 02 13:05 a",
        b"lrwxrwxrwx 1 ftp ftp 5 Jan 02 13:05 no arrow",
        b"-",
        b"\xff\xfe",
    ] {
        let [Listed { name: Err(EntryError::Line(text)), .. }] = &*listing(line) else {
            panic!("{}", String::from_utf8_lossy(line));
        };
        assert!(!text.is_empty());
    }
    let evil = listing(b"-rw-r--r-- 1 ftp ftp 5 Jan 02 13:05 ../evil");
    assert!(matches!(evil[0].name, Err(EntryError::Name(_))));
}
