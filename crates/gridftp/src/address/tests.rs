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

#[test]
fn a_striped_server_tells_an_address_for_each_node() {
    let of = |text: &str| {
        let mut reader = crate::reply::ReplyReader::new();
        reader.handle_bytes(text.as_bytes());
        striped_passive(&reader.poll_reply().unwrap().unwrap())
    };
    let told = of("229-Striped\r\n 127,0,0,3,183,117\r\n 127,0,0,2,143,99\r\n229 End\r\n");
    let want = ["127.0.0.3:46965", "127.0.0.2:36707"].map(|address| address.parse().unwrap());
    assert_eq!(told, Some(want.to_vec()));
    assert_eq!(striped_port_command(&want).unwrap(), "SPOR 127,0,0,3,183,117 127,0,0,2,143,99");
    assert_eq!(of("229 Entering (|||5|)\r\n"), None);
    assert_eq!(of("229-Striped\r\n nowhere\r\n229 End\r\n"), None);
    let many = " 127,0,0,3,183,117\r\n".repeat(STRIPES_MAX + 1);
    assert_eq!(of(&format!("229-Striped\r\n{many}229 End\r\n")), None);
}
