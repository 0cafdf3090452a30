//! Servers that do not say which version of a file they send.

use crate::server::{Body, Reply, Request, Server};
use crate::{Folder, check, got, payload, sha256};
use std::fs;

const MIB: usize = 1 << 20;
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

/// The version that a server sends with its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Says {
    Nothing,
    /// The second in which the answer is made: the file may change once more in it.
    ThisSecond,
    /// A tag with the first answer only.
    TagOnce,
}

/// What a server answers that has another file of the same size from its third answer on.
fn changing(says: Says, request: &Request, data: &[Vec<u8>; 2]) -> Reply {
    let content = &data[usize::from(request.number >= 2)];
    let mut request = request.clone();
    request.headers.remove("if-range");
    let mut reply = Reply::honest(&request, content, "\"a\"");
    if says != Says::TagOnce || request.number > 0 {
        reply.headers.retain(|(name, _)| name != "ETag");
    }
    match says {
        Says::ThisSecond => reply.with("Last-Modified", DATE).with("Date", DATE),
        Says::Nothing | Says::TagOnce => reply,
    }
}

#[test]
fn what_nothing_tells_apart_is_not_mixed() {
    for says in [Says::Nothing, Says::ThisSecond, Says::TagOnce] {
        for connections in [1, 4] {
            let (folder, data) = (Folder::new(), [payload(1, 12 * MIB), payload(2, 12 * MIB)]);
            let served = data.clone();
            let server = Server::start(move |request| changing(says, request, &served));
            got(&folder, &format!("-n {connections} -o DIR/a {}", server.url("/a")));
            let found = fs::read(folder.path("a")).unwrap();
            assert!(data.contains(&found), "{says:?}, {connections} connections: two versions");
        }
    }
}

#[test]
fn with_a_digest_parts_need_no_version() {
    let (folder, content) = (Folder::new(), payload(3, 12 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let mut reply = Reply::honest(request, &data, "");
        reply.headers.retain(|(name, _)| name != "ETag");
        reply.body(|bytes| Body::Paced(bytes, 256 << 10))
    });
    let digest = sha256(&content);
    got(&folder, &format!("-n 4 --sha256 {digest} -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    assert!(server.connections() > 1, "several connections");
}

#[test]
fn a_mirror_that_tells_no_version_is_used_with_a_digest_only() {
    for with_digest in [false, true] {
        let (folder, content) = (Folder::new(), payload(4, 24 * MIB));
        let servers = [true, false].map(|has_tag| {
            // Without a digest nothing of the second one may be used, whatever it has.
            let version = if has_tag || with_digest { 4 } else { 40 };
            let data = payload(version, content.len());
            Server::start(move |request| {
                let mut reply = Reply::honest(request, &data, "\"a\"");
                reply.headers.retain(|(name, _)| has_tag || name != "ETag");
                reply.body(|bytes| Body::Paced(bytes, 256 << 10))
            })
        });
        let urls = servers.each_ref().map(|server| server.url("/a")).join(" ");
        let digest = match with_digest {
            true => format!("--sha256 {}", sha256(&content)),
            false => String::new(),
        };
        got(&folder, &format!("-n 4 {digest} -o DIR/a {urls}"));
        check(&folder, "a", &content);
    }
}

#[test]
fn a_file_that_became_shorter_is_begun_anew() {
    for has_tag in [false, true] {
        let (folder, new) = (Folder::new(), payload(5, MIB));
        let data = [payload(6, 12 * MIB), new.clone()];
        let server = Server::start(move |request| {
            let at = usize::from(request.number >= 1);
            let mut request = request.clone();
            request.headers.remove("if-range");
            match (at, request.range(data[1].len())) {
                // As lighttpd answers a range that is not there.
                (1, Some(range)) if range.start >= range.end => Reply::status(416),
                _ => {
                    let mut reply = Reply::honest(&request, &data[at], ["\"a\"", "\"b\""][at]);
                    reply.headers.retain(|(name, _)| has_tag || name != "ETag");
                    reply
                }
            }
        });
        got(&folder, &format!("-n 2 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &new);
    }
}
