//! The suite of all stores, with data in extended block mode.

use super::{LOOPBACK, is_there};
use hikyaku_bench_servers::Scene;
use hikyaku_gridftp::{Login, Server, Settings};
use hikyaku_store::testing::{self, Rig};
use hikyaku_store::{Finish, Make, Naming, Store, StorePath, Writes};
use hikyaku_store_ftp::Ftp;
use std::cell::Cell;
use std::fs;
use std::path::PathBuf;
use xtask::servers::gridftp::{self, GridFtp};

/// A server that ends with the test.
struct Running(Scene, GridFtp);

impl Running {
    fn new(name: &str) -> Option<Self> {
        is_there().then(|| {
            let scene = Scene::new(name);
            let server = gridftp::up(&scene.at("server"), LOOPBACK).unwrap();
            Self(scene, server)
        })
    }

    fn ftp(&self, folder: &std::path::Path) -> Ftp {
        let address = self.1.url.trim_start_matches("ftp://");
        let (host, port) = address.split('/').next().unwrap().split_once(':').unwrap();
        let (host, port) = (host.to_owned(), port.parse().unwrap());
        let server = Server { host, port, login: Login::Anonymous };
        Ftp::open(&server, &Settings::default(), folder.to_str().unwrap().as_bytes()).unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = gridftp::down(&self.0.at("server"));
    }
}

/// A directory of the server.
struct Folder<'a>(&'a Running, PathBuf);

impl Rig for Folder<'_> {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.0.ftp(&self.1))
    }

    fn seeds(&self) -> u64 {
        1
    }
}

/// The server drops bytes of names that are not ASCII, so that such names are refused.
#[test]
fn a_store_at_a_server_keeps_the_rules() {
    let Some(running) = Running::new("store-ftp-rules") else { return };
    let number = Cell::new(0);
    let failures = testing::failures(|| {
        number.set(number.get() + 1);
        let folder = running.1.data.join(number.get().to_string());
        fs::create_dir(&folder).unwrap();
        Folder(&running, folder)
    });
    let known = |failure: &String| failure.starts_with("names may be any bytes:");
    let failures: Vec<_> = failures.iter().filter(|failure| !known(failure)).collect();
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_large_draft_goes_in_any_order() {
    const MIB: usize = 1 << 20;
    let Some(running) = Running::new("store-ftp-large") else { return };
    let store = running.ftp(&running.1.data);
    assert_eq!(store.abilities().writes, Writes::Anywhere);
    let content: Vec<u8> = (0..20 * MIB + 5).map(|at| (at % 251) as u8).collect();
    let path = StorePath::new(b"f").unwrap();
    let draft = store.create(&path, &Make::default()).unwrap();
    let mut blocks: Vec<(usize, &[u8])> = content.chunks(MIB).enumerate().collect();
    blocks.reverse();
    for (number, block) in blocks {
        draft.write_at((number * MIB) as u64, block).unwrap();
    }
    let mut back = [0; 10];
    assert_eq!(draft.read_at(7 * MIB as u64, &mut back).unwrap(), 10);
    assert_eq!(back, content[7 * MIB..][..10]);
    draft.set_len(30 * MIB as u64).unwrap();
    let found = draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert_eq!(found.size, 30 * MIB as u64);
    let stored = fs::read(running.1.data.join("f")).unwrap();
    assert!(stored[..content.len()] == content && stored[content.len()..].iter().all(|b| *b == 0));
    assert_eq!(fs::read_dir(&running.1.data).unwrap().count(), 1);
}
