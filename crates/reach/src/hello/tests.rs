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

fn start() -> Start {
    Start {
        version: "0.1.0".to_owned(),
        speaks: Speaks::ours(),
        service: "copy".to_owned(),
        ports: (60001, 60999),
        tuning: Tuning { rate: Some(1), ..Tuning::default() },
        key: "SHA256:x".into(),
        door: None,
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

/// An end that speaks these versions.
fn speaks(min: u32, max: u32) -> Speaks {
    let protocol = Versions::new(min, max).unwrap();
    Speaks { protocol, features: ["x".to_owned()].into() }
}

#[test]
fn a_greeting_of_another_version_is_refused_by_name() {
    // What protocols 2 and 4 say first, and what a later one may.
    for (said, wanted) in [
        (
            "{\"version\":\"0.1.0\",\"protocol\":2,\"addresses\":[]}",
            "0.1.0, which speaks protocol 2, not 6",
        ),
        ("{\"version\":\"0.2.0\",\"protocol\":4}", "0.2.0, which speaks protocol 4, not 6"),
        (
            "{\"version\":\"3.0\",\"protocol\":[7,9],\"features\":[\"y\"],\"more\":{}}",
            "3.0, which speaks protocol 7 to 9, not 6",
        ),
    ] {
        let line = [MARK, said.as_bytes(), b"\n"].concat();
        let error = Greeting::read(&mut &line[..]).unwrap_err();
        assert!(matches!(error, NoHello::Version { .. }), "{said}: {error}");
        assert!(error.to_string().ends_with(wanted), "{said}: {error}");
    }
    let line = String::from_utf8(hello().line()).unwrap().replace('{', "[");
    assert!(matches!(Hello::read(&mut line.as_bytes()), Err(NoHello::Malformed)));
}

#[test]
fn a_greeting_whose_versions_overlap_is_answered() {
    let theirs = Greeting { version: "1.0".to_owned(), speaks: speaks(6, 9) };
    for (ours, wanted) in [(speaks(5, 7), Some(7)), (speaks(9, 12), Some(9)), (speaks(4, 5), None)]
    {
        let read = Greeting::read_as(&ours, &mut &theirs.line()[..]);
        assert_eq!(read.ok().map(|(_, agreed)| agreed.protocol), wanted, "{ours:?}");
    }
}

#[test]
fn a_start_of_another_version_is_refused_by_name() {
    for (said, wanted) in [
        ("{\"protocol\":4,\"ports\":[1,2]}", "hikyaku, which speaks protocol 4, not 6"),
        (
            "{\"version\":\"9\\u0007\",\"protocol\":[7,8]}",
            "hikyaku 9\\u{7}, which speaks protocol 7 to 8, not 6",
        ),
    ] {
        let error = Start::read(&mut format!("{said}\n").as_bytes()).unwrap_err();
        assert!(matches!(error, NoStart::Version { .. }), "{said}: {error}");
        assert!(error.to_string().ends_with(wanted), "{said}: {error}");
    }
    let theirs = Start { speaks: speaks(5, 7), ..start() };
    let (read, agreed) = Start::read_as(&speaks(6, 9), &mut &theirs.line()[..]).unwrap();
    assert_eq!((&read, agreed.protocol), (&theirs, 7));
    assert!(Start::read_as(&speaks(8, 9), &mut &theirs.line()[..]).is_err());
}

#[test]
fn a_line_without_end_is_refused() {
    let speaks = |features: usize| {
        let features = (0..features).map(|number| number.to_string()).collect();
        Speaks { features, ..Speaks::ours() }
    };
    for (features, is_read) in [(1000, true), (10_000, false)] {
        let greeting = Greeting { speaks: speaks(features), ..Greeting::ours() };
        assert_eq!(Greeting::read(&mut &greeting.line()[..]).is_ok(), is_read, "{features}");
        let start = Start { speaks: speaks(features), ..start() };
        assert_eq!(Start::read(&mut &start.line()[..]).is_ok(), is_read, "{features}");
    }
}

#[test]
fn endless_chatter_ends() {
    let mut from = io::BufReader::new(io::Read::take(io::repeat(b'x'), 1 << 30));
    assert!(matches!(Greeting::read(&mut from), Err(NoHello::Chatter(_))));
}

#[test]
fn a_start_is_a_line_that_says_something() {
    let start = start();
    let sent = [NOTHING_YET, &start.line()].concat();
    assert_eq!(Start::read(&mut &sent[..]).unwrap(), start);
    assert!(Start::read(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
    assert!(Start::read(&mut &NOTHING_YET[..]).is_err());
    assert!(Start::read(&mut io::BufReader::new(io::repeat(b'\n'))).is_err());
}

#[test]
fn the_far_side_may_say_why_it_does_not_go_on() {
    let line = [b"motd", &Hello::refusal("nothing came\u{7}", None)[..]].concat();
    let error = Hello::read(&mut &line[..]).unwrap_err().to_string();
    assert!(error.contains("the far side says: nothing came"), "{error}");
    assert!(!error.contains('\u{7}'));
}

#[test]
fn the_far_side_may_say_what_to_do() {
    for (said, wanted) in
        [(None, None), (Some("try: this\u{7}"), Some("try: this")), (Some("rm -r /"), None)]
    {
        let error = Hello::read(&mut &Hello::refusal("no", said)[..]).unwrap_err();
        let NoHello::Refused { text, remedy } = error else { panic!("{error}") };
        assert_eq!(text, "no");
        assert_eq!(remedy.is_some(), wanted.is_some(), "{remedy:?}");
        assert!(remedy.is_none_or(|remedy| remedy.starts_with(wanted.unwrap())));
    }
}

#[test]
fn no_secret_is_in_an_error() {
    // A hello whose mark was eaten by somebody.
    let line = &hello().line()[1..];
    let error = Greeting::read(&mut &line[..]).unwrap_err().to_string();
    assert!(error.contains("a line with a secret") && !error.contains("00ff"), "{error}");
}
