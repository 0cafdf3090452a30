//! Addresses in replies.

use super::*;

fn reply(text: &str) -> Reply {
    Reply { code: 227, lines: vec![text.as_bytes().to_vec()] }
}

#[test]
fn passive_replies_are_read() {
    let cases = [
        ("Entering Passive Mode (127,0,0,1,200,11)", Some("127.0.0.1:51211")),
        ("=10,1,2,3,0,21", Some("10.1.2.3:21")),
        ("Entering Passive Mode (127,0,0,1,200)", None),
        ("Entering Passive Mode (127,0,0,1,256,1)", None),
        ("Entering Passive Mode (127,0,0,1,0,0)", None),
        ("no address", None),
        ("", None),
    ];
    for (text, want) in cases {
        let want = want.map(|address| address.parse().unwrap());
        assert_eq!(passive(&reply(text)), want, "{text}");
    }
}

#[test]
fn extended_passive_replies_are_read() {
    let cases = [
        ("Entering Extended Passive Mode (|||6446|)", Some(6446)),
        ("(!!!80!)", Some(80)),
        ("(|||0|)", None),
        ("(|||70000|)", None),
        ("(||6446|)", None),
        ("(|||6446", None),
        ("(", None),
    ];
    for (text, want) in cases {
        assert_eq!(extended_passive(&reply(text)), want, "{text}");
    }
}

#[test]
fn addresses_are_told_by_the_command_of_their_family() {
    assert_eq!(port_command("127.0.0.1:53603".parse().unwrap()), "PORT 127,0,0,1,209,99");
    assert_eq!(port_command("[::1]:80".parse().unwrap()), "EPRT |2|::1|80|");
}
