//! scp's own reading of what is written.

use super::*;
use hikyaku_gridftp::{Login, Server};

fn parse(text: &str) -> Result<Location, LocationError> {
    Location::parse(OsStr::new(text))
}

fn remote(user: Option<&str>, host: &str, port: Option<u16>, path: &str) -> Location {
    Location::Remote(Remote {
        login: Destination { user: user.map(str::to_owned), host: host.to_owned(), port },
        path: path.as_bytes().to_vec(),
    })
}

#[test]
fn remote_paths() {
    let cases = [
        ("host:", remote(None, "host", None, "")),
        ("host:a/b", remote(None, "host", None, "a/b")),
        ("user@host:/data/", remote(Some("user"), "host", None, "/data/")),
        ("user@realm@host:~x", remote(Some("user@realm"), "host", None, "~x")),
        ("host:a:b", remote(None, "host", None, "a:b")),
        ("[::1]:a", remote(None, "::1", None, "a")),
        ("me@[fe80::1%eth0]:/a", remote(Some("me"), "fe80::1%eth0", None, "/a")),
        ("scp://host", remote(None, "host", None, "")),
        ("scp://host/a", remote(None, "host", None, "a")),
        ("scp://host//a", remote(None, "host", None, "/a")),
        ("scp://me@host:2222/a%20b", remote(Some("me"), "host", Some(2222), "a b")),
        ("scp://me@[::1]:22/x", remote(Some("me"), "::1", Some(22), "x")),
        ("DOMAIN\\me@host:a", remote(Some("DOMAIN\\me"), "host", None, "a")),
        ("svc$@host:a", remote(Some("svc$"), "host", None, "a")),
        ("scp://dom\\u@host/a", remote(Some("dom\\u"), "host", None, "a")),
        ("host:run*/[ab].dat", remote(None, "host", None, "run*/[ab].dat")),
    ];
    for (text, location) in cases {
        assert_eq!(parse(text).as_ref(), Ok(&location), "{text}");
    }
}

#[test]
fn modules_of_rsync_daemons_are_refused_by_name() {
    for text in ["h::m", "u@h::m/a", "[::1]::m", "rsync://h/m", "RSYNC://u@h:873/m", "h::"] {
        let refused = parse(text);
        let is_it = matches!(&refused, Err(error @ LocationError::RsyncDaemon(_)) if error.remedy().is_some());
        assert!(is_it, "{text}: {refused:?}");
    }
    for text in ["./h::m", "h:./:m", "h:a::b", "rsync:/m"] {
        assert!(parse(text).is_ok(), "{text}");
    }
}

#[test]
fn addresses_of_ftp_servers() {
    let ftp = |login: Login, port, (root, path): (&str, &str), ending| {
        let server = Server { host: "h".to_owned(), port, login };
        let (root, path) = (root.as_bytes().to_vec(), path.as_bytes().to_vec());
        Location::Ftp(FtpPath { server, root, path, ending })
    };
    let password = |user: &str, password: &str| Login::Password {
        user: user.to_owned(),
        password: password.to_owned(),
    };
    let cases = [
        ("ftp://h", ftp(Login::Anonymous, 21, ("/", ""), Ending::Slash), "ftp://h/"),
        ("FTP://h/a//b", ftp(Login::Anonymous, 21, ("/", "a/b"), Ending::Name), "ftp://h/a/b"),
        (
            "ftp://me:p%40ss@h:2121/a%20b/",
            ftp(password("me", "p@ss"), 2121, ("/", "a b"), Ending::Slash),
            "ftp://me@h:2121/a b",
        ),
        (
            "ftp://me@h/~/x/.",
            ftp(password("me", ""), 21, ("~", "x"), Ending::Contents),
            "ftp://me@h/~/x",
        ),
        (
            "gsiftp://h/~you",
            ftp(Login::Certificate, 2811, ("~you", ""), Ending::Slash),
            "gsiftp://h/~you/",
        ),
    ];
    for (text, location, shown) in cases {
        assert_eq!(parse(text).as_ref(), Ok(&location), "{text}");
        assert_eq!(location.to_string(), shown);
    }
    for (text, why) in [
        ("ftp://", BadFtp::Host),
        ("ftp:///a", BadFtp::Host),
        ("ftp://[::1/a", BadFtp::Host),
        ("ftp://u:p@h:0/a", BadFtp::Port),
        ("ftp://u:p@h:99999/a", BadFtp::Port),
        ("gsiftp://u:p@h/a", BadFtp::User),
        ("ftp://u:p@h/a%2", BadFtp::Escape),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!(error, LocationError::BadFtp(why), "{text}");
        assert!(!error.to_string().contains("u:p"), "{error}");
    }
}

#[test]
fn locations_of_one_storage_are_beside_each_other() {
    for (one, other, is_beside) in [
        ("a", "/b", true),
        ("h:a", "h:b", true),
        ("h:a", "me@h:a", false),
        ("h:a", "a", false),
        ("hikyaku://h,i/a", "hikyaku://h,i/b", true),
        ("hikyaku://h/a", "hikyaku://i/a", false),
        ("s3://b/a", "s3://b/c", true),
        ("s3://b/a", "s3://c/a", false),
        ("ftp://h/a", "ftp://h/b", true),
        ("ftp://h/a", "ftp://h/~/a", false),
        ("ftp://h/a", "ftp://me@h/a", false),
        ("http://h/a", "https://i/b", true),
    ] {
        assert_eq!(
            parse(one).unwrap().is_beside(&parse(other).unwrap()),
            is_beside,
            "{one} {other}"
        );
    }
}

