//! Lists of URLs.

use crate::server::{Reply, Server};
use crate::{Folder, Line, get, got, payload, sha256};
use clap::Parser;
use hikyaku_console::{ExitCode, Interrupt};
use hikyaku_web_get::run;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;
use std::thread;
use std::time::Duration;

const ETAG: &str = "\"one\"";

fn server() -> Server {
    Server::start(|request| match request.path() {
        "/missing" => Reply::status(404),
        path => Reply::honest(request, path.as_bytes(), ETAG),
    })
}

#[test]
fn the_files_of_a_list_are_fetched_with_their_options() {
    let (folder, server) = (Folder::new(), server());
    fs::create_dir(folder.path("d")).unwrap();
    let url = |path| server.url(path);
    let list = format!(
        "# a list\n\n{}\r\n{}\t{}\n  out=two\n{}\n dir={}\n checksum=sha-256={}\n{}",
        url("/1"),
        url("/missing"),
        url("/2"),
        url("/3"),
        folder.path("d").display(),
        sha256(b"/3"),
        url("/4")
    );
    fs::write(folder.path("list"), list).unwrap();
    got(&folder, "-d DIR -i DIR/list");
    assert_eq!(folder.names(), ["1", "4", "d", "list", "two"]);
    let cases = [("1", "/1"), ("two", "/2"), ("d/3", "/3"), ("4", "/4")];
    for (name, content) in cases {
        assert_eq!(fs::read_to_string(folder.path(name)).unwrap(), content, "{name}");
    }
}

#[test]
fn a_list_may_have_metalink_files() {
    let (folder, server) = (Folder::new(), server());
    let described = |name: &str| {
        format!("<file name=\"{name}\"><url>{}</url></file>", server.url(&format!("/{name}")))
    };
    let write = |name: &str, files: &[&str]| {
        let files: String = files.iter().map(|file| described(file)).collect();
        let text =
            format!("<metalink xmlns=\"urn:ietf:params:xml:ns:metalink\">{files}</metalink>");
        fs::write(folder.path(name), text).unwrap();
        folder.path(name).display().to_string()
    };
    let (one, two) = (write("1.meta4", &["1"]), write("2.meta4", &["2", "3"]));
    let list = folder.path("list");
    fs::write(&list, format!("{one}\n out=renamed\n{two}\n")).unwrap();
    got(&folder, "-d DIR -i DIR/list");
    for (name, content) in [("renamed", "/1"), ("2", "/2"), ("3", "/3")] {
        assert_eq!(fs::read_to_string(folder.path(name)).unwrap(), content);
    }
    // The options of a file cannot be those of two.
    fs::write(&list, format!("{two}\n dir={}\n", folder.0.display())).unwrap();
    let (code, error) = get(&folder, "-f -d DIR -i DIR/list");
    assert_ne!(code, ExitCode::Success);
    assert!(error.contains("line 1") && error.contains("one file"), "{error}");
}

#[test]
fn a_wrong_entry_is_named_and_the_others_are_fetched() {
    let (folder, server) = (Folder::new(), server());
    let wrong = ["s3://bucket/x", "http://me:top-secret@x y/"];
    let options = [
        " header=A: b",
        " checksum=md5=00",
        " out=../x",
        &format!(" checksum=sha-256={}", sha256(b"no")),
    ];
    let mut list = wrong.map(|line| format!("{line}\n")).concat();
    for (at, option) in options.iter().enumerate() {
        list.push_str(&format!("{}\n{option}\n", server.url(&format!("/w{at}"))));
    }
    list.push_str(&server.url("/right"));
    fs::write(folder.path("list"), list).unwrap();
    let (code, error) = get(&folder, "-d DIR -i DIR/list");
    assert_ne!(code, ExitCode::Success);
    assert!(error.contains("6 of 7 files") && error.contains("line 1"), "{error}");
    assert!(!error.contains("top-secret"), "{error}");
    assert_eq!(folder.names(), ["list", "right"]);
    fs::write(folder.path("list"), "# nothing\n").unwrap();
    let (code, error) = get(&folder, "-d DIR -i DIR/list");
    assert_ne!(code, ExitCode::Success);
    assert!(error.contains("names no files"), "{error}");
}

#[test]
fn a_list_that_comes_slowly_begins_at_once() {
    let (folder, server) = (Folder::new(), server());
    let fifo = folder.path("list");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let dir = folder.0.display().to_string();
    let words = ["get", "-q", "-d", &dir, "-i", fifo.to_str().unwrap()];
    let args = Line::try_parse_from(words).unwrap().args;
    let interrupt = Interrupt::default();
    thread::scope(|scope| {
        let running = scope.spawn(|| run(&args, &interrupt));
        let mut writer = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        for name in ["1", "2"] {
            writeln!(writer, "{}", server.url(&format!("/{name}"))).unwrap();
            // The next line comes only after this file.
            while !folder.path(name).exists() {
                assert!(!running.is_finished());
                thread::sleep(Duration::from_millis(10));
            }
        }
        drop(writer);
        assert_eq!(running.join().unwrap().unwrap(), ExitCode::Success);
    });
    assert_eq!(folder.names(), ["1", "2", "list"]);
}

#[test]
fn a_list_has_no_place_for_options_of_one_file() {
    for words in ["-o x", "--mirror http://a.org/", "--sha256 00"] {
        let words = format!("get -i list {words}");
        assert!(Line::try_parse_from(words.split(' ')).is_err(), "{words}");
    }
    assert!(Line::try_parse_from(["get"]).is_err(), "neither a URL nor a list");
}

#[test]
fn many_small_files_of_one_server_share_a_few_connections() {
    let (folder, content) = (Folder::new(), payload(1, 20_000));
    let data = content.clone();
    let server = Server::start(move |request| match request.path() {
        path if path.starts_with("/to/") => {
            Reply::status(302).with("Location", &path.replace("/to/", "/")).with("X", "y")
        }
        _ => Reply::honest(request, &data, ETAG),
    });
    let paths = (0..60).map(|at| if at % 3 == 0 { format!("/to/{at}") } else { format!("/{at}") });
    let list: String = paths.map(|path| server.url(&path) + "\n").collect();
    fs::write(folder.path("list"), list).unwrap();
    got(&folder, "-j 3 -d DIR -i DIR/list");
    assert_eq!(folder.names().len(), 61);
    let connections = server.connections();
    assert!(connections <= 3, "{connections} connections for 60 files, three at a time");
    assert_eq!(server.requests().len(), 60 + 20, "one for each file and each redirect");
}

#[test]
fn large_files_after_each_other_share_their_connections() {
    let (folder, content) = (Folder::new(), payload(2, 12 << 20));
    let data = content.clone();
    let server = Server::start(move |request| Reply::honest(request, &data, ETAG));
    let urls: Vec<String> = (0..4).map(|at| server.url(&format!("/{at}"))).collect();
    got(&folder, &format!("-j 1 -n 3 -d DIR {}", urls.join(" ")));
    for name in folder.names() {
        assert!(fs::read(folder.path(&name)).unwrap() == content, "{name}");
    }
    // A connection that is left in the middle of a range is closed: at most one at each end of a file.
    let connections = server.connections();
    assert!(connections < 4 * 3, "{connections}");
}
