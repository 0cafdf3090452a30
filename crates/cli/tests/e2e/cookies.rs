//! Cookies of a file in the commands that read files of web servers.

use crate::common::daemon::Client;
use crate::common::web::Web;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

/// Cookies of 127.0.0.1 and of localhost.
const JAR: &str = "# Netscape HTTP Cookie File\n\
    #HttpOnly_127.0.0.1\tFALSE\t/\tFALSE\t0\tours\ttop-secret\n\
    localhost\tFALSE\t/\tFALSE\t0\tlocal\t2\n";

/// The cookies of the requests since the last call, each line once.
fn cookies(web: &Web) -> Vec<String> {
    let heads = web.heads().concat();
    let mut lines: Vec<String> =
        heads.lines().filter_map(|line| line.strip_prefix("Cookie: ")).map(str::to_owned).collect();
    lines.dedup();
    lines
}

#[test]
fn cookies_go_to_their_host_and_not_to_another_one_after_a_redirect() {
    let client = Client::new("cookies");
    fs::write(client.at("jar"), JAR).unwrap();
    fs::set_permissions(client.at("jar"), Permissions::from_mode(0o600)).unwrap();
    let jar = client.at("jar").display().to_string();
    let other = Web::start(&[("a", b"content".to_vec())]);
    let first = Web::redirecting(&format!("http://localhost:{}/a", other.port));
    let copy = client.at("copy").display().to_string();
    let url = first.url("a");
    for words in [
        ["cp", "--cookies", &jar, &url, &copy].as_slice(),
        &["ls", "-l", "--cookies", &jar, &url],
        &["get", "--cookies", &jar, "-f", "-o", &copy, &url],
    ] {
        let output = client.run(words);
        assert!(output.status.success(), "{words:?}: {output:?}");
        assert_eq!(cookies(&first), ["ours=top-secret"], "{words:?}");
        assert_eq!(cookies(&other), ["local=2"], "{words:?}");
    }
    assert_eq!(fs::read(&copy).unwrap(), b"content");
    // Without the option none is sent.
    assert!(client.run(&["cp", &url, &copy]).status.success());
    assert_eq!((cookies(&first), cookies(&other)), (Vec::new(), Vec::new()));
}

#[test]
fn a_file_of_cookies_that_others_may_read_is_refused_before_a_request() {
    let client = Client::new("cookies-open");
    fs::write(client.at("jar"), JAR).unwrap();
    fs::set_permissions(client.at("jar"), Permissions::from_mode(0o644)).unwrap();
    let jar = client.at("jar").display().to_string();
    let web = Web::start(&[("a", b"content".to_vec())]);
    let (url, copy) = (web.url("a"), client.at("copy").display().to_string());
    for words in
        [["cp", "--cookies", &jar, &url, &copy].as_slice(), &["ls", "--cookies", &jar, &url]]
    {
        let output = client.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains("chmod 600"), "{words:?}: {said}");
        assert!(!said.contains("top-secret"), "{words:?}: {said}");
        assert_eq!(web.connections(), 0, "{words:?}");
    }
}