#[test]
fn addresses_with_a_scheme_are_no_names_of_hosts() {
    for text in ["http://h/a", "HTTPS://h/a?b=c"] {
        assert!(matches!(parse(text), Ok(Location::Web(_))), "{text}");
    }
    for text in ["http:///a", "http://h:0/a", "https://a b/c"] {
        let error = parse(text).unwrap_err();
        assert!(matches!(error, LocationError::BadUrl(_)), "{text}: {error:?}");
    }
    let here = |path: &str| Ok(Location::Local(PathBuf::from(path)));
    for (text, wanted) in [
        ("file:///a%20b", here("/a b")),
        ("file://localhost/a", here("/a")),
        ("sftp://me@h:2222/a", Ok(remote(Some("me"), "h", Some(2222), "a"))),
        ("http:a", Ok(remote(None, "http", None, "a"))),
        ("./http://h/a", here("./http://h/a")),
    ] {
        assert_eq!(parse(text), wanted, "{text}");
    }
    assert!(matches!(parse("file://h/a"), Err(LocationError::NotHere(_))));
}

#[test]
fn buckets() {
    let s3 = |bucket: &str, path: &str, ending| {
        Location::S3(S3Path { bucket: bucket.to_owned(), path: path.as_bytes().to_vec(), ending })
    };
    let cases = [
        ("s3://b", s3("b", "", Ending::Slash)),
        ("s3://b/", s3("b", "", Ending::Slash)),
        ("s3://b/a/c", s3("b", "a/c", Ending::Name)),
        ("s3://b/a/c/", s3("b", "a/c", Ending::Slash)),
        ("s3://b/a/c/.", s3("b", "a/c", Ending::Contents)),
        ("s3://b/a%20b:c", s3("b", "a%20b:c", Ending::Name)),
    ];
    for (text, location) in cases {
        assert_eq!(parse(text).as_ref(), Ok(&location), "{text}");
    }
    for text in ["s3://", "s3:///a"] {
        assert!(matches!(parse(text), Err(LocationError::BadS3(_))), "{text}");
    }
    for text in ["s3://b//a", "s3://b/a//c", "s3://b/a//"] {
        assert!(matches!(parse(text), Err(LocationError::EmptyName(_))), "{text}");
    }
    assert_eq!(parse("s3:a"), Ok(remote(None, "s3", None, "a")));
}

#[test]
fn local_paths() {
    for text in ["a", "/a", "./a:b", "/a:b", "dir/host:a", ":a", "-", "a[b]", "~/a"] {
        assert_eq!(parse(text), Ok(Location::Local(PathBuf::from(text))), "{text}");
    }
}

#[test]
fn what_ssh_could_misread_is_refused() {
    for text in ["-oProxyCommand=x:a", "-l@host:a", "me@-host:a", "scp://-h/a"] {
        assert!(
            matches!(parse(text), Err(LocationError::Destination(BadDestination::Option(_)))),
            "{text}"
        );
    }
    for text in [
        "a b:c",
        "a;b:c",
        "a$(b):c",
        "me\n@host:a",
        "a`b`:c",
        "me\\@host:a",
        "a -b@host:a",
        "a'b@host:a",
        "h\\x:a",
        "h$:a",
    ] {
        assert!(
            matches!(parse(text), Err(LocationError::Destination(BadDestination::Name(_)))),
            "{text}"
        );
    }
    assert!(matches!(parse("me@:a"), Err(LocationError::NoHost(_))));
    assert!(matches!(parse("scp://:22/a"), Err(LocationError::NoHost(_))));
    assert!(matches!(
        parse("scp://host:0/a"),
        Err(LocationError::Destination(BadDestination::Port(_)))
    ));
    assert!(matches!(
        parse("scp://host:x/a"),
        Err(LocationError::Destination(BadDestination::Port(_)))
    ));
    assert!(matches!(parse("scp://host/a%2"), Err(LocationError::BadEscape(_))));
}

#[test]
fn they_are_shown_without_harm() {
    let location = parse("host:a\x1b[2J").unwrap();
    assert_eq!(location.to_string(), "host:a\\u{1b}[2J");
}

#[test]
fn a_cluster_of_the_settings_stands_for_its_daemons() {
    let text = "[cluster.lab]\nport = 5300\nhosts = [\"a\", \"b\"]\n";
    let settings = Settings::parse(text, &hikyaku_reach::settings::keys()).unwrap();
    let of = |text: &str| Location::named(text.as_ref(), &settings).unwrap().to_string();
    assert_eq!(of("lab:run7/x"), "hikyaku://a:5300,b:5300/run7/x");
    for plain in ["me@lab:run7", "other:run7", "/lab", "gfarm:///lab", "s3://lab/x"] {
        assert_eq!(of(plain), plain);
    }
}
