//! The suite of all stores, with data in extended block mode.

use super::{LOOPBACK, is_there};
use hikyaku_bench_servers::Scene;
use hikyaku_gridftp::{Login, Server, Settings, Spoken, Trace};
use hikyaku_store::testing::{self, Rig};
use hikyaku_store::{
    Asked, Cut, ErrorKind, Finish, Make, Naming, Op, Put, Reply, Store, StorePath, Time, Wanted,
    Writes,
};
use hikyaku_store_ftp::Ftp;
use hikyaku_transfer::Durable;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
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
        self.traced(folder, None)
    }

    fn traced(&self, folder: &std::path::Path, trace: Option<Trace>) -> Ftp {
        let address = self.1.url.trim_start_matches("ftp://");
        let (host, port) = address.split('/').next().unwrap().split_once(':').unwrap();
        let (host, port) = (host.to_owned(), port.parse().unwrap());
        let server = Server { host, port, login: Login::Anonymous };
        let settings = Settings { trace, ..Settings::default() };
        Ftp::open(&server, &settings, folder.to_str().unwrap().as_bytes()).unwrap()
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

/// The commands and codes of replies of all sessions, and the function that records them.
fn recorded() -> (Arc<Mutex<Vec<String>>>, Trace) {
    let spoken = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&spoken);
    let trace = move |line: Spoken<'_>| {
        all.lock().unwrap().push(match line {
            Spoken::Command(command) => format!("> {command}"),
            Spoken::Reply(reply) => format!("< {}", reply.code),
        });
    };
    (spoken, Arc::new(trace))
}

/// The largest number of files that were requested, or announced, and not complete.
fn most_at_once(spoken: &[String]) -> usize {
    let mut now: usize = 0;
    let count = |line: &String| {
        now = match line {
            line if line.starts_with("> ERET") || line.starts_with("> ESTO") => now + 1,
            line if line.starts_with("< 226") => now.saturating_sub(1),
            _ => now,
        };
        now
    };
    spoken.iter().map(count).max().unwrap_or(0)
}

#[test]
fn small_files_are_requested_together_and_large_ones_come_whole() {
    const FILES: usize = 300;
    let Some(running) = Running::new("store-ftp-fetches") else { return };
    let content = |number: usize, bytes: usize| -> Vec<u8> {
        (0..bytes).map(|at| ((at + number) % 251) as u8).collect()
    };
    let size = |number: usize| if number == 7 { 0 } else { 100 * number + 1 };
    for number in 0..FILES {
        fs::write(running.1.data.join(number.to_string()), content(number, size(number))).unwrap();
    }
    fs::write(running.1.data.join("large"), content(0, 70_000_003)).unwrap();
    let (spoken, trace) = recorded();
    let store = running.traced(&running.1.data, Some(trace));
    let wanted = |name: &str| {
        let path = StorePath::new(name.as_bytes()).unwrap();
        let found = store.look(&path).unwrap();
        Wanted { path, size: found.size, modified: found.modified, content: None }
    };
    let mut files: Vec<Wanted> = (0..FILES).map(|number| wanted(&number.to_string())).collect();
    fs::remove_file(running.1.data.join("11")).unwrap();
    // The time of another second.
    files[13].modified.secs -= 100;
    let fetcher = store.own_fetchers(1).unwrap().remove(0);
    let mut got = vec![None; FILES];
    let all: Vec<&Wanted> = files.iter().collect();
    let fetched = fetcher.small(&all, &Cut::default(), &|_| (), &mut |at, content| {
        assert!(got[at].replace(content).is_none(), "{at} comes twice");
    });
    fetched.unwrap();
    for (number, got) in got.into_iter().enumerate() {
        let wanted = match number {
            11 => Err(ErrorKind::NotFound),
            13 => Err(ErrorKind::Changed),
            _ => Ok(content(number, size(number))),
        };
        assert!(got == Some(wanted), "{number}");
    }
    assert!(most_at_once(&spoken.lock().unwrap()) > 10);

    let large = wanted("large");
    let (bytes, ranges) = (content(0, 70_000_003), 3 << 20..large.size);
    let mut segments = BTreeSet::new();
    let fetched = fetcher.ranges(
        &large,
        &Asked::whole(std::slice::from_ref(&ranges)),
        &Cut::default(),
        &|_| (),
        &mut |segment| {
            let at = segment.index.0 as usize * (1 << 20);
            assert!(segment.bytes == &bytes[at..bytes.len().min(at + (1 << 20))]);
            assert!(segments.insert(segment.index.0));
        },
    );
    assert_eq!(fetched, Ok(0));
    assert_eq!(segments, (3..67).collect());
}

#[test]
fn small_files_are_stored_together() {
    const FILES: usize = 100;
    let Some(running) = Running::new("store-ftp-puts") else { return };
    let (spoken, trace) = recorded();
    let store = running.traced(&running.1.data, Some(trace));
    fs::write(running.1.data.join("5"), "old").unwrap();
    fs::create_dir(running.1.data.join("7")).unwrap();
    let path = |number: usize| StorePath::new(number.to_string().as_bytes()).unwrap();
    let paths: Vec<_> = (0..FILES).map(path).collect();
    let contents: Vec<Vec<u8>> = (0..FILES).map(|number| vec![number as u8; number]).collect();
    let modified = Some(Time { secs: 1_000_000_000, nanos: 0 });
    let finish = Finish { mode: Some(0o640), modified, ..Finish::default() };
    let put = |(path, bytes)| {
        let (naming, durable, finish) = (Naming::Replace, Durable::Disk, &finish);
        Op::Put(Put { path, bytes, naming, finish, durable })
    };
    let ops: Vec<Op<'_>> = paths.iter().zip(contents.iter().map(Vec::as_slice)).map(put).collect();
    let mut results = vec![None; FILES];
    store.batch(&ops, &mut |index, result| results[index] = Some(result));
    for (number, result) in results.into_iter().enumerate() {
        match (number, result.unwrap()) {
            (7, result) => assert_eq!(result.unwrap_err().kind, ErrorKind::IsDir),
            (_, Ok(Reply::Found(found))) => {
                assert_eq!((found.size, found.mode), (number as u64, 0o640), "{number}");
                assert_eq!(found.modified.secs, 1_000_000_000, "{number}");
                let stored = fs::read(running.1.data.join(number.to_string())).unwrap();
                assert_eq!(stored, contents[number], "{number}");
            }
            (_, result) => panic!("{number}: {result:?}"),
        }
    }
    assert_eq!(fs::read_dir(&running.1.data).unwrap().count(), FILES);
    let spoken = spoken.lock().unwrap();
    assert!(most_at_once(&spoken) > 10);
    let commands = spoken.iter().filter(|line| line.starts_with("> ")).count();
    // Seven for each file, and those of the login and of the directory.
    assert!(commands < 8 * FILES, "{commands} commands");
}
