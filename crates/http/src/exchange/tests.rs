//! Odd answers of servers.

use super::*;
use crate::reading::{answer_of, head_of};
use crate::testing::Watched;
use hyper::Request;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

const PATIENCE: Duration = Duration::from_secs(60);
const ECONNRESET: i32 = 104;

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
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n",
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

/// An exchange whose answer has these bytes. The connection stays open. Returns the bytes of the request, too.
fn open(bytes: &str) -> (Exchange, Arc<Mutex<String>>) {
    let wire = Wire::new(PATIENCE, Stop::default()).unwrap();
    let (near, mut far) = duplex(1 << 16);
    let (bytes, request) = (bytes.to_owned(), Arc::<Mutex<String>>::default());
    let asked = request.clone();
    wire.runtime().spawn(async move {
        let mut into = [0; 1024];
        let length = far.read(&mut into).await.unwrap();
        asked.lock().unwrap().push_str(str::from_utf8(&into[..length]).unwrap());
        far.write_all(bytes.as_bytes()).await.unwrap();
        std::future::pending::<()>().await;
    });
    (Exchange::new(wire, Box::new(near)).unwrap(), request)
}

#[test]
fn a_connection_is_idle_after_the_last_byte_of_an_answer() {
    let cases = [
        ("1.1", "Content-Length: 3\r\n", "abc", true),
        ("1.1", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", true),
        ("1.1", "Content-Length: 3\r\nConnection: close\r\n", "abc", false),
        ("1.0", "Content-Length: 3\r\n", "abc", false),
    ];
    for (version, lines, rest, is_kept) in cases {
        let (mut exchange, _) = open(&format!("HTTP/{version} 200 OK\r\n{lines}\r\n{rest}"));
        exchange.ask(Request::builder()).unwrap();
        assert!(!exchange.is_idle(), "{lines}");
        assert_eq!(exchange.read(1).unwrap(), "a");
        assert!(!exchange.is_idle(), "{lines}");
        assert_eq!(exchange.read(9).unwrap(), "bc");
        assert_eq!(exchange.finish(), is_kept, "{version} {lines}");
    }
}

#[test]
fn an_unneeded_body_at_hand_is_skipped() {
    for (lines, rest, is_skipped) in [
        ("Content-Length: 3\r\n", "abc", true),
        ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n", true),
        ("Content-Length: 4\r\n", "abc", false),
    ] {
        let (mut exchange, _) = open(&format!("HTTP/1.1 404 No\r\n{lines}\r\n{rest}"));
        exchange.ask(Request::builder()).unwrap();
        exchange.skip_at_hand();
        assert_eq!(exchange.is_idle(), is_skipped, "{lines}");
    }
}

#[test]
fn names_of_headers_are_in_title_case() {
    let (mut exchange, request) = open("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let asked = Request::builder().uri("/a").header("host", "b").header("want-repr-digest", "c");
    exchange.ask(asked).unwrap();
    let want = "GET /a HTTP/1.1\r\nHost: b\r\nWant-Repr-Digest: c\r\n\r\n";
    assert_eq!(*request.lock().unwrap(), want);
}

/// The fault of an answer that breaks off with this error.
fn broken(answer: &'static str, error: io::Error) -> Fault {
    let wire = Wire::new(PATIENCE, Stop::default()).unwrap();
    let (stream, mut far) = duplex(1 << 16);
    wire.runtime().spawn(async move {
        let _ = far.read(&mut [0; 1024]).await;
        far.write_all(answer.as_bytes()).await
    });
    let mut error = Some(error);
    let on_read = move |bytes| match error.take_if(|_| bytes == 0) {
        Some(error) => Err(error),
        None => Ok(()),
    };
    let stream = Box::new(Watched { stream, on_read });
    let mut exchange = Exchange::new(wire, stream).unwrap();
    let mut read = || {
        exchange.ask(Request::builder())?;
        while !exchange.read(9)?.is_empty() {}
        Ok(())
    };
    read().unwrap_err()
}

#[test]
fn a_lost_connection_differs_from_one_that_was_closed() {
    for answer in ["HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", "HTTP/1.1 200", ""] {
        let reset = broken(answer, io::Error::from_raw_os_error(ECONNRESET));
        assert!(
            matches!(&reset, Fault::Connection(error) if error.raw_os_error() == Some(ECONNRESET)),
            "{answer}: {reset:?}"
        );
        let wrong = io::Error::new(ErrorKind::InvalidData, rustls::Error::DecryptError);
        let wrong = broken(answer, wrong);
        assert!(matches!(wrong, Fault::Connection(_)), "{answer}: {wrong:?}");
        // The end of TLS without its alert.
        let cut = broken(answer, ErrorKind::UnexpectedEof.into());
        assert!(matches!(cut, Fault::Closed), "{answer}: {cut:?}");
    }
}
