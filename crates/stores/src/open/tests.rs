//! Locations of this machine: the root of the store and the path in it.

use super::*;
use hikyaku_store::{Access, Kind, Last};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use xtask::servers::ftp::{PlainFtp, Style};

/// A folder that is removed with the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-stores-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(path.join("d/e")).unwrap();
        fs::write(path.join("d/f"), "12345").unwrap();
        symlink("d", path.join("link")).unwrap();
        symlink("none", path.join("dangling")).unwrap();
        Self(path)
    }

    fn open(&self, name: &str) -> Result<Opened, OpenError> {
        let path = self.0.join(name);
        let location = Location::parse(path.as_os_str()).unwrap();
        open(&location, &Opening::default())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_path_of_this_machine_is_a_root_or_a_name_in_one() {
    let folder = Folder::new();
    for (name, path, kind) in [
        ("d", "", Kind::Dir),
        ("d/", "", Kind::Dir),
        ("d/e/..", "", Kind::Dir),
        ("link/", "", Kind::Dir),
        ("link", "", Kind::Dir),
        ("d/f", "f", Kind::File),
        ("link/f", "f", Kind::File),
        ("dangling", "dangling", Kind::Link),
    ] {
        let opened = folder.open(name).unwrap();
        assert_eq!(opened.path, StorePath::new(path.as_bytes()).unwrap(), "{name}");
        let found = opened.holders[0].store.look(&opened.path).unwrap();
        assert_eq!(found.kind, kind, "{name}");
    }
}

#[test]
fn a_path_that_is_missing_says_so() {
    let folder = Folder::new();
    for (name, kind) in [
        ("none", ErrorKind::NotFound),
        ("none/f", ErrorKind::NotFound),
        ("d/f/", ErrorKind::NotDir),
        ("d/f/x", ErrorKind::NotDir),
    ] {
        let error = folder.open(name).map(drop).unwrap_err();
        let shown = folder.0.join(name).display().to_string();
        assert_eq!(error.to_string(), format!("{shown}: {kind}"), "{name}");
    }
}

#[test]
fn links_that_the_user_has_named_are_followed_within_the_store() {
    let folder = Folder::new();
    symlink("../../link/f", folder.0.join("d/e/up")).unwrap();
    symlink("/etc", folder.0.join("d/away")).unwrap();
    let opened = folder.open("").unwrap();
    let resolve = |text: &str, last| {
        let path = StorePath::new(text.as_bytes()).unwrap();
        let resolved = opened.holders[0].resolve(&path, last).map_err(|error| error.kind);
        resolved.map(|path| path.to_string())
    };
    assert_eq!(resolve("link/e", Last::Followed).as_deref(), Ok("d/e"));
    assert_eq!(resolve("link", Last::Followed).as_deref(), Ok("d"));
    assert_eq!(resolve("link", Last::Kept).as_deref(), Ok("link"));
    assert_eq!(resolve("", Last::Followed).as_deref(), Ok("."));
    assert_eq!(resolve("dangling", Last::Followed), Err(ErrorKind::NotFound));
    assert_eq!(resolve("d/away/passwd", Last::Followed), Err(ErrorKind::Link));
    // A link in a subdirectory may lead up, and its target through another link.
    assert_eq!(resolve("d/e/up", Last::Followed).as_deref(), Ok("d/f"));
}

#[test]
fn a_directory_of_an_ftp_server_is_opened_by_its_address() {
    let folder = Folder::new();
    for style in [Style::Facts, Style::Bare] {
        let server = PlainFtp::start(&folder.0, style).unwrap();
        let parse =
            |path: &str| Location::parse(OsStr::new(&format!("{}{path}", server.url()))).unwrap();
        let storage = Storage::connect(&parse("/d"), &Opening::default()).unwrap();
        for (path, kind, ending) in [
            ("", Kind::Dir, Ending::Slash),
            ("/d", Kind::Dir, Ending::Name),
            ("/d/", Kind::Dir, Ending::Slash),
            ("/d//f", Kind::File, Ending::Name),
        ] {
            let opened = storage.at(&parse(path)).unwrap();
            let found = opened.holders[0].store.look(&opened.path).unwrap();
            assert_eq!((found.kind, opened.ending), (kind, ending), "{style:?} {path}");
        }
        let opened = storage.at(&parse("/d/none")).unwrap();
        let resolved = opened.holders[0].resolve(&opened.path, Last::Followed);
        assert_eq!(resolved.map_err(|error| error.kind), Err(ErrorKind::NotFound), "{style:?}");
    }
    let closed = Location::parse(OsStr::new("ftp://127.0.0.1:1/d")).unwrap();
    let error = Storage::connect(&closed, &Opening::default()).map(drop).unwrap_err();
    assert!(error.text().starts_with("ftp://127.0.0.1:1/d: cannot connect"), "{}", error.text());
    assert_eq!(error.kind(), Some(ErrorKind::Unreachable));
}

#[test]
fn the_file_of_a_web_address_is_opened_and_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let length = stream.read(&mut request).unwrap();
            let is_it = request[..length].starts_with(b"GET /d/a%20b?x=1 ");
            let answer: &[u8] = match is_it {
                true => b"HTTP/1.1 200 OK\r\nETag: \"1\"\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
                false => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            };
            stream.write_all(answer).unwrap();
        }
    });
    let web = |path: &str| Location::parse(OsStr::new(&format!("http://{address}{path}"))).unwrap();
    let opened = open(&web("/d/a b?x=1"), &Opening::default()).unwrap();
    assert_eq!(opened.path, StorePath::new(b"a b").unwrap());
    let mut bytes = [0; 9];
    let file = opened.holders[0].store.open(&opened.path, Access::Read).unwrap();
    assert_eq!(
        file.read_at(0, &mut bytes).map(|length| bytes[..length].to_vec()).unwrap(),
        b"hello"
    );
    let error = open(&web("/none"), &Opening::default()).map(drop).unwrap_err();
    assert_eq!(error.kind(), Some(ErrorKind::NotFound), "{error}");
}

#[test]
fn a_location_that_cannot_be_opened_has_a_remedy_or_a_reason() {
    let location = Location::parse(OsStr::new("hikyaku://far/../x")).unwrap();
    let error = open(&location, &Opening::default()).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Path { .. }), "{error}");
}
