//! Tests of answers to the question for a part.

use super::*;
use crate::reading::head_of;

fn head(lines: &str) -> Head {
    let text = format!("HTTP/1.1 {}\r\n\r\n", lines.replace('|', "\r\n"));
    head_of(text.as_bytes()).unwrap()
}

fn known() -> Offer {
    Offer::of(&head("206 P|Content-Range: bytes 0-9/100|ETag: \"a\""), Some(&(0..10))).unwrap()
}

#[test]
fn a_part_is_checked_before_it_is_used() {
    let check = |lines: &str| known().check_part(&head(lines), &(20..30), Proof::Version);
    let good = "206 P|Content-Range: bytes 20-29/100|ETag: \"a\"";
    assert_eq!(check(good).unwrap(), 20..30);
    assert_eq!(check("206 P|Content-Range: bytes 20-24/*|ETag: \"a\"").unwrap(), 20..25);
    let lies = [
        "206 P|Content-Range: bytes 21-29/100",
        "206 P|Content-Range: bytes 20-30/100",
        "206 P|Content-Range: lines 20-29/100",
        "206 P|ETag: \"a\"",
        "206 P|Content-Range: bytes 20-29/100|Content-Length: 9",
        "206 P|Content-Range: bytes 20-29/100|Content-Encoding: gzip",
    ];
    for lines in lies {
        assert!(matches!(check(lines), Err(Fault::Lie(_))), "{lines}");
    }
}

#[test]
fn another_version_is_seen() {
    let check = |lines: &str| known().check_part(&head(lines), &(20..30), Proof::Version);
    let changed = [
        "206 P|Content-Range: bytes 20-29/100|ETag: \"b\"",
        "206 P|Content-Range: bytes 20-29/101",
        "200 OK|ETag: \"b\"|Content-Length: 100",
        "200 OK|Content-Length: 100",
        "200 OK|ETag: \"a\"|Content-Length: 101",
    ];
    for lines in changed {
        assert!(matches!(check(lines), Err(Fault::Changed)), "{lines}");
    }
    let whole = check("200 OK|ETag: \"a\"|Content-Length: 100");
    assert!(matches!(whole, Err(Fault::NoRanges)));
}

#[test]
fn a_part_whose_version_is_not_told_needs_a_digest() {
    let part = "206 P|Content-Range: bytes 20-29/100";
    let (old, now) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:46 GMT");
    let first = |lines: &str| {
        let lines = format!("206 P|Content-Range: bytes 0-9/100|{lines}");
        Offer::of(&head(&lines), Some(&(0..10))).unwrap()
    };
    let check = |first: &Offer, proof| first.check_part(&head(part), &(20..30), proof);
    // An answer to `If-Range` leaves the date out.
    let dated = first(&format!("Last-Modified: {old}|Date: {now}"));
    assert_eq!(check(&dated, Proof::Version).unwrap(), 20..30);
    for lines in ["ETag: \"a\"", "ETag: W/\"a\"", &format!("Last-Modified: {old}")] {
        let first = first(lines);
        let checked = check(&first, Proof::Version);
        assert!(matches!(checked, Err(Fault::Unrecognised)), "{lines}");
        assert_eq!(check(&first, Proof::Digest).unwrap(), 20..30, "{lines}");
    }
}

#[test]
fn parts_belong_together_by_their_version_or_a_digest() {
    let (old, now) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:46 GMT");
    let cases = [
        ("Content-Length: 9".to_owned(), Proof::None),
        ("ETag: W/\"a\"".to_owned(), Proof::Version),
        (format!("Last-Modified: {old}"), Proof::Version),
        (format!("Last-Modified: {old}|Date: {now}"), Proof::Version),
        // The file may change once more in this second.
        (format!("Last-Modified: {now}|Date: {now}"), Proof::None),
        ("Digest: SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=".to_owned(), Proof::Digest),
    ];
    for (lines, want) in cases {
        let offer = Offer::of(&head(&format!("200 OK|{lines}")), None).unwrap();
        assert_eq!(offer.proof(), want, "{lines}");
    }
}

#[test]
fn only_a_strong_version_stands_in_if_range() {
    let if_range = |lines: &str| Version::of(&head(&format!("200 OK|{lines}"))).if_range;
    let (old, date) = ("Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(if_range("ETag: \"a\"").as_deref(), Some("\"a\""));
    assert_eq!(if_range(&format!("ETag: W/\"a\"|Last-Modified: {old}|Date: {date}")), None);
    assert_eq!(if_range(&format!("Last-Modified: {old}|Date: {date}")).as_deref(), Some(old));
    assert_eq!(if_range(&format!("Last-Modified: {date}|Date: {date}")), None);
    assert_eq!(if_range(&format!("Last-Modified: {old}")), None);
}
