//! Patterns, and what they allow.

use super::*;
use alloc::string::ToString;

fn list(patterns: &[&str]) -> AllowList {
    patterns.iter().map(|text| text.parse::<Pattern>().unwrap()).collect()
}

/// Whether a flow to `host` and `port` is connected to `address`.
fn permits(patterns: &[&str], host: &str, address: &str, port: u16) -> bool {
    let host = Host::parse(host).unwrap();
    list(patterns).permits(&host, address.parse().unwrap(), port)
}

#[test]
fn a_pattern_is_written_as_it_was_read() {
    for text in [
        "web.example:80",
        "*.example:1-1024",
        "*:443",
        "10.0.0.0/8:*",
        "10.1.2.3:22",
        "[2001:db8::]/32:80",
        "[::1]:80",
        "*:*",
    ] {
        assert_eq!(text.parse::<Pattern>().unwrap().to_string(), text);
    }
    for text in [
        "",
        "web",
        "web:",
        "web:0",
        "web:70000",
        "web:9-3",
        "web:-",
        ":80",
        "::1:80",
        "a*b:80",
        "*x:80",
        "10.0.0.0/33:80",
        "10.0.0/8:80",
        "web/8:80",
        "*.10.0.0.1:80",
        "a b:80",
    ] {
        assert!(text.parse::<Pattern>().is_err(), "{text}");
    }
}

#[test]
fn what_no_pattern_names_is_refused() {
    assert!(!permits(&[], "web.example", "192.0.2.1", 80));
    for (pattern, host, address, port, wanted) in [
        ("web.example:80", "web.example", "192.0.2.1", 80, true),
        ("web.example:80", "WEB.Example.", "192.0.2.1", 80, true),
        ("web.example:80", "web.example", "192.0.2.1", 81, false),
        ("web.example:80", "xweb.example", "192.0.2.1", 80, false),
        ("web.example:80", "192.0.2.1", "192.0.2.1", 80, false),
        ("*.example:80", "a.b.example", "192.0.2.1", 80, true),
        ("*.example:80", "example", "192.0.2.1", 80, false),
        ("*.example:80", "badexample", "192.0.2.1", 80, false),
        ("192.0.2.0/24:80-90", "anything", "192.0.2.255", 85, true),
        ("192.0.2.0/24:80-90", "anything", "::ffff:192.0.2.1", 85, true),
        ("192.0.2.0/24:80-90", "anything", "192.0.3.0", 85, false),
        ("192.0.2.0/24:80-90", "anything", "192.0.2.1", 91, false),
        ("0.0.0.0/0:80", "anything", "192.0.2.1", 80, true),
        ("0.0.0.0/0:80", "anything", "2001:db8::1", 80, false),
        ("[2001:db8::]/32:*", "anything", "2001:db8:ffff::1", 1, true),
        ("[2001:db8::]/32:*", "anything", "2001:db9::1", 1, false),
        ("*:443", "anything", "192.0.2.1", 443, true),
    ] {
        assert_eq!(permits(&[pattern], host, address, port), wanted, "{pattern} {host} {address}");
    }
    assert!(permits(&["a:1", "b:2"], "b", "192.0.2.1", 2));
}

#[test]
fn loopback_is_allowed_only_by_its_name() {
    for (pattern, host, address, wanted) in [
        ("127.0.0.1:80", "127.0.0.1", "127.0.0.1", true),
        ("127.0.0.1:80", "name", "127.0.0.1", true),
        ("127.0.0.1:80", "127.0.0.2", "127.0.0.2", false),
        ("[::1]:80", "::1", "::1", true),
        ("localhost:80", "localhost", "::1", true),
        ("*:80", "localhost", "127.0.0.1", false),
        ("*:80", "name", "::ffff:127.0.0.1", false),
        ("*:80", "name", "64:ff9b::127.0.0.1", false),
        ("0.0.0.0/0:80", "127.0.0.1", "127.0.0.1", false),
        ("web:80", "web", "127.0.0.1", false),
        ("*.example:80", "web.example", "127.0.0.1", false),
    ] {
        assert_eq!(permits(&[pattern], host, address, 80), wanted, "{pattern} {host} {address}");
    }
    // That another pattern names loopback does not help.
    assert!(!permits(&["*:80", "127.0.0.1:80"], "127.0.0.2", "127.0.0.2", 80));
}
