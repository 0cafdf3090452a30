//! Names and metadata of files, and servers that change a file, break off, or lie.

use crate::server::{Body, Reply, Request, Server};
use crate::{opened, path, payload, streamed};
use hikyaku_store::{
    Ability, Access, Entry, ErrorKind, Kind, Open, Store, StorePath, Time, Versions,
};
use std::ops::ControlFlow;

/// More than the request that opens a file brings.
const LARGE: usize = (3 << 20) + 123;

/// The only file of a server, opened.
fn file_of(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> (Server, Box<dyn Open>) {
    let server = Server::start(answer);
    let (store, path) = opened(&server.url("/f"));
    let open = store.open(&path, Access::Read).unwrap();
    (server, open)
}

#[test]
fn the_file_of_a_url_has_the_name_of_a_download() {
    let server = Server::start(|request| {
        let reply = Reply::honest(request, b"content", "\"a\"");
        let reply = reply.with("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT");
        match request.path() {
            "/d/get?id=5" => reply.with("Content-Disposition", "attachment; filename=\"b c.dat\""),
            "/d/a%20b.dat?sig=x" | "/d/other" => reply,
            _ => Reply::status(404),
        }
    });
    for (url, name) in [("/d/get?id=5", "b c.dat"), ("/d/a%20b.dat?sig=x", "a b.dat")] {
        let (store, named) = opened(&server.url(url));
        assert_eq!(named, path(name), "{url}");
        let found = store.look(&named).unwrap();
        assert_eq!((found.kind, found.size), (Kind::File, 7));
        assert_eq!(found.modified, Time { secs: 784_111_777, nanos: 0 });
        let mut entries: Vec<Entry> = Vec::new();
        let walked = store.walk(&named, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        });
        walked.unwrap();
        assert_eq!(entries.len(), 1);
        assert!(entries[0].content.is_some());
        assert_eq!(streamed(&*store.open(&named, Access::Read).unwrap(), 0).0, b"content");
        // Other files of the directory are reached by their paths.
        assert_eq!(store.look(&path("other")).unwrap().size, 7);
    }
}

#[test]
fn a_directory_is_not_listed() {
    let server = Server::start(|request| Reply::honest(request, b"x", "\"a\""));
    let (store, _) = opened(&server.url("/d/f"));
    let unlisted = Some(ErrorKind::Unsupported(Ability::List));
    let listed = store.list(&StorePath::ROOT, None, 10);
    assert_eq!(listed.err().map(|error| error.kind), unlisted);
    let walked = store.walk(&StorePath::ROOT, &mut |_| ControlFlow::Continue(()));
    assert_eq!(walked.err().map(|error| error.kind), unlisted);
}

#[test]
fn one_connection_carries_one_request_after_the_other() {
    let content = payload(0, LARGE);
    let served = content.clone();
    let (server, open) = file_of(move |request| Reply::honest(request, &served, "\"a\""));
    assert!(streamed(&*open, 0).0 == content);
    let mut into = [0; 100];
    for at in [5_000, 2_000_000] {
        assert_eq!(open.read_at(at, &mut into).unwrap(), 100);
        assert!(into[..] == content[at as usize..at as usize + 100]);
    }
    assert_eq!(server.connections(), 1);
    let bytes: usize = server.sent.load(std::sync::atomic::Ordering::Relaxed);
    // One byte for the name of the file, the file, and two reads.
    assert_eq!(bytes, 1 + LARGE + 200);
}

#[test]
fn an_answer_that_breaks_off_goes_on_where_it_broke() {
    let content = payload(1, LARGE);
    let served = content.clone();
    let (server, open) = file_of(move |request| {
        let reply = Reply::honest(request, &served, "\"a\"");
        let is_broken = request.number % 2 == 0 && request.header("range") != Some("bytes=0-0");
        if is_broken { reply.body(|bytes| Body::Cut(bytes, 300_000)) } else { reply }
    });
    let (all, failed) = streamed(&*open, 0);
    assert_eq!(failed, None);
    assert!(all == content);
    let sent = server.sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(sent < 2 * LARGE, "{sent}");
}

#[test]
fn a_busy_server_is_asked_again_and_a_broken_one_not_for_ever() {
    let server = Server::start(|request| match request.number {
        0 | 3.. => Reply::honest(request, b"content", "\"a\""),
        _ => Reply::status(503).with("Retry-After", "0"),
    });
    let (store, path) = opened(&server.url("/f"));
    assert_eq!(store.look(&path).unwrap().size, 7);
    let server = Server::start(|request| match request.number {
        0 => Reply::honest(request, b"content", "\"a\""),
        _ => Reply::status(503),
    });
    let (store, path) = opened(&server.url("/f"));
    assert_eq!(store.look(&path).map_err(|error| error.kind), Err(ErrorKind::Unreachable));
    assert_eq!(server.requests().len(), 1 + 4);
}

