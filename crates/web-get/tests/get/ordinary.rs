//! Ordinary servers.

use crate::server::{Body, Reply, Request, Server};
use crate::{Folder, check, exists, get, got, payload};
use hikyaku_console::ExitCode;
use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

const ETAG: &str = "\"one\"";
const MIB: usize = 1 << 20;

#[test]
fn a_file_comes_through_several_connections() {
    let (folder, content) = (Folder::new(), payload(1, 40 * MIB + 12_345));
    let data = content.clone();
    let server = Server::start(move |request| Reply::honest(request, &data, ETAG));
    got(&folder, &format!("-n 4 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    assert!(server.connections() >= 4, "{}", server.connections());
    let requests = server.requests();
    let kept = requests.len() - server.connections();
    assert!(kept >= 1, "connections are kept for the next range: {} requests", requests.len());
    let is_guarded =
        |request: &Request| request.number == 0 || request.header("if-range") == Some(ETAG);
    assert!(requests.iter().all(is_guarded));
    // No byte was asked for twice, except for ends that were taken over.
    assert!(server.sent.load(std::sync::atomic::Ordering::Relaxed) < 2 * content.len());
}

#[test]
fn the_tuner_begins_with_as_many_connections_as_the_user_allows() {
    let (folder, content) = (Folder::new(), payload(2, 30 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        Reply::honest(request, &data, ETAG).body(|bytes| Body::Paced(bytes, 16 << 10))
    });
    got(&folder, &format!("--max-connections 6 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    let others = server.requests().iter().map(|request| request.others).max();
    assert!(others >= Some(5), "{others:?}");
}

#[test]
fn a_server_without_ranges_is_read_through_one_connection() {
    let (folder, content) = (Folder::new(), payload(3, 3 * MIB));
    let data = content.clone();
    let server = Server::start(move |_| Reply::whole(&data));
    got(&folder, &format!("-o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn bodies_may_be_chunked() {
    for has_ranges in [false, true] {
        let (folder, content) = (Folder::new(), payload(4, 6 * MIB + 1));
        let data = content.clone();
        let server = Server::start(move |request| {
            let reply = match has_ranges {
                true => Reply::honest(request, &data, ETAG),
                false => Reply::whole(&data),
            };
            reply.body(Body::Chunked)
        });
        got(&folder, &format!("-n 1 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &content);
        assert_eq!(server.connections(), 1, "a chunked body leaves its connection open");
    }
}

#[test]
fn a_body_may_end_with_its_connection() {
    let (folder, content) = (Folder::new(), payload(5, MIB));
    let data = content.clone();
    let server = Server::start(move |_| Reply::whole(&data).body(Body::Raw));
    got(&folder, &format!("-o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn empty_and_small_files_are_files() {
    for bytes in [0, 1, 4 * MIB, 4 * MIB + 1] {
        let (folder, content) = (Folder::new(), payload(6, bytes));
        let data = content.clone();
        let server = Server::start(move |request| Reply::honest(request, &data, ETAG));
        got(&folder, &format!("-o DIR/a {}", server.url("/a")));
        check(&folder, "a", &content);
    }
}

#[test]
fn names_come_from_urls_and_servers() {
    let folder = Folder::new();
    let server = Server::start(|request| match request.path() {
        "/told" => {
            Reply::whole(b"1").with("Content-Disposition", "attachment; filename=\"../x y\"")
        }
        "/" => Reply::whole(b"2"),
        _ => Reply::whole(b"3"),
    });
    let url = |path| server.url(path);
    got(&folder, &format!("-d DIR {} {}", url("/told"), url("/a/b%20c?d")));
    assert_eq!(folder.names(), ["b c", "x y"]);
    let (code, error) = get(&folder, &format!("-d DIR {}", url("/")));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert!(error.contains("-o FILE"), "{error}");
}

#[test]
fn several_files_come_at_once() {
    let folder = Folder::new();
    // No file is sent before another one was asked for.
    let asked = Arc::new((Mutex::new(BTreeSet::new()), Condvar::new()));
    let server = Server::start(move |request| {
        let (paths, changed) = &*asked;
        let mut paths = paths.lock().unwrap();
        paths.insert(request.path().to_owned());
        changed.notify_all();
        let is_alone = |paths: &mut BTreeSet<String>| paths.len() < 2;
        let waited = changed.wait_timeout_while(paths, Duration::from_secs(30), is_alone).unwrap();
        if waited.1.timed_out() {
            return Reply::status(404);
        }
        Reply::honest(request, request.path().as_bytes(), ETAG)
    });
    let urls: Vec<String> = (0..6).map(|at| server.url(&format!("/{at}"))).collect();
    got(&folder, &format!("-j 2 -d DIR {}", urls.join(" ")));
    assert_eq!(folder.names(), ["0", "1", "2", "3", "4", "5"]);
    for name in folder.names() {
        assert_eq!(fs::read(folder.path(&name)).unwrap(), format!("/{name}").as_bytes());
    }
}

#[test]
fn connections_are_divided_among_the_files() {
    let (folder, content) = (Folder::new(), payload(9, 12 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        Reply::honest(request, &data, ETAG).body(|bytes| Body::Paced(bytes, 256 << 10))
    });
    got(&folder, &format!("-n 4 -j 2 -d DIR {} {}", server.url("/a"), server.url("/b")));
    for name in ["a", "b"] {
        assert!(fs::read(folder.path(name)).unwrap() == content);
    }
    let most = server.requests().iter().map(|request| request.others + 1).max();
    // Four for each file would be eight. The server counts a request for a moment after its last byte.
    assert!(most.is_some_and(|most| (3..=6).contains(&most)), "{most:?}");
}

#[test]
fn two_files_of_one_name_do_not_disturb_each_other() {
    let folder = Folder::new();
    let server = Server::start(|request| Reply::honest(request, request.path().as_bytes(), ETAG));
    let urls = format!("{} {}", server.url("/a/x"), server.url("/b/x"));
    let (code, error) = get(&folder, &format!("-j 2 -d DIR {urls}"));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert!(error.contains("1 of 2 files"), "{error}");
    assert_eq!(folder.names(), ["x"]);
    assert!([&b"/a/x"[..], b"/b/x"].contains(&fs::read(folder.path("x")).unwrap().as_slice()));
}

#[test]
fn a_file_that_exists_is_replaced_only_if_that_is_wanted() {
    let folder = Folder::new();
    let server = Server::start(|_| Reply::whole(b"new"));
    fs::write(folder.path("a"), "old").unwrap();
    let line = format!("-o DIR/a {}", server.url("/a"));
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert_eq!(fs::read(folder.path("a")).unwrap(), b"old");
    got(&folder, &format!("--force {line}"));
    check(&folder, "a", b"new");
}

#[test]
fn redirects_are_followed_once_for_all_ranges() {
    let (folder, content) = (Folder::new(), payload(7, 9 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| match request.path() {
        "/a" => Reply::status(302).with("Location", "b/../c?x"),
        "/c?x" => Reply::honest(request, &data, ETAG),
        _ => Reply::status(404),
    });
    got(&folder, &format!("-n 3 -o DIR/x {}", server.url("/a")));
    check(&folder, "x", &content);
    let to_first = server.requests().iter().filter(|request| request.path() == "/a").count();
    assert_eq!(to_first, 1);
}

#[test]
fn a_url_that_has_expired_is_asked_for_again() {
    let (folder, content) = (Folder::new(), payload(8, 9 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| match request.path() {
        "/a" => Reply::status(307).with("Location", &format!("/signed/{}", request.number)),
        // A signed URL is good for two requests.
        path => match path.strip_prefix("/signed/").and_then(|number| number.parse().ok()) {
            Some(from) if request.number <= usize::min(from, 1 << 20) + 2 => {
                Reply::honest(request, &data, ETAG)
            }
            _ => Reply::status(403),
        },
    });
    got(&folder, &format!("-n 1 -o DIR/x {}", server.url("/a")));
    check(&folder, "x", &content);
}

#[test]
fn failures_end_with_their_exit_codes() {
    let folder = Folder::new();
    let server = Server::start(|request| {
        let code = request.path().trim_start_matches('/');
        Reply::status(code.parse().unwrap())
    });
    let cases = [
        (404, ExitCode::WillFail),
        (403, ExitCode::WillFail),
        (500, ExitCode::MayPass),
        (503, ExitCode::MayPass),
        (429, ExitCode::MayPass),
    ];
    for (status, want) in cases {
        let url = server.url(&format!("/{status}"));
        let (code, error) = get(&folder, &format!("--retries 1 -o DIR/a {url}"));
        assert_eq!(code, want, "{status}: {error}");
    }
    let (code, error) = get(&folder, "--retries 0 -o DIR/a http://127.0.0.1:1/");
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert!(!exists(&folder.path("a")));
    assert_eq!(folder.names(), [""; 0]);
}

#[test]
fn secrets_stay_with_their_server() {
    let folder = Folder::new();
    let other = Server::start(|_| Reply::whole(b"x"));
    let to = other.url("/x");
    let server = Server::start(move |_| Reply::status(301).with("Location", &to));
    let url = server.url("/a");
    let line = "-u me:secret -H X-Token:{}t -H Accept-Language:{}de -o DIR/a";
    got(&folder, &format!("{line} {url}"));
    let (first, second) = (&server.requests()[0], &other.requests()[0]);
    assert_eq!(first.header("authorization"), Some("Basic bWU6c2VjcmV0"));
    assert_eq!(first.header("x-token"), Some("t"));
    assert_eq!((second.header("authorization"), second.header("x-token")), (None, None));
    assert_eq!(second.header("accept-language"), Some("de"));
    assert_eq!(second.header("user-agent"), Some("hikyaku/0.1.0"));
}

#[test]
fn logins_may_come_from_a_file_that_only_the_user_can_read() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let server = Server::start(|_| Reply::whole(b"x"));
    let netrc = folder.path("netrc");
    fs::write(&netrc, "machine 127.0.0.1 login me password secret\n").unwrap();
    fs::set_permissions(&netrc, fs::Permissions::from_mode(0o644)).unwrap();
    let line = format!("--netrc-file DIR/netrc -o DIR/a {}", server.url("/a"));
    let (_, error) = get(&folder, &line);
    assert!(error.contains("chmod 600"), "{error}");
    fs::set_permissions(&netrc, fs::Permissions::from_mode(0o600)).unwrap();
    got(&folder, &line);
    assert_eq!(server.requests()[0].header("authorization"), Some("Basic bWU6c2VjcmV0"));
}

#[test]
fn a_proxy_is_asked_for_the_whole_url() {
    let folder = Folder::new();
    let proxy = Server::start(|_| Reply::whole(b"x"));
    let at = proxy.port;
    got(
        &folder,
        &format!("--proxy http://me:secret@127.0.0.1:{at} -o DIR/a http://data.example:8080/b?c"),
    );
    let request = &proxy.requests()[0];
    assert_eq!(request.line, "GET http://data.example:8080/b?c");
    assert_eq!(request.header("host"), Some("data.example:8080"));
    assert_eq!(request.header("proxy-authorization"), Some("Basic bWU6c2VjcmV0"));
}
