//! Listings, also those that are none.

use super::*;

#[test]
fn a_listing_is_read_and_its_names_are_checked() {
    let text = b"Type=cdir;Modify=20260102030405; .\r\n\
        Type=file;Size=5;Modify=20260102030405;UNIX.mode=0644; a b\r\n\
        type=dir;Perm=el; sub\r\nType=OS.unix=slink:/x;Size=3; link\nType=file;Size=1; ../evil\r\n";
    let entries = listing(text).unwrap();
    let names: Vec<_> =
        entries.iter().map(|entry| entry.name.as_ref().ok().map(Name::as_bytes)).collect();
    assert_eq!(names, [Some(&b"a b"[..]), Some(b"sub"), Some(b"link"), None]);
    let kinds: Vec<_> = entries.iter().map(|entry| entry.facts.kind).collect();
    assert_eq!(kinds, [Kind::File, Kind::Directory, Kind::Link, Kind::File]);
    assert_eq!(entries[0].facts.size, Some(5));
    assert_eq!(entries[0].facts.modified.as_deref(), Some("20260102030405"));
}

#[test]
fn a_file_is_unchanged_if_all_that_is_told_twice_is_the_same() {
    let facts = |text: &str| parse(format!("{text} f").as_bytes()).unwrap().0;
    let before = facts("Type=file;Size=5;Modify=20260102030405;Unique=a-1;");
    for same in ["Type=file;Size=5;Modify=20260102030405;Unique=a-1;", "Type=file;Size=5;"] {
        assert!(before.is_unchanged(&facts(same)), "{same}");
    }
    for other in [
        "Type=file;Size=6;Modify=20260102030405;Unique=a-1;",
        "Type=file;Size=5;Modify=20260102030406;Unique=a-1;",
        "Type=file;Size=5;Modify=20260102030405;Unique=a-2;",
        "Type=dir;Size=5;Modify=20260102030405;Unique=a-1;",
        "Type=file;",
    ] {
        assert!(!before.is_unchanged(&facts(other)), "{other}");
    }
}

#[test]
fn lines_without_facts_are_no_listing() {
    for text in [
        &b"-rw-r--r-- 1 root root 5 a"[..],
        b"Type=file;Size=-1; a",
        b"Type=file;Size=99999999999999999999; a",
        b"Type=file;a",
        b"Type; a",
    ] {
        assert_eq!(listing(text), None, "{}", String::from_utf8_lossy(text));
    }
}

#[test]
fn a_link_tells_where_it_leads_if_that_can_be_read() {
    let link = |value: &str| {
        let line = format!("Type=file;Size=3;UNIX.slink={value}; /l");
        parse(line.as_bytes()).unwrap().0.link
    };
    assert_eq!(link("/d/a%20b%3Bc%2541"), Some(b"/d/a b;c%41".to_vec()));
    for value in ["", "a", "../a", "/a%", "/a%2", "/a%+1", "/a%zz"] {
        assert_eq!(link(value), None, "{value}");
    }
}