#[test]
fn two_versions_are_never_mixed() {
    let versions = [payload(2, LARGE), payload(3, LARGE)];
    // The tag changes with the content, or the server does not evaluate If-Range, or sends no ranges any more.
    type Lie = fn(&Request, &[u8], &str) -> Reply;
    let lies: [Lie; 4] = [
        |request, content, tag| Reply::honest(request, content, tag),
        |request, content, tag| {
            let range = request.range(content.len()).unwrap_or(0..content.len());
            Reply::part(content, range).with("ETag", tag)
        },
        |_, content, tag| Reply::whole(content).with("ETag", tag),
        |request, content, _| {
            let range = request.range(content.len()).unwrap_or(0..content.len());
            Reply::part(content, range)
        },
    ];
    for (number, lie) in lies.into_iter().enumerate() {
        let contents = versions.clone();
        let (_server, open) = file_of(move |request| match request.number {
            0 | 1 => Reply::honest(request, &contents[0], "\"a\""),
            _ => lie(request, &contents[1], "\"b\""),
        });
        let (all, failed) = streamed(&*open, 0);
        assert_eq!(failed, Some(ErrorKind::Changed), "lie {number}");
        assert!(all == versions[0][..all.len()], "lie {number}");
        assert!(all.len() >= 1 << 20, "lie {number}");
    }
}

#[test]
fn a_file_without_a_version_comes_by_one_answer() {
    let contents = [payload(4, LARGE), payload(5, LARGE)];
    let served = contents.clone();
    let server = Server::start(move |request| {
        let content = &served[usize::from(request.number >= 3)];
        match request.range(content.len()) {
            Some(range) => Reply::part(content, range),
            None => Reply::whole(content),
        }
    });
    let (store, path) = opened(&server.url("/f"));
    assert_eq!(store.abilities().versions, Versions::Nothing);
    let open = store.open(&path, Access::Read).unwrap();
    assert_eq!(open.found().unwrap().version, None);
    let mut into = [0; 1000];
    for at in [0, 500_000, 2_000_000] {
        assert_eq!(open.read_at(at, &mut into).unwrap(), 1000, "{at}");
        assert!(into[..] == contents[0][at as usize..at as usize + 1000], "{at}");
    }
    let back = open.read_at(1000, &mut into).map_err(|error| error.kind);
    assert_eq!(back, Err(ErrorKind::Changed));
}

#[test]
fn lies_are_damage() {
    let content = payload(6, LARGE);
    type Lie = fn(Reply) -> Reply;
    let lies: [(&str, Lie, ErrorKind); 4] = [
        ("another coding", |reply| reply.with("Content-Encoding", "gzip"), ErrorKind::Damaged),
        (
            "another part",
            |reply| {
                Reply { headers: Vec::new(), ..reply }
                    .with("Content-Range", "bytes 0-9/3145851")
                    .with("ETag", "\"a\"")
            },
            ErrorKind::Damaged,
        ),
        ("short for ever", |reply| reply.body(|bytes| Body::Cut(bytes, 0)), ErrorKind::Unreachable),
        ("no such file", |_| Reply::status(404), ErrorKind::Gone),
    ];
    for (name, lie, kind) in lies {
        let served = content.clone();
        let (_server, open) = file_of(move |request| {
            let reply = Reply::honest(request, &served, "\"a\"");
            if request.number < 2 { reply } else { lie(reply) }
        });
        let (all, failed) = streamed(&*open, 0);
        assert_eq!(failed, Some(kind), "{name}");
        assert!(all == content[..1 << 20], "{name}");
    }
}

#[test]
fn bytes_behind_an_answer_are_not_used() {
    let content = payload(7, LARGE);
    let served = content.clone();
    let (_server, open) = file_of(move |request| {
        let range = request.range(served.len()).unwrap();
        let more = (range.end + 50_000).min(served.len());
        let bytes = served[range.start..more].to_vec();
        let length = (range.end - range.start).to_string();
        Reply::part(&served, range)
            .with("ETag", "\"a\"")
            .with("Content-Length", &length)
            .body(|_| Body::Raw(bytes))
    });
    let (all, failed) = streamed(&*open, 0);
    assert_eq!(failed, None);
    assert!(all == content);
}

#[test]
fn a_coded_file_is_the_bytes_that_the_server_sends() {
    let content = payload(8, LARGE);
    let served = content.clone();
    let (_server, open) = file_of(move |request| {
        Reply::honest(request, &served, "\"a\"").with("Content-Encoding", "gzip")
    });
    assert!(streamed(&*open, 0).0 == content);
}

#[test]
fn a_redirect_is_asked_for_once_a_file() {
    let content = payload(9, LARGE);
    let server = Server::start(move |request| match request.path() {
        "/f" => Reply::status(302).with("Location", "/there/g"),
        _ => Reply::honest(request, &content, "\"a\""),
    });
    let (store, named) = opened(&server.url("/f"));
    assert_eq!(named, path("f"));
    for _ in 0..3 {
        assert_eq!(streamed(&*store.open(&named, Access::Read).unwrap(), 0).1, None);
    }
    let first = server.requests().iter().filter(|request| request.path() == "/f").count();
    assert_eq!(first, 1);
}

#[test]
fn a_file_without_a_size_is_not_read() {
    let server =
        Server::start(|_| Reply::whole(b"content").body(Body::Chunked).with("ETag", "\"a\""));
    let (store, path) = opened(&server.url("/f"));
    assert_eq!(store.look(&path).unwrap().kind, Kind::Special);
    let opened = store.open(&path, Access::Read).map(drop);
    assert_eq!(opened.map_err(|error| error.kind), Err(ErrorKind::SPECIAL));
}
