//! The number of requests: each of them is bytes on the way, and work for the server.

use super::{Server, path};
use crate::Sftp;
use hikyaku_fs::Name;
use hikyaku_store::{
    Access, ErrorKind, Finish, Kind, Make, Naming, Op, Put, Reply, Store, StorePath, Time,
};
use hikyaku_transfer::Durable;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::unix::fs::symlink;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// The numbers of requests by their kinds, as in section 3 of the draft.
#[derive(Clone, Default)]
pub(super) struct Counts(Arc<Mutex<BTreeMap<u8, usize>>>);

impl Counts {
    /// The numbers since the last call.
    pub(super) fn take(&self) -> BTreeMap<u8, usize> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }

    /// Waits until `count` requests of this kind were sent. The client does not wait for the answer to the last one.
    pub(super) fn wait_for(&self, kind: u8, count: usize) {
        let begin = Instant::now();
        while self.0.lock().unwrap().get(&kind).is_none_or(|sent| *sent < count) {
            assert!(begin.elapsed() < Duration::from_secs(30), "fewer than {count} of kind {kind}");
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A pipe to a server that counts the requests.
pub(super) struct Counted<W> {
    inner: W,
    counts: Counts,
    rest: Vec<u8>,
}

impl<W> Counted<W> {
    pub(super) fn new(inner: W, counts: &Counts) -> Self {
        Self { inner, counts: counts.clone(), rest: Vec::new() }
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // The answer to a request may come before this call returns: the numbers are complete when they are taken.
        let mut counts = self.counts.0.lock().unwrap();
        let written = self.inner.write(bytes)?;
        self.rest.extend(&bytes[..written]);
        while let Some((length, body)) = self.rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            if body.len() < length {
                break;
            }
            *counts.entry(body[0]).or_default() += 1;
            self.rest.drain(..4 + length);
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

pub(super) const OPEN: u8 = 3;
pub(super) const CLOSE: u8 = 4;
pub(super) const READ: u8 = 5;
const WRITE: u8 = 6;
pub(super) const LSTAT: u8 = 7;
pub(super) const FSTAT: u8 = 8;
const REALPATH: u8 = 16;
const STAT: u8 = 17;
const FSETSTAT: u8 = 10;
const OPENDIR: u8 = 11;
const READDIR: u8 = 12;
const EXTENDED: u8 = 200;

#[test]
fn a_walk_needs_four_requests_for_a_directory() {
    let Some(server) = Server::start(&[]) else { return };
    for number in 0..300 {
        fs::create_dir(server.dir.join(number.to_string())).unwrap();
    }
    let store = server.open();
    server.counts.take();
    let mut found = 0;
    let walked = store.walk(&StorePath::ROOT, &mut |entry| {
        found += usize::from(entry.found.is_ok());
        ControlFlow::Continue(())
    });
    walked.unwrap();
    assert_eq!(found, 301);
    // The answer to the last CLOSE is not awaited: another request is sent after it.
    store.look(&StorePath::ROOT).unwrap();
    // The root has 302 entries, of which the server sends 100 in an answer.
    let wanted = [(LSTAT, 2), (OPENDIR, 301), (READDIR, 605), (CLOSE, 301)];
    assert_eq!(server.counts.take(), wanted.into());
}

/// 1,000 answers are behind one another only at the begin.
#[test]
fn a_large_directory_is_read_ahead() {
    let Some(server) = Server::start(&[]) else { return };
    for number in 0..5000 {
        fs::write(server.dir.join(number.to_string()), "").unwrap();
    }
    let store = server.open();
    server.counts.take();
    let page = store.list(&StorePath::ROOT, None, 10_000).unwrap();
    assert_eq!((page.items.len(), page.next), (5000, None));
    store.look(&StorePath::ROOT).unwrap();
    let requests = server.counts.take()[&READDIR];
    assert!((52..=52 + 13).contains(&requests), "{requests}");
}

#[test]
fn small_files_need_five_requests_each() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.open();
    store.make_dir(&path("d"), 0o755).unwrap();
    let modified = Some(Time { secs: 1_234_567_890, nanos: 0 });
    let finish = Finish { mode: Some(0o640), modified, ..Finish::default() };
    let paths: Vec<_> = (0..300).map(|number| path(&format!("d/{number}"))).collect();
    let put = |path| Put {
        path,
        bytes: b"content",
        naming: Naming::Replace,
        finish: &finish,
        durable: Durable::Cache,
    };
    let ops: Vec<_> = paths.iter().map(|path| Op::Put(put(path))).collect();
    server.counts.take();
    let mut replies = Vec::new();
    store.batch(&ops, &mut |index, reply| replies.push((index, reply.unwrap())));
    // One LSTAT returns the owner of new files, and one extension the limits of the server.
    let each = [OPEN, WRITE, FSETSTAT, CLOSE].map(|kind| (kind, 300));
    let others = [(EXTENDED, 301), (LSTAT, 1)];
    assert_eq!(server.counts.take(), each.into_iter().chain(others).collect());
    assert_eq!(replies.len(), 300);
    for (index, reply) in replies {
        let Reply::Found(found) = reply else { panic!("{reply:?}") };
        assert_eq!(found, store.look(&paths[index]).unwrap());
        let content = fs::read(server.dir.join(format!("d/{index}"))).unwrap();
        assert_eq!(content, b"content");
    }
}

#[test]
fn many_names_of_one_directory_are_looked_at_by_a_list() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.open();
    store.make_dir(&path("d"), 0o755).unwrap();
    let paths: Vec<_> = (0..300).map(|number| path(&format!("d/{number}"))).collect();
    for path in paths.iter().step_by(3) {
        fs::create_dir(server.dir.join(path.to_string())).unwrap();
    }
    server.counts.take();
    let done = |ops: &[Op<'_>]| {
        let mut done = vec![None; ops.len()];
        store.batch(ops, &mut |index, reply| done[index] = Some(reply.map_err(|error| error.kind)));
        done
    };
    let looked = done(&paths.iter().map(Op::Look).collect::<Vec<_>>());
    for (number, looked) in looked.into_iter().enumerate() {
        match looked {
            Some(Ok(Reply::Found(found))) => assert_eq!((found.kind, number % 3), (Kind::Dir, 0)),
            Some(Err(ErrorKind::NotFound)) => assert_ne!(number % 3, 0),
            other => panic!("{number}: {other:?}"),
        }
    }
    server.counts.wait_for(CLOSE, 1);
    let counts = server.counts.take();
    assert_eq!((counts.get(&LSTAT), counts[&OPENDIR]), (None, 1), "{counts:?}");
    // A list also gives the reason why a directory was not made.
    let made = done(&paths.iter().map(|path| Op::MakeDir(path, 0o755)).collect::<Vec<_>>());
    for (number, made) in made.into_iter().enumerate() {
        let wanted = if number % 3 == 0 { Err(ErrorKind::Exists) } else { Ok(Reply::Done) };
        assert_eq!(made, Some(wanted), "{number}");
    }
    let counts = server.counts.take();
    let asked = counts.get(&LSTAT).copied().unwrap_or(0) + counts[&OPENDIR];
    assert!(asked < 50, "{counts:?}");
}

#[test]
fn a_large_file_needs_a_request_for_each_block_and_a_few_more() {
    let Some(server) = Server::start(&[]) else { return };
    let store = server.open();
    let bytes: Vec<u8> = (0..16_000_000_u32).map(|at| (at >> 8) as u8).collect();
    server.counts.take();
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    draft.write_at(0, &bytes).unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    // Extensions are the limits of the server, the sync and the rename.
    let blocks = bytes.len().div_ceil(128 << 10);
    let wanted = [(OPEN, 1), (WRITE, blocks), (FSETSTAT, 1), (FSTAT, 1), (CLOSE, 1), (EXTENDED, 3)];
    assert_eq!(server.counts.take(), wanted.into());
    let open = store.open(&path("f"), Access::Read).unwrap();
    let mut read = Vec::new();
    let all = 0..bytes.len() as u64;
    open.stream(all, &mut |piece| {
        read.extend_from_slice(piece);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert!(open.is_unchanged().unwrap());
    assert!(read == bytes);
    drop(open);
    store.look(&StorePath::ROOT).unwrap();
    let wanted = [(LSTAT, 2), (OPEN, 1), (READ, blocks), (FSTAT, 1), (CLOSE, 1)];
    assert_eq!(server.counts.take(), wanted.into());
}

#[test]
fn a_named_directory_and_names_in_it_are_known_by_requests_that_go_together() {
    let Some(server) = Server::start(&[]) else { return };
    let dir = server.dir.canonicalize().unwrap();
    fs::create_dir(dir.join("d")).unwrap();
    fs::write(dir.join("d/f"), "x").unwrap();
    symlink("d", dir.join("l")).unwrap();
    let store = Sftp::open(server.client.clone(), dir.as_os_str().as_encoded_bytes()).unwrap();
    let names = ["f", "none", "new"].map(|name| Name::new(name.as_bytes()).unwrap());
    let named = |name: &str| {
        let named = store.named(dir.join(name).as_os_str().as_encoded_bytes(), &names).unwrap();
        (named.path, named.kind, named.end)
    };
    let (is_dir, is_link) = (Some(Kind::Dir), Some(Kind::Link));
    server.counts.take();
    assert_eq!(named("d"), (path("d"), is_dir, is_dir));
    let look = |at: &str| store.look(&path(at)).map_err(|error| error.kind);
    assert_eq!(look("d/f").unwrap().kind, Kind::File);
    assert_eq!(look("d/none"), Err(ErrorKind::NotFound));
    let one = |lstat| [(REALPATH, 1), (STAT, 1), (LSTAT, lstat)].into();
    assert_eq!(server.counts.take(), one(4));
    // Each answer is used once.
    fs::write(dir.join("d/none"), "x").unwrap();
    assert!(look("d/none").is_ok());
    assert_eq!(server.counts.take(), [(LSTAT, 1)].into());
    store.make_dir(&path("d/new"), 0o755).unwrap();
    assert_eq!(look("d/new").unwrap().kind, Kind::Dir);
    assert_eq!(named("l"), (path("l"), is_link, is_dir));
    assert_eq!(named("new"), (path("new"), None, None));
    assert_eq!(look("new"), Err(ErrorKind::NotFound));
    assert_eq!(store.named(b"/etc", &[]), Err(ErrorKind::BadName));
}

#[test]
fn a_device_takes_bytes_and_its_sync_tells_whether_it_took_all() {
    let Some(server) = Server::start(&[]) else { return };
    let written = |name: &str| {
        let store = Sftp::open(server.client.clone(), b"/dev").unwrap();
        store.write_into(&path(name))?;
        server.counts.take();
        let draft = store.create(&path(name), &Make::default()).unwrap();
        draft.write_at(0, &[7; 300_000]).unwrap();
        let synced = draft.sync().map_err(|error| error.kind);
        let counts = server.counts.take();
        let others = counts.keys().filter(|kind| ![OPEN, WRITE, EXTENDED].contains(kind));
        assert_eq!((counts[&OPEN], others.count()), (1, 0), "{name}: {counts:?}");
        synced
    };
    assert_eq!(written("null"), Ok(()));
    assert!(written("full").is_err());
    assert_eq!(written("fd"), Err(ErrorKind::SPECIAL));
}
