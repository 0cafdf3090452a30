//! The name of a download, and the file that had it before.

use crate::server::{Reply, Server};
use crate::{Folder, check, get, got, payload};
use hikyaku_console::ExitCode;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

const ETAG: &str = "\"one\"";

fn server(content: &[u8]) -> Server {
    let data = content.to_vec();
    Server::start(move |request| Reply::honest(request, &data, ETAG))
}

#[test]
fn a_file_that_is_replaced_keeps_its_mode() {
    let content = payload(1, 5_000_000);
    let server = server(&content);
    for mode in [0o600, 0o440, 0o755] {
        let folder = Folder::new();
        fs::write(folder.path("a"), "old").unwrap();
        fs::set_permissions(folder.path("a"), Permissions::from_mode(mode)).unwrap();
        got(&folder, &format!("--force -d DIR {}", server.url("/a")));
        check(&folder, "a", &content);
        assert_eq!(fs::metadata(folder.path("a")).unwrap().mode() & 0o7777, mode);
    }
}

#[test]
fn the_file_behind_a_link_that_the_user_names_is_meant() {
    let content = payload(2, 1_000);
    let server = server(&content);
    let folder = Folder::new();
    fs::create_dir(folder.path("d")).unwrap();
    fs::write(folder.path("d/behind"), "old").unwrap();
    symlink("d/behind", folder.path("a")).unwrap();
    let line = format!("-o DIR/a {}", server.url("/a"));
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert!(error.contains("behind") && error.contains("exists"), "{error}");
    got(&folder, &format!("--force {line}"));
    assert!(folder.path("a").is_symlink());
    assert_eq!(fs::read(folder.path("d/behind")).unwrap(), content);
    assert_eq!(folder.names(), ["a", "d"]);
}

#[test]
fn a_link_that_has_the_servers_name_is_not_followed_and_is_replaced_only_if_that_is_wanted() {
    let content = payload(3, 1_000);
    let server = server(&content);
    for (target, behind) in [("-d DIR", "victim"), ("-d DIR", "nothing"), ("-o DIR/a", "nothing")] {
        let folder = Folder::new();
        let outside = Folder::new();
        fs::write(outside.path("victim"), "old").unwrap();
        symlink(outside.path(behind), folder.path("a")).unwrap();
        let line = format!("{target} {}", server.url("/a"));
        let (code, error) = get(&folder, &line);
        assert_eq!(code, ExitCode::WillFail, "{error}");
        assert!(error.contains("a exists and is a symbolic link"), "{error}");
        assert!(folder.path("a").is_symlink());
        got(&folder, &format!("--force {line}"));
        check(&folder, "a", &content);
        assert!(!folder.path("a").is_symlink());
        assert_eq!(outside.names(), ["victim"]);
        assert_eq!(fs::read(outside.path("victim")).unwrap(), b"old");
    }
}

#[test]
fn a_long_name_is_kept_whole() {
    let content = payload(4, 3_000_000);
    let server = server(&content);
    let folder = Folder::new();
    let (one, other) = ("n".repeat(254) + "1", "n".repeat(254) + "2");
    let urls = [&one, &other].map(|name| server.url(&format!("/{name}"))).join(" ");
    got(&folder, &format!("-d DIR {urls}"));
    assert_eq!(folder.names(), [one, other]);
}
