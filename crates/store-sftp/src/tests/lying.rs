//! Servers whose listings have names that lead elsewhere, and entries without metadata.

use crate::Sftp;
use hikyaku_sftp::Client;
use hikyaku_store::{ErrorKind, Kind, Store, StorePath};
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::os::unix::net::UnixStream;
use std::thread;

/// A file of 7 bytes, or a directory, as attributes of the protocol.
fn attributes(mode: u32) -> Vec<u8> {
    let numbers = [13_u32, 0, 7, mode, 1_000_000, 1_000_000];
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn string(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

/// An entry of a listing.
fn entry(name: &[u8], attributes: &[u8]) -> Vec<u8> {
    [string(name), string(b""), attributes.to_vec()].concat()
}

/// A server with the directory `/data`, which has these entries. All other paths are files.
fn serve(entries: Vec<Vec<u8>>) -> Client {
    let (near, far) = UnixStream::pair().unwrap();
    thread::spawn(move || {
        let (mut from, mut to, mut listed) = (far.try_clone().unwrap(), far, false);
        let mut length = [0; 4];
        while from.read_exact(&mut length).is_ok() {
            let mut body = vec![0; u32::from_be_bytes(length) as usize];
            from.read_exact(&mut body).unwrap();
            let id = &body[1..5];
            let names = |count: u32, names: &[u8]| [&count.to_be_bytes(), names].concat();
            let is_root = body.ends_with(b"/data") || body.ends_with(b"/data/");
            let mode = if is_root { 0o040_755 } else { 0o100_644 };
            let (kind, rest) = match body[0] {
                1 => (2, Vec::new()),
                7 | 17 => (105, attributes(mode)),
                11 => (102, string(b"handle")),
                12 if !listed => {
                    listed = true;
                    (104, names(entries.len() as u32, &entries.concat()))
                }
                12 => (101, 1_u32.to_be_bytes().to_vec()),
                16 => (104, names(1, &entry(b"/data", &attributes(mode)))),
                _ => (101, 0_u32.to_be_bytes().to_vec()),
            };
            let answer = [&[kind][..], if kind == 2 { &[0, 0, 0, 3] } else { id }, &rest].concat();
            let framed = [&(answer.len() as u32).to_be_bytes(), &answer[..]].concat();
            if to.write_all(&framed).is_err() {
                return;
            }
        }
    });
    Client::start(near.try_clone().unwrap(), near).unwrap()
}

/// A good name, a good name without metadata, and names that lead elsewhere.
fn entries() -> Vec<Vec<u8>> {
    let file = attributes(0o100_644);
    let bad = [&b"../up"[..], b"a/b", b"/etc/passwd", b"", b"a\0b", &[b'x'; 256]];
    let bad = bad.map(|name| entry(name, &file));
    let hidden = [&b"."[..], b"..", b".a.abcdefghabcde.hikyaku"].map(|name| entry(name, &file));
    [vec![entry(b"good", &file), entry(b"bare", &[0; 4])], bad.to_vec(), hidden.to_vec()].concat()
}

#[test]
fn names_that_lead_elsewhere_are_not_listed() {
    let store = Sftp::open(serve(entries()), b"/data").unwrap();
    let page = store.list(&StorePath::ROOT, None, 100).unwrap();
    let names: Vec<_> =
        page.items.iter().map(|item| (item.name.as_bytes(), item.found.size)).collect();
    assert_eq!(names, [(&b"good"[..], 7), (b"bare", 7)]);
    assert_eq!((page.skipped, page.next), (6, None));
}

#[test]
fn names_that_lead_elsewhere_are_errors_of_their_directory_in_a_walk() {
    let store = Sftp::open(serve(entries()), b"/data").unwrap();
    let (mut found, mut failed) = (Vec::new(), 0);
    let walked = store.walk(&StorePath::ROOT, &mut |entry| {
        match entry.found {
            Ok(metadata) => found.push((entry.path.to_string(), metadata.kind)),
            Err(error) => {
                assert_eq!((entry.path, error.kind), (StorePath::ROOT, ErrorKind::BadName));
                failed += 1;
            }
        }
        ControlFlow::Continue(())
    });
    walked.unwrap();
    let wanted = [(".", Kind::Dir), ("good", Kind::File), ("bare", Kind::File)];
    assert_eq!(found, wanted.map(|(name, kind)| (name.to_owned(), kind)));
    assert_eq!(failed, 6);
}

#[test]
fn a_lost_connection_ends_a_walk_and_a_batch() {
    let client = serve(entries());
    let store = Sftp::open(client.clone(), b"/data").unwrap();
    client.abandon();
    let lost = |result: hikyaku_store::Result<()>| result.unwrap_err().kind;
    assert_eq!(lost(store.look(&StorePath::ROOT).map(drop)), ErrorKind::Unreachable);
    let walked = store.walk(&StorePath::ROOT, &mut |_| ControlFlow::Continue(()));
    assert_eq!(lost(walked), ErrorKind::Unreachable);
    let path = StorePath::new(b"good").unwrap();
    let mut replies = Vec::new();
    let ops = [hikyaku_store::Op::Look(&path), hikyaku_store::Op::MakeDir(&path, 0o755)];
    store.batch(&ops, &mut |index, reply| replies.push((index, lost(reply.map(drop)))));
    assert_eq!(replies, [(0, ErrorKind::Unreachable), (1, ErrorKind::Unreachable)]);
}
