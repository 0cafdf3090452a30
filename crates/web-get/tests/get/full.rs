//! Servers that serve two connections at once, and refuse others.

use crate::server::{Body, Reply, Request, Server};
use crate::{Folder, check, got, payload};
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const ETAG: &str = "\"full\"";
const MIB: usize = 1 << 20;
/// Refused connections in a minute, at most.
const REFUSED_MAX: usize = 6;

/// How a server refuses a connection.
type Refusal = fn() -> Reply;

fn busy() -> Reply {
    Reply::status(503).with("Retry-After", "0")
}

fn too_many() -> Reply {
    Reply::status(429)
}

fn forbidden() -> Reply {
    Reply::status(403)
}

fn closed() -> Reply {
    Reply::status(200).body(|_| Body::Nothing)
}

/// A server of these files that refuses a connection while two others are open, and the number of refusals.
fn server_of_two(files: Vec<Vec<u8>>, refuse: Refusal) -> (Server, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&refused);
    let server = Server::start(move |request: &Request| {
        if request.others >= 2 {
            count.fetch_add(1, Ordering::Relaxed);
            // The bytes of those that are granted come first.
            std::thread::sleep(Duration::from_millis(200));
            return refuse();
        }
        let file = request.path().trim_start_matches('/').parse().unwrap_or(0);
        Reply::honest(request, &files[file], ETAG).body(|bytes| Body::Paced(bytes, 256 << 10))
    });
    (server, refused)
}

fn check_refusals(refused: &AtomicUsize) {
    let refused = refused.load(Ordering::Relaxed);
    assert!((1..=REFUSED_MAX).contains(&refused), "{refused}");
}

#[test]
fn a_server_that_has_enough_connections_keeps_those_that_it_has() {
    let refusals: [Refusal; 4] = [busy, too_many, forbidden, closed];
    for (refuse, words) in refusals.into_iter().flat_map(|one| [(one, "-n 8"), (one, "")]) {
        let (folder, content) = (Folder::new(), payload(11, 12 * MIB));
        let (server, refused) = server_of_two(vec![content.clone()], refuse);
        got(&folder, &format!("{words} --retries 0 -o DIR/a {}", server.url("/0")));
        check(&folder, "a", &content);
        check_refusals(&refused);
    }
}

#[test]
fn files_at_once_share_the_connections_that_their_server_grants() {
    let refusals: [Refusal; 3] = [busy, too_many, closed];
    for refuse in refusals {
        let folder = Folder::new();
        let files: Vec<Vec<u8>> = (0..6).map(|at| payload(20 + at, 6 * MIB)).collect();
        let (server, refused) = server_of_two(files.clone(), refuse);
        let urls: Vec<String> = (0..6).map(|at| server.url(&format!("/{at}"))).collect();
        got(&folder, &format!("-j 4 --retries 0 -d DIR {}", urls.join(" ")));
        for (at, content) in files.iter().enumerate() {
            assert!(fs::read(folder.path(&at.to_string())).unwrap() == *content, "{at}");
        }
        check_refusals(&refused);
    }
}

#[test]
fn mirrors_on_one_host_share_the_connections_that_it_grants() {
    let (folder, content) = (Folder::new(), payload(31, 12 * MIB));
    let (server, refused) = server_of_two(vec![content.clone(); 3], busy);
    let urls: Vec<String> = (0..3).map(|at| server.url(&format!("/{at}"))).collect();
    got(&folder, &format!("--retries 0 -o DIR/a {}", urls.join(" ")));
    check(&folder, "a", &content);
    check_refusals(&refused);
}

#[test]
fn connections_that_are_never_answered_are_not_asked_for_again() {
    let (folder, content) = (Folder::new(), payload(41, 48 * MIB));
    let (refused, data) = (Arc::new(AtomicUsize::new(0)), content.clone());
    let count = Arc::clone(&refused);
    let server = Server::start(move |request: &Request| {
        if request.others >= 2 {
            count.fetch_add(1, Ordering::Relaxed);
            std::thread::sleep(Duration::from_secs(60));
        }
        // 8 s by two connections.
        Reply::honest(request, &data, ETAG).body(|bytes| Body::Paced(bytes, 32 << 10))
    });
    got(&folder, &format!("-o DIR/a {}", server.url("/0")));
    check(&folder, "a", &content);
    check_refusals(&refused);
}
