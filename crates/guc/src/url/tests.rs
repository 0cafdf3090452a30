//! Tests of the two words of the command line.

use super::*;

fn parse(text: &str) -> Result<Place> {
    Place::parse(OsStr::new(text))
}

fn at(host: &str, port: u16, login: Login, path: &str) -> Place {
    let server = Server { host: host.to_owned(), port, login };
    Place::Remote(Remote { server, path: path.into() })
}

#[test]
fn urls_are_read() {
    let login = |user: &str, password: &str| Login::Password {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    let cases = [
        ("ftp://h/a/b", at("h", 21, Login::Anonymous, "/a/b")),
        ("gsiftp://h/a", at("h", 2811, Login::Certificate, "/a")),
        ("FTP://h:99", at("h", 99, Login::Anonymous, "/")),
        ("ftp://u:p%40@[::1]:99/~/x%20y", at("::1", 99, login("u", "p@"), "~/x y")),
        ("file:///a%25", Place::Local("/a%".into())),
        ("file:/a", Place::Local("/a".into())),
        ("a/b", Place::Local("a/b".into())),
        ("./a:b", Place::Local("./a:b".into())),
        ("./-", Place::Local("./-".into())),
    ];
    for (text, want) in cases {
        assert_eq!(parse(text).unwrap(), want, "{text}");
    }
    for text in
        ["gopher://h/a", "ftp:///a", "gsiftp://u@h/a", "ftp://h:x/a", "ftp://h/%4", "file://a/b"]
    {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn what_other_commands_copy_is_refused_with_the_command() {
    for (text, remedy) in [
        ("-", "try: file:///PATH"),
        ("far:x", "try: hikyaku cp"),
        ("u@far:/x", "try: hikyaku cp"),
        ("far:/x", "try: hikyaku cp"),
        ("hikyaku://h/a", "try: hikyaku cp"),
        ("s3://b/k", "try: hikyaku cp"),
        ("gfarm:///a", "try: hikyaku cp"),
        ("sftp://h/a", "try: hikyaku cp"),
        ("https://h/a", "try: hikyaku get"),
        ("gopher://h/a", "try: ftp://"),
    ] {
        let error = parse(text).unwrap_err();
        let says = error.chain().any(|link| link.to_string().starts_with(remedy));
        assert!(says, "{text}: {error:?}");
    }
}

#[test]
fn passwords_are_not_shown() {
    assert_eq!(parse("ftp://u:secret@h/a").unwrap().to_string(), "ftp://u@h:21/a");
}
