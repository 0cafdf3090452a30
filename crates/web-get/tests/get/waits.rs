//! Servers that make this end wait.

use crate::server::{Body, Reply, Server};
use crate::{Folder, Line, get};
use clap::Parser;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_web_get::{exit_code, run};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn a_closed_port_is_told_at_once_with_its_number() {
    let folder = Folder::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let begin = Instant::now();
    let (url, target) = (format!("http://127.0.0.1:{port}/"), folder.path("a"));
    let words = ["get", "-q", "--retry-wait", "60", &url, "-o", target.to_str().unwrap()];
    let error = run(&Line::try_parse_from(words).unwrap().args, &Interrupt::default()).unwrap_err();
    assert_eq!(ExitCode::of(&error, &[exit_code]), ExitCode::MayPass, "{error:#}");
    let error = format!("{error:#}");
    let text = error.to_lowercase();
    assert!(text.contains(&port.to_string()) && text.contains("refused"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(50), "no other attempt");
}

#[test]
fn a_server_that_wants_a_long_wait_is_told_and_given_up() {
    let folder = Folder::new();
    let server = Server::start(|_| Reply::status(503).with("Retry-After", "100000"));
    let (code, error) = get(&folder, &format!("-o DIR/a {}", server.url("/a")));
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert!(error.contains("100000 s"), "{error}");
    assert_eq!(server.requests().len(), 1);
}

/// A server that sends these bytes over and over to each client. Returns its port.
fn endless(first: &'static [u8], again: &'static [u8], pause: Duration) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 4096]);
            thread::spawn(move || {
                let mut next = first;
                while stream.write_all(next).is_ok() {
                    thread::sleep(pause);
                    next = again;
                }
            });
        }
    });
    port
}

#[test]
fn a_head_that_never_ends_is_given_up() {
    let folder = Folder::new();
    let port = endless(b"HTTP/1.1 200 OK\r\nX: ", b"x", Duration::from_millis(100));
    let line = format!("--timeout 500ms --retries 0 -o DIR/a http://127.0.0.1:{port}/");
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert!(error.contains("head"), "{error}");
}

#[test]
fn interim_answers_without_end_are_given_up() {
    let folder = Folder::new();
    let interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    let port = endless(interim, interim, Duration::ZERO);
    let line = format!("--timeout 500ms --retries 0 -o DIR/a http://127.0.0.1:{port}/");
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert!(error.contains("head"), "{error}");
}

#[test]
fn a_body_that_stalls_is_given_up() {
    let folder = Folder::new();
    let server = Server::start(|_| Reply::whole(b"here").body(|bytes| Body::Stalled(bytes, 2)));
    let line = format!("--timeout 500ms --retries 0 -o DIR/a {}", server.url("/a"));
    let (code, error) = get(&folder, &line);
    assert_eq!(code, ExitCode::MayPass, "{error}");
    assert!(error.contains("sent nothing"), "{error}");
}

#[test]
fn a_server_that_answers_after_a_wait_is_waited_for() {
    let folder = Folder::new();
    let server = Server::start(|request| match request.number {
        0 => Reply::status(503).with("Retry-After", "1"),
        _ => Reply::whole(b"here").body(Body::Whole),
    });
    assert_eq!(get(&folder, &format!("-o DIR/a {}", server.url("/a"))).0, ExitCode::Success);
}
