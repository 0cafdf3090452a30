//! Several servers with the same file, or not.

use crate::server::{Body, Reply, Server};
use crate::{Folder, check, get, got, payload, sha256};
use hikyaku_console::ExitCode;
use std::fs;

const MIB: usize = 1 << 20;

fn honest(content: &[u8], etag: &'static str) -> Server {
    let data = content.to_vec();
    Server::start(move |request| {
        Reply::honest(request, &data, etag).body(|bytes| Body::Paced(bytes, 128 << 10))
    })
}

/// The same file with a wrong byte in each mebibyte.
fn liar(content: &[u8]) -> Server {
    let mut data = content.to_vec();
    data.iter_mut().step_by(MIB / 2).for_each(|byte| *byte ^= 0x55);
    Server::start(move |request| {
        Reply::honest(request, &data, "\"lie\"").body(|bytes| Body::Paced(bytes, 128 << 10))
    })
}

#[test]
fn all_mirrors_are_used() {
    let (folder, content) = (Folder::new(), payload(1, 20 * MIB));
    let servers = ["\"a\"", "\"b\"", "\"c\""].map(|etag| honest(&content, etag));
    let urls = servers.each_ref().map(|server| server.url("/x")).join(" ");
    got(&folder, &format!("-n 6 -o DIR/a {urls}"));
    check(&folder, "a", &content);
    for server in &servers {
        assert!(!server.requests().is_empty());
    }
}

#[test]
fn a_mirror_with_another_size_is_dropped() {
    let (folder, content) = (Folder::new(), payload(2, 12 * MIB));
    let (good, other) = (honest(&content, "\"a\""), honest(&payload(3, 12 * MIB + 1), "\"b\""));
    got(&folder, &format!("-n 4 -o DIR/a {} --mirror {}", good.url("/"), other.url("/")));
    check(&folder, "a", &content);
    assert_eq!(
        other.requests().iter().filter(|request| request.header("if-range").is_some()).count(),
        0
    );
}

#[test]
fn a_mirror_that_fails_is_replaced_by_the_others() {
    let (folder, content) = (Folder::new(), payload(4, 12 * MIB));
    let good = honest(&content, "\"a\"");
    let bad = Server::start(|_| Reply::status(404));
    got(&folder, &format!("-n 4 -o DIR/a {} {} http://127.0.0.1:1/x", bad.url("/"), good.url("/")));
    check(&folder, "a", &content);
}

#[test]
fn a_mirror_that_cannot_be_reached_does_not_take_connections_from_the_others() {
    let (folder, content) = (Folder::new(), payload(9, 24 * MIB));
    let good = honest(&content, "\"a\"");
    got(&folder, &format!("-n 4 -o DIR/a {} http://127.0.0.1:1/x", good.url("/")));
    check(&folder, "a", &content);
    assert!(good.connections() >= 4, "{}", good.connections());
}

#[test]
fn what_a_mirror_lied_about_is_fetched_from_the_others() {
    let content = payload(5, 16 * MIB);
    let digest = sha256(&content);
    // The liar is the first, the second, or the third of three.
    for at in 0..3 {
        let folder = Folder::new();
        let mut servers = vec![honest(&content, "\"a\""), honest(&content, "\"b\"")];
        servers.insert(at, liar(&content));
        let urls: Vec<String> = servers.iter().map(|server| server.url("/")).collect();
        got(&folder, &format!("-n 6 --sha256 {digest} -o DIR/a {}", urls.join(" ")));
        check(&folder, "a", &content);
    }
}

#[test]
fn two_liars_of_three_are_found_as_well() {
    let (folder, content) = (Folder::new(), payload(6, 16 * MIB));
    let servers = [liar(&content), liar(&content), honest(&content, "\"a\"")];
    let urls = servers.each_ref().map(|server| server.url("/")).join(" ");
    got(&folder, &format!("-n 6 --sha256 {} -o DIR/a {urls}", sha256(&content)));
    check(&folder, "a", &content);
}

#[test]
fn if_all_mirrors_lie_there_is_no_file() {
    let (folder, content) = (Folder::new(), payload(7, 12 * MIB));
    let servers = [liar(&content), liar(&content)];
    let urls = servers.each_ref().map(|server| server.url("/")).join(" ");
    let line = format!("-n 4 --sha256 {} -o DIR/a {urls}", sha256(&content));
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::Failed, "{error}");
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn a_metalink_file_tells_mirrors_and_pieces() {
    let (folder, content) = (Folder::new(), payload(8, 12 * MIB + 5));
    let servers = [liar(&content), honest(&content, "\"a\"")];
    let piece = MIB;
    let hashes: String =
        content.chunks(piece).map(|piece| format!("<hash>{}</hash>", sha256(piece))).collect();
    let urls = servers.each_ref().map(|server| format!("<url>{}</url>", server.url("/")));
    let text = format!(
        "<?xml version=\"1.0\"?><metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">\
         <file name=\"../b c\"><size>{}</size><pieces length=\"{piece}\" type=\"sha-256\">{hashes}</pieces>{}\
         </file></metalink>",
        content.len(),
        urls.concat(),
    );
    let about = Folder::new();
    fs::write(about.path("x.meta4"), &text).unwrap();
    let path = about.path("x.meta4").display().to_string();
    got(&folder, &format!("-n 4 -u me:secret -d DIR {path}"));
    check(&folder, "b c", &content);
    // The author of the Metalink file must not get the user's password.
    let has_login = |server: &Server| {
        server.requests().iter().any(|request| request.header("authorization").is_some())
    };
    assert!(!servers.iter().any(has_login));
    // The same from a server.
    let folder = Folder::new();
    let server = Server::start(move |_| Reply::whole(text.as_bytes()));
    got(&folder, &format!("-n 4 -o DIR/d {}", server.url("/x.meta4")));
    check(&folder, "d", &content);
}

#[test]
fn a_header_tells_mirrors_if_a_digest_is_known() {
    let (folder, content) = (Folder::new(), payload(10, 16 * MIB));
    let digest = sha256(&content);
    for options in [String::new(), format!("--sha256 {digest}")] {
        let mirror = honest(&content, "\"b\"");
        let (data, link) = (content.clone(), format!("<{}>; rel=duplicate", mirror.url("/m")));
        let server = Server::start(move |request| {
            let reply = Reply::honest(request, &data, "\"a\"").with("Link", &link);
            reply.body(|bytes| Body::Paced(bytes, 128 << 10))
        });
        got(&folder, &format!("-n 4 --force -u me:secret {options} -o DIR/a {}", server.url("/x")));
        check(&folder, "a", &content);
        let asked = mirror.requests();
        assert_eq!(!asked.is_empty(), !options.is_empty(), "{options}");
        assert!(asked.iter().all(|request| request.header("authorization").is_none()));
    }
}
