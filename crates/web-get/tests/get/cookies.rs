//! Cookies of a file and of answers.

use crate::server::{Reply, Server};
use crate::{Folder, get, got};
use hikyaku_console::ExitCode;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Writes a file of cookies that only the user may read.
fn write(folder: &Folder, text: &str) {
    let path = folder.path("cookies.txt");
    fs::write(&path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
}

const JAR: &str = "# Netscape HTTP Cookie File\n\
    127.0.0.1\tFALSE\t/dir\tFALSE\t0\tpart\t1\n\
    #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tall\ttop-secret\n\
    127.0.0.1\tFALSE\t/\tTRUE\t0\tsafe\t3\n\
    other.example\tTRUE\t/\tFALSE\t0\tother\t4\n\
    localhost\tFALSE\t/\tFALSE\t0\tlocal\t5\n";

#[test]
fn cookies_of_a_file_go_to_their_hosts_and_follow_redirects() {
    let folder = Folder::new();
    write(&folder, JAR);
    let other = Server::start(|_| Reply::whole(b"x"));
    let to = format!("http://localhost:{}/x", other.port);
    let server = Server::start(move |_| Reply::status(302).with("Location", &to));
    got(&folder, &format!("--cookies DIR/cookies.txt -o DIR/a {}", server.url("/dir/a")));
    let cookies = |server: &Server| server.requests()[0].header("cookie").map(str::to_owned);
    assert_eq!(cookies(&server).as_deref(), Some("part=1; all=top-secret"));
    assert_eq!(cookies(&other).as_deref(), Some("local=5"));
}

#[test]
fn a_login_by_redirects_and_cookies_succeeds() {
    let folder = Folder::new();
    // The first server sends its clients to another one, which sends them back with a ticket. The ticket becomes a cookie.
    let ports: std::sync::Arc<std::sync::OnceLock<u16>> = std::sync::Arc::default();
    let data_port = ports.clone();
    let login = Server::start(move |request| match request.header("cookie") {
        Some("session=ours") => {
            let to = format!("http://127.0.0.1:{}/a?ticket", data_port.get().unwrap());
            Reply::status(302).with("Location", &to)
        }
        _ => {
            let set = "session=ours; Path=/; HttpOnly; SameSite=Lax";
            Reply::status(302).with("Set-Cookie", set).with("Location", "/again")
        }
    });
    let to = format!("http://localhost:{}/login", login.port);
    let server = Server::start(move |request| match (request.header("cookie"), request.path()) {
        (Some("first=1; seen=yes"), "/a") => Reply::whole(b"the file"),
        (_, "/a?ticket") => Reply::status(302)
            .with("Set-Cookie", "seen=yes; Expires=Wed, 21-Oct-2099 07:28:00 GMT")
            .with("Location", "/a"),
        _ => Reply::status(302).with("Set-Cookie", "first=1").with("Location", &to),
    });
    ports.set(server.port).unwrap();
    got(&folder, &format!("-o DIR/a {}", server.url("/a")));
    assert_eq!(fs::read(folder.path("a")).unwrap(), b"the file");
}

#[test]
fn a_mirror_that_another_one_names_gets_no_cookies_by_http() {
    let folder = Folder::new();
    write(&folder, JAR);
    let server = Server::start(|_| Reply::whole(b"x"));
    let list = format!(
        "<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\"><file name=\"a\"><url>{}</url></file></metalink>",
        server.url("/a")
    );
    fs::write(folder.path("list.meta4"), list).unwrap();
    got(&folder, "--cookies DIR/cookies.txt -o DIR/a DIR/list.meta4");
    assert_eq!(server.requests()[0].header("cookie"), None);
}

#[test]
fn cookies_and_a_cookie_header_are_one_header() {
    let folder = Folder::new();
    write(&folder, JAR);
    let server = Server::start(|_| Reply::whole(b"x"));
    let line = "--load-cookies DIR/cookies.txt -H Cookie:{}mine=1 -o DIR/a";
    got(&folder, &format!("{line} {}", server.url("/a")));
    assert_eq!(server.requests()[0].header("cookie"), Some("mine=1; all=top-secret"));
}

#[test]
fn a_file_that_is_no_list_of_cookies_or_is_open_to_others_is_refused() {
    let folder = Folder::new();
    let server = Server::start(|_| Reply::whole(b"x"));
    let line = format!("--cookies DIR/cookies.txt -o DIR/a {}", server.url("/a"));
    let cases = [
        ("{\"cookies\": []}\n", "line 1"),
        ("SQLite format 3\0...", "yt-dlp"),
        ("127.0.0.1\tFALSE\t/\tFALSE\t0\ttop-secret\r\n\nwrong", "line 3"),
    ];
    for (text, want) in cases {
        write(&folder, text);
        let (code, error) = get(&folder, &line);
        assert_ne!(code, ExitCode::Success);
        assert!(error.contains(want) && !error.contains("top-secret"), "{error}");
    }
    write(&folder, JAR);
    fs::set_permissions(folder.path("cookies.txt"), Permissions::from_mode(0o644)).unwrap();
    let (_, error) = get(&folder, &line);
    assert!(error.contains("chmod 600"), "{error}");
    assert_eq!(server.requests().len(), 0, "nothing was sent");
}
