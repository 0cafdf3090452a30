//! The hello is found, and nothing else is one.

use super::*;

fn hello() -> Hello {
    Hello {
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
fn it_is_found_wherever_it_begins() {
    let long = vec![b'x'; 100_000];
    let before: [&[u8]; 7] = [
        b"",
        b"Welcome!\n\x1b[1mnews\x1b[0m\n",
        b"no end of line",
        b"\r",
        b"\x01hikyaku-\x01hikyaku-serv\x01",
        b"\xff\xfe caf\xe9",
        &long,
    ];
    for chatter in before {
        let said = [chatter, &Greeting::ours().line(), &hello().line(), b"more"].concat();
        // As a pipe gives it: in pieces of any size.
        for piece in [1, 7, 8192] {
            let mut from = io::BufReader::with_capacity(piece, &said[..]);
            assert_eq!(Greeting::read(&mut from).unwrap(), Greeting::ours());
            assert_eq!(Hello::read(&mut from).unwrap(), hello());
            let mut rest = Vec::new();
            io::Read::read_to_end(&mut from, &mut rest).unwrap();
            assert_eq!(rest, b"more", "what follows is left");
        }
    }
}

#[test]
fn a_missing_program_is_named_by_the_shells_own_words() {
    let mut from = &b"motd\nsh: 1: exec: hikyaku: not found\n"[..];
    let error = Greeting::read(&mut from).unwrap_err().to_string();
    assert!(error.contains("said: sh: 1: exec: hikyaku: not found"), "{error}");
    let mut from = &b"\x1b]0;evil\x07\n"[..];
    let error = Greeting::read(&mut from).unwrap_err().to_string();
    assert!(!error.contains('\x1b'), "{error}");
}

#[test]
fn what_follows_the_greeting_is_not_repeated() {
    let echoed = [Greeting::ours().line(), b"{\"door\":{\"secret\":\"00ff\"}}\n".to_vec()].concat();
    let mut from = &echoed[..];
    assert!(Greeting::read(&mut from).is_ok());
    let error = Hello::read(&mut from).unwrap_err().to_string();
    assert!(!error.contains("00ff"), "{error}");
}

#[test]
fn other_versions_are_named() {
    let other = Greeting { protocol: 9, ..Greeting::ours() };
    let error = Greeting::read(&mut &other.line()[..]).unwrap_err();
    assert!(matches!(error, NoHello::Version { protocol: 9, .. }), "{error}");
    // What protocol 2 says first.
    let old = b"\x01hikyaku-serve {\"version\":\"0.1.0\",\"protocol\":2,\"addresses\":[]}\n";
    let error = Greeting::read(&mut &old[..]).unwrap_err();
    assert!(matches!(error, NoHello::Version { protocol: 2, .. }), "{error}");
    let line = String::from_utf8(hello().line()).unwrap().replace('{', "[");
    assert!(matches!(Hello::read(&mut line.as_bytes()), Err(NoHello::Malformed)));
}

#[test]
fn endless_chatter_ends() {
    let mut from = io::BufReader::new(io::Read::take(io::repeat(b'x'), 1 << 30));
    assert!(matches!(Greeting::read(&mut from), Err(NoHello::Chatter(_))));
}

#[test]
fn a_start_is_a_line_that_says_something() {
    let start = Start {
        protocol: PROTOCOL,
        ports: (60001, 60999),
        tuning: Tuning { rate: Some(1), ..Tuning::default() },
        key: "SHA256:x".into(),
        door: None,
    };
    let sent = [NOTHING_YET, &start.line()].concat();
    assert_eq!(Start::read(&mut &sent[..]).unwrap(), start);
    assert!(Start::read(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
    assert!(Start::read(&mut &NOTHING_YET[..]).is_err());
    assert!(Start::read(&mut io::BufReader::new(io::repeat(b'\n'))).is_err());
}

#[test]
fn the_far_side_may_say_why_it_does_not_go_on() {
    let line = [b"motd", &Hello::refusal("nothing came\u{7}")[..]].concat();
    let error = Hello::read(&mut &line[..]).unwrap_err().to_string();
    assert!(error.contains("the far side says: nothing came"), "{error}");
    assert!(!error.contains('\u{7}'));
}

#[test]
fn no_secret_is_in_an_error() {
    // A hello whose mark was eaten by somebody.
    let line = &hello().line()[1..];
    let error = Greeting::read(&mut &line[..]).unwrap_err().to_string();
    assert!(error.contains("a line with a secret") && !error.contains("00ff"), "{error}");
}
