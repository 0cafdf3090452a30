//! Connections that hold up the end.

use crate::server::{Body, Reply, Server};
use crate::{Folder, check, got, payload};

const MIB: usize = 1 << 20;

#[test]
fn a_connection_that_stalls_does_not_hold_up_the_end() {
    let (folder, content) = (Folder::new(), payload(1, 16 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let reply = Reply::honest(request, &data, "\"a\"");
        if request.number == 2 { reply.body(|bytes| Body::Stalled(bytes, 100_000)) } else { reply }
    });
    // Nothing else would end within the server's minute.
    got(&folder, &format!("-n 3 --timeout 50 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    let stalled = server.requests()[2].range(content.len()).unwrap();
    let took_over = |request: &crate::server::Request| {
        let range = request.range(content.len()).unwrap();
        request.number > 2 && range.start >= stalled.start && range.end == stalled.end
    };
    assert!(server.requests().iter().any(took_over));
}

#[test]
fn the_end_of_a_slow_connection_is_taken_over() {
    let (folder, content) = (Folder::new(), payload(2, 24 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let reply = Reply::honest(request, &data, "\"a\"");
        let step = if request.connection == 1 { 8 << 10 } else { 512 << 10 };
        reply.body(|bytes| Body::Paced(bytes, step))
    });
    got(&folder, &format!("-n 3 -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    let of_slow = server.requests().into_iter().filter(|request| request.connection == 1);
    let slow: Vec<_> = of_slow.map(|request| request.range(content.len()).unwrap()).collect();
    let is_shared = server.requests().iter().any(|request| {
        let range = request.range(content.len()).unwrap();
        let is_within =
            |slow: &std::ops::Range<usize>| range.start >= slow.start && range.end == slow.end;
        request.connection != 1 && slow.iter().any(is_within)
    });
    assert!(is_shared, "{slow:?}");
}
