//! Downloads that were interrupted.

use crate::server::{Body, Reply, Server};
use crate::{Folder, check, exists, get, got, payload, sha256};
use hikyaku_console::ExitCode;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A server that breaks in its first stage and is another one in its second.
fn two_stages(
    first: impl Fn(&crate::server::Request) -> Reply + Send + Sync + 'static,
    second: impl Fn(&crate::server::Request) -> Reply + Send + Sync + 'static,
) -> (Server, Arc<AtomicUsize>) {
    let stage = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&stage);
    let server = Server::start(move |request| match seen.load(Ordering::Relaxed) {
        0 => first(request),
        _ => second(request),
    });
    (server, stage)
}

/// Gives the first part and a half of the second, and then nothing.
fn breaking(content: Vec<u8>, etag: &'static str) -> impl Fn(&crate::server::Request) -> Reply {
    move |request| match request.number {
        0 => Reply::honest(request, &content, etag),
        1 => Reply::honest(request, &content, etag).body(|bytes| Body::Cut(bytes, MIB)),
        _ => Reply::status(404),
    }
}

/// Runs both stages and returns the bytes that the second one sent. The first one leaves so many unfinished files.
fn stages(
    folder: &Folder,
    (server, stage): (Server, Arc<AtomicUsize>),
    (words, left): (&str, usize),
) -> usize {
    let line = format!("-n 1 {words} -o DIR/a {}", server.url("/a"));
    let (code, error) = get(folder, &line);
    assert_ne!(code, ExitCode::Success, "{error}");
    assert!(!exists(&folder.path("a")));
    let names = folder.names();
    assert_eq!(names.len(), left, "unfinished files: {names:?}");
    stage.store(1, Ordering::Relaxed);
    let before = server.sent.load(Ordering::Relaxed);
    got(folder, &line);
    server.sent.load(Ordering::Relaxed) - before
}

#[test]
fn the_same_command_fetches_only_what_is_missing() {
    let (folder, content) = (Folder::new(), payload(1, 20 * MIB));
    let data = content.clone();
    let server = two_stages(breaking(content.clone(), "\"a\""), move |request| {
        Reply::honest(request, &data, "\"a\"")
    });
    let sent = stages(&folder, server, ("", 1));
    check(&folder, "a", &content);
    // The first part is asked for again, to see what the file is; its bytes are not read to the end.
    assert!(sent <= 20 * MIB - MIB, "{sent}");
}

#[test]
fn another_version_is_begun_anew() {
    let (folder, content) = (Folder::new(), payload(2, 20 * MIB));
    let data = content.clone();
    let server = two_stages(breaking(payload(3, 20 * MIB), "\"a\""), move |request| {
        Reply::honest(request, &data, "\"b\"")
    });
    let sent = stages(&folder, server, ("", 1));
    check(&folder, "a", &content);
    assert!(sent >= content.len());
}

#[test]
fn a_weak_version_is_not_enough() {
    let (folder, content) = (Folder::new(), payload(4, 20 * MIB));
    let data = content.clone();
    let server = two_stages(breaking(payload(5, 20 * MIB), "W/\"a\""), move |request| {
        Reply::honest(request, &data, "W/\"a\"")
    });
    stages(&folder, server, ("", 0));
    check(&folder, "a", &content);
}

#[test]
fn with_a_digest_the_version_does_not_matter() {
    let (folder, content) = (Folder::new(), payload(6, 20 * MIB));
    let data = content.clone();
    let server = two_stages(breaking(content.clone(), "W/\"a\""), move |request| {
        Reply::honest(request, &data, "W/\"b\"")
    });
    let sent = stages(&folder, server, (&format!("--sha256 {}", sha256(&content)), 1));
    check(&folder, "a", &content);
    assert!(sent <= 20 * MIB - MIB, "{sent}");
}

/// The environment variable with the command line of [`a_download_in_a_process_of_its_own`].
const LINE: &str = "HIKYAKU_GET_TEST_LINE";

/// What the next test starts and kills. Without its variable it does nothing.
#[test]
fn a_download_in_a_process_of_its_own() {
    let Ok(line) = std::env::var(LINE) else { return };
    got(&Folder::new(), &line);
}

#[test]
fn a_killed_process_is_continued() {
    let (folder, content) = (Folder::new(), payload(7, 40 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        Reply::honest(request, &data, "\"a\"").body(|bytes| Body::Paced(bytes, 32 << 10))
    });
    let line = format!("-n 2 -o {} {}", folder.path("a").display(), server.url("/a"));
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "resuming::a_download_in_a_process_of_its_own"]);
    let mut child = command.env(LINE, &line).stdout(Stdio::null()).spawn().unwrap();
    // Some of it is on its way.
    while server.sent.load(Ordering::Relaxed) < 20 * MIB {
        assert!(child.try_wait().unwrap().is_none(), "the download ended before it was killed");
        thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!exists(&folder.path("a")));
    // The server goes on writing into the dead connections for a moment; the new requests are told apart by number.
    let before = server.requests().len();
    got(&folder, &line);
    check(&folder, "a", &content);
    let again = server.requests().split_off(before);
    let asked = |request: &crate::server::Request| request.range(content.len()).unwrap().len();
    // The first one asks what the file is. Some ends are taken over, and asked for twice.
    let asked: usize = again.iter().skip(1).map(asked).sum();
    assert!(asked + 4 * MIB <= content.len(), "{asked} asked for");
    let starts_at_zero =
        |request: &crate::server::Request| request.range(1).is_some_and(|range| range.start == 0);
    assert_eq!(again.iter().filter(|request| starts_at_zero(request)).count(), 1);
}
