//! Servers that lie, or break.

use crate::server::{Body, Reply, Server};
use crate::{Folder, check, get, got, payload, sha256};
use hikyaku_console::ExitCode;

const ETAG: &str = "\"one\"";
const MIB: usize = 1 << 20;

/// A download that must fail and leave nothing behind.
fn refused(
    name: &str,
    words: &str,
    answer: impl Fn(&crate::server::Request) -> Reply + Send + Sync + 'static,
) {
    let folder = Folder::new();
    let server = Server::start(answer);
    let (code, error) =
        get(&folder, &format!("--retries 2 -n 3 {words} -o DIR/a {}", server.url("/a")));
    assert_ne!(code, ExitCode::Success, "{name}");
    assert!(!folder.names().contains(&"a".to_owned()), "{name}: {error}");
}

#[test]
fn a_part_that_is_another_one_is_not_used() {
    let content = payload(1, 12 * MIB);
    let data = content.clone();
    refused("shifted", "", move |request| match (request.number, request.range(data.len())) {
        (1.., Some(range)) => {
            let start = range.start + 1;
            Reply::part(&data, start..range.end).with("ETag", ETAG)
        }
        _ => Reply::honest(request, &data, ETAG),
    });
    let data = content.clone();
    refused("longer", "", move |request| match (request.number, request.range(data.len())) {
        (1.., Some(range)) if range.end < data.len() => {
            Reply::part(&data, range.start..range.end + 1).with("ETag", ETAG)
        }
        (1.., Some(range)) => Reply::part(&data, range.start - 1..range.end).with("ETag", ETAG),
        _ => Reply::honest(request, &data, ETAG),
    });
    let data = content.clone();
    refused("coded", "", move |request| {
        let reply = Reply::honest(request, &data, ETAG);
        if request.number > 0 { reply.with("Content-Encoding", "gzip") } else { reply }
    });
    let data = content.clone();
    refused("several parts", "", move |request| {
        let mut reply = Reply::honest(request, &data, ETAG);
        if request.number > 0 {
            reply.headers.retain(|(name, _)| name != "Content-Range");
            reply = reply.with("Content-Type", "multipart/byteranges; boundary=x");
        }
        reply
    });
    let data = content;
    refused("two lengths", "", move |request| {
        Reply::honest(request, &data, ETAG).with("Content-Length", "7")
    });
}

