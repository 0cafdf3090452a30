//! Requests as programs send them, cut at every byte, and those that are refused.

use super::body::{BadChunks, Body};
use super::*;

fn read(text: &str) -> Asked {
    read_head(text.as_bytes()).unwrap().unwrap()
}

fn refused(text: &str) -> u16 {
    read_head(text.as_bytes()).unwrap_err().0
}

#[test]
fn a_tunnel_is_asked_for_by_host_and_port() {
    for (address, wanted) in [
        ("web.example:443", "web.example:443"),
        ("10.0.0.1:80", "10.0.0.1:80"),
        ("[2001:db8::1]:8443", "[2001:db8::1]:8443"),
    ] {
        let text = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n\r\n");
        let asked = read(&text);
        assert_eq!((asked.target.to_string(), asked.kind), (wanted.to_owned(), Kind::Tunnel));
        assert!(asked.head.is_empty() && asked.length == text.len());
        for length in 0..text.len() {
            assert!(read_head(&text.as_bytes()[..length]).unwrap().is_none(), "{length}");
        }
    }
    for address in ["web.example", "web.example:0", "web.example:x", "::1:80", ":80", "a/b:80"] {
        assert_eq!(refused(&format!("CONNECT {address} HTTP/1.1\r\n\r\n")), 400, "{address}");
    }
}

#[test]
fn a_request_is_rewritten_for_its_server() {
    let asked = read(
        "GET HTTP://web.example:8080?q=1 HTTP/1.1\r\nHost: other.example\r\nAccept: */*\r\n\
         Proxy-Connection: keep-alive\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\n\
         Keep-Alive: 5\r\nProxy-Authorization: Basic x\r\nTE: trailers\r\nUpgrade: h2c\r\n\
         Cookie: a=b\r\n\r\n",
    );
    assert_eq!(asked.target.to_string(), "web.example:8080");
    assert_eq!(
        String::from_utf8(asked.head).unwrap(),
        "GET /?q=1 HTTP/1.1\r\nHost: web.example:8080\r\nAccept: */*\r\nCookie: a=b\r\n\
         Via: 1.1 hikyaku\r\nConnection: close\r\n\r\n"
    );
    assert_eq!((asked.kind, asked.body), (Kind::Request, Body::Length(0)));
    let asked = read("GET http://web.example HTTP/1.0\r\n\r\n");
    assert_eq!(asked.target.to_string(), "web.example:80");
    assert!(asked.head.starts_with(b"GET / HTTP/1.0\r\nHost: web.example\r\n"));
}

#[test]
fn what_is_no_request_to_a_proxy_is_refused() {
    for (text, status) in [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET https://a/ HTTP/1.1\r\n\r\n", 400),
        ("GET ftp://a/ HTTP/1.1\r\n\r\n", 400),
        ("GET http:///x HTTP/1.1\r\n\r\n", 400),
        ("GET http://a:x/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://u:p@a/ HTTP/1.1\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET http://a/ HTTP/1.1\r\nA : b\r\n\r\n", 400),
    ] {
        assert_eq!(refused(text), status, "{text:?}");
    }
    let many = "A: b\r\n".repeat(HEADERS_MAX + 1);
    assert_eq!(refused(&format!("GET http://a/ HTTP/1.1\r\n{many}\r\n")), 431);
    let long = format!("GET http://a/{} HTTP/1.1\r\n", "x".repeat(HEAD_BYTES_MAX));
    assert_eq!(refused(&long), 431);
}

#[test]
fn a_length_that_can_be_read_in_two_ways_is_refused() {
    let head = |headers: &str| format!("POST http://a/ HTTP/1.1\r\n{headers}\r\n");
    for (headers, wanted) in [
        ("Content-Length: 5\r\n", Body::Length(5)),
        ("Content-Length: 5\r\ncontent-length: 5\r\n", Body::Length(5)),
        ("Transfer-Encoding: Chunked\r\n", Body::chunked()),
        // The server must learn the length even if the program says that it is for this connection only.
        ("Connection: Content-Length\r\nContent-Length: 5\r\n", Body::Length(5)),
    ] {
        let asked = read(&head(headers));
        assert_eq!(asked.body, wanted, "{headers}");
        let text = String::from_utf8(asked.head).unwrap().to_ascii_lowercase();
        assert!(text.contains("content-length: 5") || text.contains("chunked"), "{text}");
    }
    for headers in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 5, 5\r\n",
        "Content-Length: \r\n",
        "Content-Length: 99999999999999999999\r\n",
        "Transfer-Encoding: gzip, chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: identity\r\n",
    ] {
        assert_eq!(refused(&head(headers)), 400, "{headers:?}");
    }
}

#[test]
fn a_body_ends_where_it_ends_however_it_is_cut() {
    let chunked = b"5;ext=1\r\nhello\r\n0a\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n".as_slice();
    for (body, bytes) in [
        (Body::Length(5), b"hello".as_slice()),
        (Body::Length(0), b""),
        (Body::chunked(), chunked),
        (Body::chunked(), b"0\r\n\r\n"),
    ] {
        let stream = [bytes, b"GET http://b/ HTTP/1.1\r\n\r\n"].concat();
        for step in [1, 2, 3, 7, 1000] {
            let mut body = body.clone();
            let taken: usize = stream.chunks(step).map(|piece| body.take(piece).unwrap()).sum();
            assert_eq!(taken, bytes.len(), "{step}");
        }
    }
    assert_eq!(Body::Everything.take(b"all"), Ok(3));
    let long = [b"1;".as_slice(), &[b'x'; 2000]].concat();
    let trailers = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(20_000)].concat();
    let numbers =
        [b"x\r\n".as_slice(), b"\r\n", b"-1\r\n", b"5\n", b"5\rx\r\n", b"ffffffffffffffff\r\n"];
    for bytes in numbers.into_iter().chain([long.as_slice(), &trailers, b"11111111111111111\r\n"]) {
        assert_eq!(Body::chunked().take(bytes), Err(BadChunks), "{:?}", bytes.get(..20));
    }
}

#[test]
fn each_verdict_has_its_status_and_its_text() {
    for (verdict, status) in [
        (Verdict::Refused, "502 Bad Gateway"),
        (Verdict::NameNotFound, "502 Bad Gateway"),
        (Verdict::TimedOut, "504 Gateway Timeout"),
        (Verdict::NotAllowed, "403 Forbidden"),
        (Verdict::OutOfResources, "503 Service Unavailable"),
    ] {
        let reply = String::from_utf8(reply_to_connect(&Answer::failed(verdict, "why"))).unwrap();
        assert!(reply.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{reply}");
        assert!(reply.ends_with(&format!("\r\n\r\nhikyaku proxy: {verdict}: why\n")), "{reply}");
    }
    let connected = Answer::connected(None);
    assert!(reply_to_connect(&connected).starts_with(b"HTTP/1.1 200 "));
    assert!(reply_to_request(&connected).is_empty());
}
