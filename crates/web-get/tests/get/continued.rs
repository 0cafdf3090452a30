//! Files that other programs have left unfinished.

use crate::server::{Body, Reply, Request, Server};
use crate::{Folder, check, get, got, payload, sha256};
use hikyaku_console::ExitCode;
use std::fs;
use std::ops::Range;
use std::sync::atomic::Ordering;

const MIB: usize = 1 << 20;
const ETAG: &str = "\"one\"";

fn server(content: &[u8]) -> Server {
    let data = content.to_vec();
    Server::start(move |request| Reply::honest(request, &data, ETAG))
}

/// The bytes of the answers to all requests after the first, which is only begun.
fn asked(server: &Server, size: usize) -> usize {
    let range = |request: &Request| request.range(size).unwrap().len();
    server.requests().iter().skip(1).map(range).sum()
}

/// A file of which only these parts are written.
fn write_parts(folder: &Folder, name: &str, content: &[u8], parts: &[Range<usize>]) {
    let mut bytes = vec![0; parts.last().map_or(0, |part| part.end)];
    parts.iter().for_each(|part| bytes[part.clone()].copy_from_slice(&content[part.clone()]));
    fs::write(folder.path(name), bytes).unwrap();
}

#[test]
fn the_beginning_of_a_file_is_continued() {
    let size = 20 * MIB + 77;
    let content = payload(1, size);
    // The names of wget and curl, of Firefox, and of Chromium.
    for name in ["a", "a.part", "a.crdownload"] {
        let (folder, server) = (Folder::new(), server(&content));
        write_parts(&folder, name, &content, std::slice::from_ref(&(0..15 * MIB + 999)));
        if name != "a" {
            fs::write(folder.path("a"), "").unwrap();
        }
        got(&folder, &format!("-c -n 2 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &content);
        // Four segments are compared, and the last five and a bit are missing; an end may be taken over.
        let asked = asked(&server, size);
        assert!(asked < 13 * MIB, "{name}: {asked}");
    }
}

#[test]
fn a_complete_file_is_compared_and_kept() {
    let content = payload(2, 10 * MIB);
    let (folder, server) = (Folder::new(), server(&content));
    fs::write(folder.path("a"), &content).unwrap();
    got(&folder, &format!("-c --sha256 {} -o DIR/a {}", sha256(&content), server.url("/a")));
    check(&folder, "a", &content);
    assert!(asked(&server, content.len()) <= 4 * MIB);
    // The answer that names the version stays unread, and one connection carries the comparison.
    assert_eq!(server.connections(), 2);
}

#[test]
fn a_comparison_goes_on_over_another_connection() {
    let (folder, content) = (Folder::new(), payload(9, 10 * MIB));
    let data = content.clone();
    let server = Server::start(move |request| {
        let reply = Reply::honest(request, &data, ETAG);
        if request.number == 1 { reply.body(|bytes| Body::Cut(bytes, 70_000)) } else { reply }
    });
    fs::write(folder.path("a"), &content).unwrap();
    got(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn holes_and_bytes_behind_the_end_are_no_parts() {
    let size = 16 * MIB;
    let content = payload(10, size);
    let all_pieces = {
        let mut aria2 = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        aria2.extend((MIB as u32).to_be_bytes());
        aria2.extend((size as u64).to_be_bytes());
        aria2.extend([0; 8]);
        aria2.extend(2_u32.to_be_bytes());
        aria2.extend([0xff; 2]);
        aria2
    };
    // The file has 7 MiB, once with a hole behind them, and once with a control file that claims all.
    for (length, control) in [(12 * MIB, None), (7 * MIB, Some(all_pieces))] {
        let (folder, server) = (Folder::new(), server(&content));
        fs::write(folder.path("a"), &content[..7 * MIB]).unwrap();
        let file = fs::OpenOptions::new().write(true).open(folder.path("a")).unwrap();
        file.set_len(length as u64).unwrap();
        if let Some(control) = control {
            fs::write(folder.path("a.aria2"), control).unwrap();
        }
        got(&folder, &format!("-c -n 1 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &content);
    }
}

#[test]
fn only_a_regular_file_is_continued() {
    let content = payload(11, 12 * MIB);
    let (folder, with_link) = (Folder::new(), server(&content));
    fs::write(folder.path("mine"), "mine").unwrap();
    std::os::unix::fs::symlink("mine", folder.path("a")).unwrap();
    fs::write(folder.path("a.part"), &content[..6 * MIB]).unwrap();
    let (code, error) = get(&folder, &format!("-c -o DIR/a {}", with_link.url("/a")));
    assert_eq!(code, ExitCode::WillFail, "{error}");
    assert_eq!(fs::read(folder.path("a")).unwrap(), b"mine");
    assert_eq!(folder.names(), ["a", "a.part", "mine"]);
    let (folder, with_dir) = (Folder::new(), server(&content));
    fs::create_dir(folder.path("a.part")).unwrap();
    got(&folder, &format!("-c -o DIR/a {}", with_dir.url("/a")));
    assert!(fs::read(folder.path("a")).unwrap() == content);
}

#[test]
fn parts_of_aria2c_and_axel_are_continued() {
    let size = 16 * MIB + 5;
    let content = payload(3, size);
    let parts = [0..3 * MIB, 6 * MIB..11 * MIB, 16 * MIB..size];
    let mut aria2 = vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    aria2.extend((MIB as u32).to_be_bytes());
    aria2.extend((size as u64).to_be_bytes());
    aria2.extend([0; 8]);
    aria2.extend(3_u32.to_be_bytes());
    aria2.extend([0b1110_0011, 0b1110_0000, 0b1000_0000, 0, 0, 0, 0]);
    let mut axel = 2_u16.to_ne_bytes().to_vec();
    let done: usize = parts.iter().map(|part| part.end - part.start).sum();
    for number in [done, 3 * MIB, 6 * MIB, 11 * MIB, 16 * MIB] {
        axel.extend((number as u64).to_ne_bytes());
    }
    for (end, control) in [("aria2", aria2), ("st", axel)] {
        let (folder, server) = (Folder::new(), server(&content));
        write_parts(&folder, "a", &content, &parts);
        fs::write(folder.path(&format!("a.{end}")), control).unwrap();
        got(&folder, &format!("-c -n 1 -o DIR/a {}", server.url("/a")));
        check(&folder, "a", &content);
        let asked = asked(&server, size);
        assert!(asked < 14 * MIB, "{end}: {asked}");
    }
}

#[test]
fn what_is_no_part_of_the_file_stays_as_it_is() {
    let content = payload(4, 12 * MIB);
    let mut other = content[..9 * MIB].to_vec();
    other[9 * MIB - 5] ^= 1;
    let cases: [(&[u8], &str); 5] = [
        (&other, "byte 9437179 differs"),
        (b"a text of mine", "byte 0 differs"),
        (&[&content[..], b"x"].concat(), "12582913 bytes"),
        (&content[..MIB], ""),
        (b"", ""),
    ];
    for (bytes, want) in cases {
        let (folder, server) = (Folder::new(), server(&content));
        fs::write(folder.path("a"), bytes).unwrap();
        let (code, error) = get(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
        if want.is_empty() {
            assert_eq!(code, ExitCode::Success, "{error}");
            continue;
        }
        assert_eq!(code, ExitCode::WillFail, "{error}");
        assert!(error.contains(want) && error.contains("--force"), "{error}");
        assert_eq!(fs::read(folder.path("a")).unwrap(), bytes);
        assert_eq!(folder.names(), ["a"]);
    }
}

#[test]
fn a_control_file_of_another_file_is_refused() {
    let content = payload(5, 12 * MIB);
    for end in ["aria2", "st"] {
        let (folder, server) = (Folder::new(), server(&content));
        fs::write(folder.path("a"), &content[..6 * MIB]).unwrap();
        fs::write(folder.path(&format!("a.{end}")), [0, 1, 2]).unwrap();
        let (code, error) = get(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
        assert_eq!(code, ExitCode::WillFail, "{error}");
        assert!(error.contains(&format!("a.{end}")), "{error}");
        assert_eq!(fs::read(folder.path("a")).unwrap(), &content[..6 * MIB]);
    }
}

#[test]
fn without_parts_or_versions_nothing_is_continued() {
    let content = payload(6, 12 * MIB);
    let data = content.clone();
    let servers = [Server::start(move |_| Reply::whole(&data).with("ETag", ETAG)), {
        let data = content.clone();
        Server::start(move |request| {
            let reply = Reply::honest(request, &data, ETAG);
            Reply {
                headers: reply.headers.into_iter().filter(|(name, _)| name != "ETag").collect(),
                ..reply
            }
        })
    }];
    for server in servers {
        let folder = Folder::new();
        fs::write(folder.path("a"), &content[..6 * MIB]).unwrap();
        let (code, error) = get(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
        assert_eq!(code, ExitCode::WillFail, "{error}");
        assert!(error.contains("a exists"), "{error}");
        assert_eq!(fs::read(folder.path("a")).unwrap(), &content[..6 * MIB]);
    }
}

#[test]
fn a_small_file_is_compared_and_replaced() {
    let content = payload(7, 3 * MIB);
    let (folder, server) = (Folder::new(), server(&content));
    fs::write(folder.path("a"), &content[..2 * MIB + 1]).unwrap();
    got(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
}

#[test]
fn with_continue_a_file_that_is_not_there_is_fetched() {
    let content = payload(8, 6 * MIB);
    let (folder, server) = (Folder::new(), server(&content));
    got(&folder, &format!("-c -o DIR/a {}", server.url("/a")));
    check(&folder, "a", &content);
    assert!(server.sent.load(Ordering::Relaxed) >= content.len());
}
