//! Tests of URLs.

use super::*;

#[test]
fn a_url_has_its_parts() {
    let url = Url::parse("HTTPS://me:a%40b@Example.org:8443/a b/%7e?x=|#part").unwrap();
    assert_eq!(url.origin.host_and_port(), "example.org:8443");
    assert_eq!(url.target, "/a%20b/%7e?x=%7C");
    let login = url.login.clone().unwrap();
    assert_eq!((login.user.as_str(), login.password.as_str()), ("me", "a@b"));
    assert_eq!(url.to_string(), "https://example.org:8443/a%20b/%7e?...");
    assert_eq!(url.file_name(), b"~");
    let url = Url::parse("http://[::1]?q").unwrap();
    assert_eq!((url.origin.authority().as_str(), url.target.as_str()), ("[::1]", "/?q"));
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    for text in [
        "example.org/a",
        "file:///etc/passwd",
        "ftp://example.org/",
        "http:///a",
        "http://a:0/",
        "http://a:99999/",
        "http://a:+80/",
        "http://a b/",
        "http://a\\@b/",
        "http://a\r\nX: y/",
        "http://[::1/",
        "http://[::1]x/",
        "http://b\u{fc}cher.example/",
    ] {
        assert!(Url::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_location_is_relative_to_the_url_that_told_it() {
    let base = Url::parse("https://me:x@a.org/b/c/d?e=f").unwrap();
    let cases = [
        ("http://c.org/x", "http://c.org/x"),
        ("//c.org/x", "https://c.org/x"),
        ("/x/../y", "https://a.org/y"),
        ("../../../x", "https://a.org/x"),
        ("x/./y/..", "https://a.org/b/c/x/"),
        ("", "https://a.org/b/c/d?..."),
        ("?g", "https://a.org/b/c/d?..."),
        ("x\r\ny", "https://a.org/b/c/x%0D%0Ay"),
    ];
    for (location, want) in cases {
        let url = base.join(location).unwrap();
        assert_eq!((url.to_string().as_str(), url.login), (want, None), "{location:?}");
    }
    for location in ["file:///etc/passwd", "javascript:x", "gopher://a.org/"] {
        assert!(base.join(location).is_err(), "{location}");
    }
}

#[test]
fn a_path_below_a_directory_is_encoded() {
    let dir = |text: &str| Url::parse(text).unwrap().dir();
    assert_eq!(dir("http://a.org").target, "/");
    assert_eq!(dir("http://a.org/x/y/?z=/1").target, "/x/y/");
    let dir = dir("http://me@a.org/x%20/y?z");
    assert_eq!((dir.target.as_str(), dir.login.is_some()), ("/x%20/", true));
    let below = dir.below("a b/c%d?e#\u{e9}".as_bytes());
    assert_eq!(below.target, "/x%20/a%20b/c%25d%3Fe%23%C3%A9");
}
