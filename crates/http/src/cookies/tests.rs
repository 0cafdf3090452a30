//! Cookies of files and of answers, and the URLs that get them.

use super::*;
use std::time::Duration;

const FILE: &str = "# Netscape HTTP Cookie File\n\n\
    .example.org\tTRUE\t/\tFALSE\t0\tall\t1\n\
    www.example.org\tFALSE\t/dir\tFALSE\t4000000000\thost\t2\n\
    #HttpOnly_.example.org\tTRUE\t/dir/\tTRUE\t0\tsafe\t3\n\
    old.org\tFALSE\t/\tFALSE\t1000\told\t4\n\
    empty.org\tFALSE\t/\tFALSE\t0\tnothing\t\n\
    short.org\tFALSE\t/\tFALSE\t0\tshort\n\
    part.org\tFALSE\t/\tFALSE\t4000000000.5\tpart\t5\n\
    part.org\tFALSE\t/\tFALSE\t-1\tsession\t6\n";

fn now() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000)
}

fn url(text: &str) -> Url {
    Url::parse(text).unwrap()
}

fn sent(cookies: &Cookies, to: &str) -> String {
    cookies.of(&url(to), now()).unwrap_or_default()
}

/// The cookies of a request for the second URL after answers from the first ones.
fn after(file: &str, answers: &[(&str, &str)], to: &str) -> String {
    let mut cookies = Cookies::parse(file, now()).unwrap();
    answers.iter().for_each(|(from, value)| cookies.set(&url(from), value, now()));
    sent(&cookies, to)
}

#[test]
fn cookies_of_a_file_go_to_the_hosts_paths_and_schemes_that_they_are_for() {
    let cookies = Cookies::parse(FILE, now()).unwrap();
    let cases = [
        ("http://example.org/", "all=1"),
        ("http://EXAMPLE.org:8080/dirx?/dir/", "all=1"),
        ("http://www.example.org/dir", "host=2; all=1"),
        ("https://www.example.org/dir/a", "safe=3; host=2; all=1"),
        ("http://www.example.org/dir/a", "host=2; all=1"),
        ("http://www.example.org/dirx", "all=1"),
        ("https://a.www.example.org/dir/a", "safe=3; all=1"),
        ("https://badexample.org/dir/a", ""),
        ("https://org/dir/a", ""),
        ("http://old.org/", ""),
        ("http://empty.org/", "nothing="),
        ("http://short.org/", "short="),
        ("http://part.org/", "part=5; session=6"),
    ];
    for (to, want) in cases {
        assert_eq!(sent(&cookies, to), want, "{to}");
    }
    assert_eq!(format!("{cookies:?}"), "7 cookies", "no secrets");
}

#[test]
fn a_line_of_another_format_is_named() {
    for line in [
        "a=b; c=d",
        "[{\"domain\":\"a.org\"}]",
        "a.org TRUE / FALSE 0 a b",
        "a.org\tyes\t/\tFALSE\t0\ta\tb",
        "a.org\tTRUE\tx\tFALSE\t0\ta\tb",
        "a.org\tTRUE\t/\tFALSE\tsoon\ta\tb",
        "a.org\tTRUE\t/\tFALSE\t0\ta\tb\rX: y",
        "a.org\tTRUE\t/\tFALSE\t0\t\tb",
    ] {
        assert_eq!(Cookies::parse(&format!("# x\n{line}\n"), now()).err(), Some(2), "{line}");
    }
}

#[test]
fn cookies_of_answers_are_for_their_host_unless_the_file_knows_the_domain() {
    let set = "a=1; Domain=.Example.org; Path=/";
    let from = "http://www.example.org/x/y";
    assert_eq!(after("", &[(from, set)], "http://www.example.org/"), "a=1");
    assert_eq!(after("", &[(from, set)], "http://example.org/"), "");
    assert_eq!(after("", &[(from, set)], "http://b.www.example.org/"), "");
    let known = "example.org\tTRUE\t/none\tFALSE\t0\tb\t2\n";
    assert_eq!(after(known, &[(from, set)], "http://data.example.org/"), "a=1");
    let below = "a=1; Domain=www.example.org; Path=/";
    assert_eq!(after(known, &[(from, below)], "http://b.www.example.org/"), "a=1");
    assert_eq!(after(known, &[(from, "a=1; Domain=org; Path=/")], "http://x.org/"), "");
    assert_eq!(after(known, &[(from, "a=1; Domain=other.org")], from), "", "of another host");
    assert_eq!(after("", &[("http://10.0.0.1/", "a=1; Domain=0.0.1")], "http://10.0.0.1/"), "");
    assert_eq!(
        after("", &[("http://10.0.0.1/", "a=1; Domain=10.0.0.1")], "http://10.0.0.1/"),
        "a=1"
    );
}