#[test]
fn wrong_bytes_with_right_headers_do_not_get_the_name() {
    let content = payload(2, 6 * MIB);
    let digest = sha256(&content);
    let data = content.clone();
    refused("wrong bytes", &format!("--sha256 {digest}"), move |request| {
        let mut wrong = data.clone();
        wrong[5 * MIB] ^= 1;
        Reply::honest(request, &wrong, ETAG)
    });
    // The server's own digest is as good as that of the user.
    let data = content.clone();
    refused("wrong bytes", "", move |request| {
        let mut wrong = data.clone();
        wrong[5 * MIB] ^= 1;
        let digest = base64(&digest_of(&data));
        Reply::honest(request, &wrong, ETAG).with("Repr-Digest", &format!("sha-256=:{digest}:"))
    });
    let folder = Folder::new();
    let data = content.clone();
    let server = Server::start(move |request| {
        let digest = base64(&digest_of(&data));
        Reply::honest(request, &data, ETAG).with("Digest", &format!("SHA-256={digest}"))
    });
    got(&folder, &format!("-o DIR/a --sha256 {digest} {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn versions_are_never_mixed() {
    // The server looks at `If-Range`, or ignores it; the file changes after the third request.
    for has_if_range in [true, false] {
        let folder = Folder::new();
        let (old, new) = (payload(3, 12 * MIB), payload(4, 12 * MIB));
        let data = [old, new.clone()];
        let server = Server::start(move |request| {
            let (content, etag) =
                if request.number < 3 { (&data[0], "\"old\"") } else { (&data[1], "\"new\"") };
            let mut request = request.clone();
            if !has_if_range {
                request.headers.remove("if-range");
            }
            Reply::honest(&request, content, etag)
        });
        got(&folder, &format!("-n 3 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &new);
    }
}

#[test]
fn versions_are_never_mixed_by_dates_and_sizes_either() {
    let dates = ["Sun, 06 Nov 1994 08:49:36 GMT", "Sun, 06 Nov 1994 08:49:39 GMT"];
    for is_dated in [true, false] {
        let folder = Folder::new();
        let (old, new) = (payload(3, 12 * MIB), payload(4, 12 * MIB + usize::from(!is_dated)));
        let data = [old.clone(), new.clone()];
        let server = Server::start(move |request| {
            let at = usize::from(request.number >= 3);
            let mut request = request.clone();
            request.headers.remove("if-range");
            let mut reply = Reply::honest(&request, &data[at], "");
            reply.headers.retain(|(name, _)| name != "ETag");
            if is_dated { reply.with("Last-Modified", dates[at]) } else { reply }
        });
        got(&folder, &format!("-n 3 -o DIR/a {}", server.url("/a")));
        // Where nothing but the size tells them apart, one answer has all of the file.
        check(&folder, "a", if is_dated { &new } else { &old });
    }
}

#[test]
fn a_file_that_never_stops_changing_is_given_up() {
    let data = payload(5, 12 * MIB);
    refused("ever new", "", move |request| {
        Reply::honest(request, &data, &format!("\"{}\"", request.number))
    });
}

#[test]
fn a_server_that_knows_dates_only_in_if_range_is_asked_without() {
    let (folder, content) = (Folder::new(), payload(6, 12 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| match request.header("if-range") {
        Some(_) => Reply::whole(&data).with("ETag", ETAG),
        None => Reply::honest(request, &data, ETAG),
    });
    got(&folder, &format!("-n 2 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn connections_that_break_are_replaced() {
    let (folder, content) = (Folder::new(), payload(7, 12 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let reply = Reply::honest(request, &data, ETAG);
        match request.number % 3 {
            0 => reply,
            1 => reply.body(|bytes| Body::Cut(bytes, 700_000)),
            _ => reply.body(|_| Body::Nothing),
        }
    });
    got(&folder, &format!("-n 3 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn a_stream_that_breaks_is_begun_anew() {
    let (folder, content) = (Folder::new(), payload(8, 2 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let reply = Reply::whole(&data);
        if request.number < 2 { reply.body(|bytes| Body::Cut(bytes, 900_000)) } else { reply }
    });
    got(&folder, &format!("-o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn a_stream_that_ends_early_is_no_file() {
    let data = payload(8, 2 * MIB);
    refused("cut", "", {
        let data = data.clone();
        move |_| Reply::whole(&data).body(|bytes| Body::Cut(bytes, 900_000))
    });
    refused("no last chunk", "", move |_| {
        let body = [b"5\r\nabcde\r\n".as_slice(), &data[..0]].concat();
        Reply::status(200).with("Transfer-Encoding", "chunked").body(|_| Body::Raw(body))
    });
    refused("a chunk of two sizes", "", |_| {
        let body = b"5\r\nabcdefgh\r\n0\r\n\r\n".to_vec();
        Reply::status(200).with("Transfer-Encoding", "chunked").body(|_| Body::Raw(body))
    });
}

#[test]
fn what_is_no_http_is_an_error() {
    refused("another protocol", "", |_| Reply::status(302).with("Location", "file:///etc/passwd"));
    refused("head without end", "", |_| {
        Reply::status(200).with("X", &"x".repeat(100_000)).body(Body::Raw)
    });
    refused("a length and chunks", "", |_| {
        Reply::status(200)
            .with("Transfer-Encoding", "chunked")
            .body(|_| Body::Whole(b"0\r\n\r\n".to_vec()))
    });
    refused("interim answers", "", |_| {
        let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(100);
        Reply::status(103).body(|_| Body::Raw(interim.into_bytes()))
    });
}

#[test]
fn redirects_without_end_are_given_up() {
    let folder = Folder::new();
    let server = Server::start(|request| {
        Reply::status(302).with("Location", &format!("/{}", request.number))
    });
    let (code, error) = get(&folder, &format!("--retries 0 -o DIR/a {}", server.url("/a")));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert_eq!(server.requests().len(), 11);
}

#[test]
fn a_part_that_goes_on_behind_its_end_does_no_harm() {
    let (folder, content) = (Folder::new(), payload(9, 12 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let mut reply = Reply::honest(request, &data, ETAG);
        if request.number > 0 {
            reply = reply.body(|mut bytes| {
                bytes.extend_from_slice(&[0; 100_000]);
                Body::Chunked(bytes)
            });
        }
        reply
    });
    got(&folder, &format!("-n 2 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn a_server_that_gives_no_more_parts_is_no_endless_loop() {
    let data = payload(10, 12 * MIB);
    refused("whole from the second request on", "", move |request| match request.number {
        0 => Reply::honest(request, &data, ETAG),
        _ => Reply::whole(&data).with("ETag", ETAG),
    });
}

fn digest_of(bytes: &[u8]) -> Vec<u8> {
    aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes).as_ref().to_vec()
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
