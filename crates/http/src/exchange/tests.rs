//! Odd answers of servers.

use super::*;
use crate::reading::{answer_of, head_of};

/// The body of an answer whose head has these lines.
fn body(version: &str, lines: &str, rest: &str) -> Result<String, Fault> {
    let text = format!("HTTP/{version} 200 OK\r\n{lines}\r\n{rest}");
    Ok(String::from_utf8(answer_of(text.as_bytes())?.1).unwrap())
}

#[test]
fn a_body_ends_where_its_head_says() {
    let cases = [
        ("1.1", "Content-Length: 5\r\n", "abcde", "abcde"),
        ("1.1", "Content-Length: 5\r\n", "abcdef", "abcde"),
        ("1.1", "Content-Length: 5\r\nContent-Length: 5\r\n", "abcde", "abcde"),
        ("1.1", "Content-Length: 0\r\n", "", ""),
        ("1.1", "Transfer-Encoding: Chunked\r\n", "5\r\nabcde\r\n0\r\n\r\n", "abcde"),
        ("1.1", "Transfer-Encoding: chunked\r\n", "1 ;a=b\r\na\r\n0\r\nA: b\r\n\r\n", "a"),
        ("1.1", "Transfer-Encoding: chunked\r\n", "1\r\na\r\n0\r\n\r\nx", "a"),
        ("1.1", "", "abcde", "abcde"),
        ("1.0", "Content-Length: 5\r\n", "abcde", "abcde"),
    ];
    for (version, lines, rest, whole) in cases {
        assert_eq!(body(version, lines, rest).unwrap(), whole, "{version} {lines:?} {rest:?}");
    }
}

#[test]
fn a_body_that_is_cut_off_is_no_body() {
    let cases = [
        ("Content-Length: 5\r\n", "abcd"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nabcd"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\n"),
        ("Transfer-Encoding: chunked\r\n", "5\r\nabcde\r\n0\r\n"),
    ];
    for (lines, rest) in cases {
        let answer = body("1.1", lines, rest);
        assert!(matches!(answer, Err(Fault::Closed)), "{lines:?} {rest:?}: {answer:?}");
    }
}

#[test]
fn a_body_with_two_ends_is_refused() {
    for lines in [
        "Transfer-Encoding: chunked\r\nContent-Length: 7\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        let answer = body("1.1", lines, "0\r\n\r\n");
        assert!(matches!(answer, Err(Fault::Lie(_))), "{lines}");
    }
    let cases = [
        ("1.1", "Content-Length: 5, 6\r\n"),
        ("1.1", "Content-Length: 5\r\nContent-Length: 6\r\n"),
        ("1.1", "Content-Length: -1\r\n"),
        ("1.1", "Content-Length: +1\r\n"),
        ("1.1", "Content-Length: 18446744073709551616\r\n"),
        ("1.0", "Transfer-Encoding: chunked\r\n"),
    ];
    for (version, lines) in cases {
        let answer = body(version, lines, "0\r\n\r\n");
        assert!(matches!(answer, Err(Fault::Invalid(_))), "{version} {lines}: {answer:?}");
    }
}

#[test]
fn a_chunk_begins_with_its_size_and_is_not_longer() {
    for size in ["", "+5", "-1", "0x5", "5 5", "11111111111111111", "g"] {
        let rest = format!("{size}\r\nabcde\r\n0\r\n\r\n");
        let answer = body("1.1", "Transfer-Encoding: chunked\r\n", &rest);
        assert!(matches!(answer, Err(Fault::Invalid(_))), "{size}: {answer:?}");
    }
    let answer = body("1.1", "Transfer-Encoding: chunked\r\n", "5\r\nabcdefgh\r\n0\r\n\r\n");
    assert!(matches!(answer, Err(Fault::Invalid(_))), "{answer:?}");
}

#[test]
fn headers_are_found_by_name() {
    let head =
        head_of(b"HTTP/1.1 206 Yes\r\nETAG: \"a\"\r\nLink: <a>,\r\n <b>\r\nX: \xff\r\n\r\nbody");
    let head = head.unwrap();
    assert_eq!((head.status, head.one("etag")), (206, Some("\"a\"")));
    // A value in several lines (RFC 9112, section 5.2).
    let link: Vec<&str> = head.one("link").unwrap().split_whitespace().collect();
    assert_eq!(link, ["<a>,", "<b>"]);
    assert_eq!(head.one("x"), None);
}

#[test]
fn a_head_has_a_limit() {
    let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(HEAD_BYTES_MAX));
    assert!(matches!(head_of(long.as_bytes()), Err(Fault::Invalid(_))));
    let long = format!("{long}\r\n\r\n");
    assert!(matches!(head_of(long.as_bytes()), Err(Fault::Invalid(_))));
    let many = |count| format!("HTTP/1.1 200 OK\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(head_of(many(HEADERS_MAX).as_bytes()).is_ok());
    assert!(matches!(head_of(many(HEADERS_MAX + 1).as_bytes()), Err(Fault::Invalid(_))));
    let trailer = format!("0\r\n{}\r\n", "A: b\r\n".repeat(HEADERS_MAX + 1));
    let answer = body("1.1", "Transfer-Encoding: chunked\r\n", &trailer);
    assert!(matches!(answer, Err(Fault::Invalid(_))), "{answer:?}");
}

#[test]
fn a_status_is_that_of_a_final_answer() {
    let interim = "HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\n".repeat(20);
    let head = head_of(format!("{interim}HTTP/1.1 404 No\r\n\r\n").as_bytes()).unwrap();
    assert_eq!((head.status, head.one("link")), (404, None));
    for status in ["101", "600", "999"] {
        let head = head_of(format!("HTTP/1.1 {status} X\r\n\r\n").as_bytes());
        assert!(matches!(head, Err(Fault::Lie(_))), "{status}: {head:?}");
    }
    for text in ["", "HTTP/1.1 200", "HTTP/1.1 100 C\r\n\r\n"] {
        assert!(matches!(head_of(text.as_bytes()), Err(Fault::Closed)), "{text}");
    }
    for text in ["SSH-2.0-OpenSSH\r\n", "HTTP/2.0 200 OK\r\n\r\n", "HTTP/1.1 20 OK\r\n\r\n"] {
        assert!(matches!(head_of(text.as_bytes()), Err(Fault::Invalid(_))), "{text}");
    }
}