#[test]
fn a_cookie_without_a_path_is_for_the_directory_of_its_answer() {
    let answers = [("http://a.org/x/y?z/", "a=1"), ("http://a.org/x/y", "b=2; path=q")];
    assert_eq!(after("", &answers, "http://a.org/x"), "a=1; b=2");
    assert_eq!(after("", &answers, "http://a.org/x/w/"), "a=1; b=2");
    assert_eq!(after("", &answers, "http://a.org/"), "");
}

#[test]
fn cookies_end_and_are_replaced() {
    let from = "http://a.org/";
    let set = |values: &[&str]| {
        let answers: Vec<_> = values.iter().map(|value| (from, *value)).collect();
        after("a.org\tFALSE\t/\tFALSE\t0\tf\t0\n", &answers, from)
    };
    assert_eq!(set(&["a=1", "a=2"]), "f=0; a=2");
    assert_eq!(set(&["a=1", "a=; Max-Age=0"]), "f=0");
    assert_eq!(set(&["a=1", "a=; Max-Age=-5"]), "f=0");
    assert_eq!(set(&["a=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT"]), "f=0");
    assert_eq!(set(&["a=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"]), "f=0; a=1");
    assert_eq!(set(&["a=1; Max-Age=99999999999999999999999"]), "f=0; a=1");
    assert_eq!(set(&["f=; max-age=0"]), "");
    let mut cookies = Cookies::default();
    for value in ["a=; Max-Age=0", "a=1", "a=; Max-Age=0"] {
        cookies.set(&url(from), value, now());
    }
    assert!(cookies.all.is_empty());
    for value in ["", "a", "=1", "a=1\r\nX: y", &format!("a={}", "x".repeat(4096))] {
        assert_eq!(set(&[value]), "f=0", "{value}");
    }
}

#[test]
fn secure_cookies_are_neither_sent_nor_set_nor_replaced_by_http() {
    let (http, https) = ("http://a.org/", "https://a.org/");
    let safe = (https, "a=1; Secure");
    assert_eq!(after("", &[safe], http), "");
    assert_eq!(after("", &[safe], https), "a=1");
    assert_eq!(after("", &[(http, "a=1; Secure")], https), "");
    assert_eq!(after("", &[safe, (http, "a=2")], https), "a=1");
    assert_eq!(after("", &[safe, (http, "b=2")], https), "a=1; b=2");
    // A cookie that no server gets together with the secure one.
    assert_eq!(after("", &[("https://b.org/", "a=1; Secure"), (http, "a=2")], http), "a=2");
    let below = ("https://a.org/x/y", "a=1; Secure; Path=/x");
    assert_eq!(after("", &[below, (http, "a=2; Path=/")], http), "a=2");
    assert_eq!(after("", &[(https, "__Secure-a=1")], https), "");
    assert_eq!(after("", &[(https, "__Host-a=1; Secure; Path=/; Domain=a.org")], https), "");
    assert_eq!(after("", &[(https, "__Host-a=1; Secure; Path=/")], https), "__Host-a=1");
}

#[test]
fn cookies_of_answers_are_bounded_and_those_of_the_file_stay() {
    let mut cookies = Cookies::parse("a.org\tFALSE\t/\tFALSE\t0\tf\t0\n", now()).unwrap();
    for at in 0..2000 {
        cookies.set(&url("http://a.org/"), &format!("n{at}=1"), now());
        cookies.set(&url(&format!("http://h{at}.org/")), "a=1", now());
    }
    assert!(cookies.all.len() <= OF_ANSWERS_MAX + 1, "{}", cookies.all.len());
    let sent = sent(&cookies, "http://a.org/");
    assert!(sent.starts_with("f=0; ") && sent.ends_with("; n1999=1"), "{sent}");
    assert_eq!(sent.split("; ").count(), OF_HOST_MAX + 1);
}
