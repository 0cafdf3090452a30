//! The hello is found, and nothing else is one.

use super::*;

fn hello() -> Hello {
    Hello {
        version: "0.1.0".into(),
        protocol: PROTOCOL,
        addresses: vec!["192.0.2.7".parse().unwrap(), "2001:db8::7".parse().unwrap()],
        door: Invitation {
            port: 60001,
            key: "SHA256:x".into(),
            secret: "00ff".into(),
            window: 1 << 20,
        },
    }
}

#[test]
fn chatter_before_it_is_skipped() {
    let chatty = format!("Welcome!\n\x1b[1mnews\x1b[0m\n{}more", hello().line());
    let mut from = chatty.as_bytes();
    assert_eq!(Hello::read(&mut from).unwrap(), hello());
    assert_eq!(from, b"more", "what follows is left");
}

#[test]
fn a_missing_program_is_named_by_the_shells_own_words() {
    let mut from = &b"motd\nsh: 1: exec: hikyaku: not found\n"[..];
    let error = Hello::read(&mut from).unwrap_err().to_string();
    assert!(error.contains("hikyaku: not found"), "{error}");
    let mut from = &b"\x1b]0;evil\x07\n"[..];
    let error = Hello::read(&mut from).unwrap_err().to_string();
    assert!(!error.contains('\x1b'), "{error}");
}

#[test]
fn other_versions_are_named() {
    let line = hello().line().replace(&format!("\"protocol\":{PROTOCOL}"), "\"protocol\":9");
    let error = Hello::read(&mut line.as_bytes()).unwrap_err();
    assert!(matches!(error, NoHello::Version { protocol: 9, .. }), "{error}");
    let line = hello().line().replace('{', "[");
    assert!(matches!(Hello::read(&mut line.as_bytes()), Err(NoHello::Malformed)));
}

#[test]
fn endless_chatter_ends() {
    let mut from = io::BufReader::new(io::Read::take(io::repeat(b'x'), 1 << 30));
    assert!(matches!(Hello::read(&mut from), Err(NoHello::Nothing(_))));
}

#[test]
fn a_start_is_a_line() {
    let start = Start {
        protocol: PROTOCOL,
        ports: (60001, 60999),
        tuning: Tuning { rate: Some(1), ..Tuning::default() },
        key: "SHA256:x".into(),
        door: None,
    };
    assert_eq!(Start::read(&mut start.line().as_bytes()).unwrap(), start);
    assert!(Start::read(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
}
