//! A store over a connection within the process.

use super::*;
use crate::server;
use crate::tests::{connections, path, put, random};
use crate::{Limits, Server};
use hikyaku_reach::daemon::STORE;
use hikyaku_store::testing::read_only::{self, ReadOnlyRig};
use hikyaku_store::testing::{Forbidden, Rig, failures};
use hikyaku_store::{
    Asked, Cut, Fault, Faulty, FetchError, Finish, Make, Memory, Naming, Operation, Put, Time,
    Wanted, When, fetchers,
};
use hikyaku_store_local::{Local, NewModes};
use hikyaku_transfer::Durable;
use std::fs;
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

/// A server of a store, and the store that a client makes of it.
struct Served {
    store: RemoteStore,
    server: Option<JoinHandle<()>>,
}

impl Served {
    /// With a server that has these features.
    fn with(behind: Arc<dyn Store>, writes: server::Writes, features: &[&str]) -> Self {
        let (ours, theirs) = connections();
        let served = Server::new(behind, Limits { writes, ..Limits::default() });
        let server = thread::spawn(move || drop(served.attend(theirs).unwrap()));
        let features = features.iter().map(|name| (*name).to_owned()).collect();
        let client = Client::new(ours).unwrap().with_features(features);
        Self { store: RemoteStore::new(client), server: Some(server) }
    }

    fn new(behind: impl Store + 'static) -> Self {
        Self::with(Arc::new(behind), server::Writes::Allowed, STORE.features)
    }

    fn close(&self) {
        self.store.client().connection().close(hikyaku_net::code::DONE, "");
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.close();
        self.server.take().unwrap().join().unwrap();
    }
}

/// A store in memory, some of whose directories cannot be listed, and its server.
struct InMemory {
    memory: Memory,
    faulty: Arc<Faulty<Memory>>,
    served: Served,
}

impl InMemory {
    fn new() -> Self {
        let memory = Memory::default();
        let faulty = Arc::new(Faulty::new(memory.clone()));
        let served = Served::with(faulty.clone(), server::Writes::Allowed, STORE.features);
        Self { memory, faulty, served }
    }
}

impl Rig for InMemory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.served.store.clone())
    }

    fn crash(&self) -> Option<Box<dyn Store>> {
        Some(Box::new(self.memory.crash()))
    }

    fn forbid(&self, dir: &StorePath) -> Forbidden {
        let path = Some(dir.clone());
        let when = When { operation: Operation::List, path, nth: 1, times: u32::MAX };
        self.faulty.add(when, Fault::Error(ErrorKind::Denied));
        Forbidden::Done
    }
}

#[test]
fn a_daemon_with_a_store_in_memory_conforms() {
    let failed = failures(InMemory::new);
    assert!(failed.is_empty(), "{failed:#?}");
}

/// A server that does not let its clients write.
struct ReadOnly(Memory, Served);

impl ReadOnly {
    /// A client keeps to the features of the server. An older server may close the connection for a change that it does not
    /// know, so even one that would allow changes gets none.
    fn new(writes: server::Writes) -> Self {
        let memory = Memory::default();
        let is_of_readers = |name: &&str| ![UPLOADS, UNSIZED_UPLOADS, WRITES].contains(name);
        let features: Vec<&str> = STORE.features.iter().copied().filter(is_of_readers).collect();
        Self(memory.clone(), Served::with(Arc::new(memory), writes, &features))
    }
}

impl ReadOnlyRig for ReadOnly {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.1.store.clone())
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        for (at, _) in name.match_indices('/') {
            let _ = self.0.make_dir(&path(&name[..at]), 0o755);
        }
        put(&self.0, name, bytes);
    }

    fn remove(&self, name: &str) {
        self.0.remove(&path(name), Kind::File).unwrap();
    }
}

#[test]
fn a_daemon_that_may_not_be_written_to_conforms() {
    for writes in [server::Writes::Refused, server::Writes::Allowed] {
        let failed = read_only::failures(|| ReadOnly::new(writes));
        assert!(failed.is_empty(), "{failed:#?}");
    }
}

/// A directory that is removed with the rig.
struct InDirectory(PathBuf, Option<Served>);

impl Rig for InDirectory {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.1.as_ref().unwrap().store.clone())
    }

    fn seeds(&self) -> u64 {
        10
    }
}

impl Drop for InDirectory {
    fn drop(&mut self) {
        self.1 = None;
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_daemon_with_a_directory_conforms() {
    let next = AtomicU64::new(0);
    let failed = failures(|| {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-remote-store-{}-{number}", std::process::id());
        let dir = std::env::temp_dir().join(name);
        fs::create_dir(&dir).unwrap();
        let served = Served::new(Local::open(&dir, NewModes::default()).unwrap());
        InDirectory(dir, Some(served))
    });
    assert!(failed.is_empty(), "{failed:#?}");
}

fn why<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind)
}

fn draft(store: &RemoteStore, at: &str, size: Option<u64>) -> Box<dyn Draft> {
    store.create(&path(at), &Make { size, ..Make::default() }).unwrap()
}

fn get(store: &dyn Store, at: &str) -> Vec<u8> {
    let open = store.open(&path(at), Access::Read).unwrap();
    let mut bytes = vec![0; open.found().unwrap().size as usize];
    assert_eq!(open.read_at(0, &mut bytes).unwrap(), bytes.len());
    bytes
}

/// More than a message carries.
const LARGE: usize = 700_000;

#[test]
fn every_operation_of_a_batch_is_refused_if_the_daemon_may_not_be_written_to() {
    let rig = ReadOnly::new(server::Writes::Allowed);
    put(&rig.0, "f", b"old");
    let (f, g) = (path("f"), path("g"));
    let finish = Finish::default();
    let (bytes, naming, durable) = (&b"new"[..], Naming::Replace, Durable::Disk);
    let change = Change::default();
    let ops = [
        Op::Put(Put { path: &f, bytes, naming, finish: &finish, durable }),
        Op::Remove(&f, Kind::File),
        Op::MakeDir(&g, 0o755),
        Op::MakeLink(&g, b"f"),
        Op::Rename(&f, &g, Replace::Allowed),
        Op::Change(&f, &change),
    ];
    let mut refused = Vec::new();
    rig.1.store.batch(&ops, &mut |_, result| refused.push(why(result)));
    assert_eq!(refused, [Some(ErrorKind::ReadOnly); 6]);
    assert_eq!(why(rig.1.store.sync(&[StorePath::ROOT])), Some(ErrorKind::ReadOnly));
    assert_eq!(get(&rig.0, "f"), b"old");
}

#[test]
fn a_lost_connection_is_unreachable_for_every_call() {
    let memory = Memory::default();
    put(&memory, "f", &random(1, LARGE));
    let served = Served::new(memory);
    let store = &served.store;
    let open = store.open(&path("f"), Access::Read).unwrap();
    let started = draft(store, "new", None);
    served.close();
    let bytes = random(2, LARGE);
    let mut lost = vec![
        why(store.look(&path("f"))),
        why(store.list(&StorePath::ROOT, None, 10)),
        why(store.walk(&StorePath::ROOT, &mut |_| ControlFlow::Continue(()))),
        why(open.read_at(0, &mut vec![0; LARGE])),
        why(started
            .write_at(0, &bytes)
            .and_then(|()| started.name(Naming::Replace, &Finish::default()))),
        why(store.make_dir(&path("d"), 0o755)),
        why(store.space()),
        why(store.sync(&[StorePath::ROOT])),
    ];
    let f = path("f");
    let ops = [Op::Look(&f), Op::Remove(&f, Kind::File)];
    store.batch(&ops, &mut |_, result| lost.push(why(result)));
    assert_eq!(lost.len(), 10);
    assert!(lost.iter().all(|why| *why == Some(ErrorKind::Unreachable)), "{lost:?}");
}

#[test]
fn an_older_daemon_takes_large_files_of_a_known_size() {
    let memory = Memory::default();
    let features: Vec<&str> =
        STORE.features.iter().copied().filter(|name| *name != UNSIZED_UPLOADS).collect();
    let served = Served::with(Arc::new(memory.clone()), server::Writes::Allowed, &features);
    let (store, bytes) = (&served.store, random(1, LARGE));
    assert!(!store.abilities().name_if_absent);
    let time = Time { secs: 1_000_000, nanos: 7 };
    for (at, mode) in [("a", Some(0o640)), ("b", None)] {
        let draft = draft(store, at, Some(LARGE as u64));
        draft.write_at(0, &bytes).unwrap();
        let finish = Finish { mode, modified: Some(time), ..Finish::default() };
        let found = draft.name(Naming::Replace, &finish).unwrap();
        assert_eq!(found, memory.look(&path(at)).unwrap());
        assert_eq!((found.mode & 0o777, found.modified), (mode.unwrap_or(0o644), time));
        assert!(get(&memory, at) == bytes);
    }
    let unsized_one = draft(store, "c", None);
    assert_eq!(why(unsized_one.write_at(0, &bytes)), Some(ErrorKind::of(Errno::OPNOTSUPP)));
    let absent = draft(store, "c", Some(LARGE as u64));
    absent.write_at(0, &bytes).unwrap();
    let unsupported = Some(ErrorKind::Unsupported(Ability::NameIfAbsent));
    assert_eq!(why(absent.name(Naming::IfAbsent, &Finish::default())), unsupported);
    assert!(memory.look(&path("c")).is_err());
}

#[test]
fn a_piece_that_cannot_be_written_fails_a_later_call() {
    let faulty = Faulty::new(Memory::default());
    put(&faulty, "f", b"old");
    let second = When { operation: Operation::Write, path: Some(path("f")), nth: 2, times: 1 };
    faulty.add(second, Fault::HalfWrite(ErrorKind::NoSpace));
    let faulty = Arc::new(faulty);
    let served = Served::with(faulty.clone(), server::Writes::Allowed, STORE.features);
    let started = draft(&served.store, "f", None);
    let bytes = random(1, LARGE);
    let written = started.write_at(0, &bytes);
    let written = written.and_then(|()| started.write_at(LARGE as u64, &bytes));
    let named = written.and_then(|()| started.name(Naming::Replace, &Finish::default()));
    assert_eq!(why(named), Some(ErrorKind::NoSpace));
    assert_eq!(get(&*faulty, "f"), b"old");
}

#[test]
fn a_draft_more_than_the_server_allows_is_refused_and_the_others_go_on() {
    let served = Served::new(Memory::default());
    let bytes = random(1, 300_000);
    let mut drafts = Vec::new();
    let refused = loop {
        let draft = draft(&served.store, &drafts.len().to_string(), None);
        match draft.write_at(0, &bytes) {
            Ok(()) => drafts.push(draft),
            Err(error) => break error.kind,
        }
        assert!(drafts.len() < 1000);
    };
    assert_eq!((drafts.len(), refused), (128, ErrorKind::Busy));
    let last = drafts.pop().unwrap();
    last.name(Naming::Replace, &Finish::default()).unwrap();
    let another = draft(&served.store, "another", None);
    another.write_at(0, &bytes).unwrap();
    another.name(Naming::Replace, &Finish::default()).unwrap();
    assert!(get(&served.store, "another") == bytes);
}

#[test]
fn listings_that_are_read_side_by_side_are_whole() {
    let memory = Memory::default();
    for n in 0..30 {
        put(&memory, &format!("{n:02}"), b"x");
    }
    let served = Served::new(memory);
    // More of them than are kept: some directories are listed again.
    let mut all = vec![(Vec::new(), None); 20];
    for round in 0..10 {
        for (names, after) in &mut all {
            assert_eq!(after.is_none(), round == 0);
            let page = served.store.list(&StorePath::ROOT, after.as_ref(), 3).unwrap();
            names.extend(page.items.into_iter().map(|item| item.name));
            *after = page.next;
        }
    }
    for (names, after) in all {
        assert_eq!(after, None);
        assert_eq!(names.len(), 30);
        assert!(names.is_sorted_by(|a, b| a.as_bytes() < b.as_bytes()));
    }
}

#[test]
fn a_walk_that_is_broken_off_ends_at_the_server_as_well() {
    let memory = Memory::default();
    for dir in 0..20 {
        memory.make_dir(&path(&dir.to_string()), 0o755).unwrap();
        for n in 0..200 {
            put(&memory, &format!("{dir}/{n}"), b"x");
        }
    }
    let served = Served::new(memory);
    for _ in 0..5 {
        let mut seen = 0;
        let each = &mut |_: Entry| {
            seen += 1;
            if seen == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        served.store.walk(&StorePath::ROOT, each).unwrap();
        assert_eq!(seen, 3);
    }
    let mut seen = 0;
    let each = &mut |_: Entry| {
        seen += 1;
        ControlFlow::Continue(())
    };
    served.store.walk(&StorePath::ROOT, each).unwrap();
    assert_eq!(seen, 1 + 20 + 20 * 200);
}

#[test]
fn a_file_is_streamed_in_order_and_only_as_long_as_it_is_the_same() {
    let memory = Memory::default();
    let bytes = random(3, 12 << 20);
    put(&memory, "f", &bytes);
    let served = Served::new(memory.clone());
    let open = served.store.open(&path("f"), Access::Read).unwrap();
    let mut came = Vec::new();
    let each = &mut |bytes: &[u8]| {
        came.extend_from_slice(bytes);
        ControlFlow::Continue(())
    };
    assert_eq!(open.stream(77..u64::MAX, each).unwrap(), bytes.len() as u64 - 77);
    assert!(came == bytes[77..]);
    put(&memory, "f", &random(4, (12 << 20) + 1));
    let kinds = [why(open.read_at(0, &mut [0; 10])), why(open.read_at(12 << 20, &mut [0; 10]))];
    assert_eq!(kinds, [Some(ErrorKind::Changed); 2]);
}

#[test]
fn a_connection_fetches_files_of_the_wanted_content_until_it_is_lost() {
    let memory = Memory::default();
    let served = Served::new(memory.clone());
    let bytes = random(5, (3 << 20) + 9);
    put(&memory, "large", &bytes);
    put(&memory, "small", b"few");
    let wanted = |name: &str| {
        let found = memory.look(&path(name)).unwrap();
        Wanted { path: path(name), size: found.size, modified: found.modified, content: None }
    };
    let (large, small) = (wanted("large"), wanted("small"));
    let store: Arc<dyn Store> = Arc::new(served.store.clone());
    let all = fetchers(&store, 4).unwrap();
    let [fetcher] = &all[..] else { panic!("{} channels of one connection", all.len()) };
    let read = |file: &Wanted, cut: &Cut| {
        let mut segments = Vec::new();
        let done = fetcher.ranges(
            file,
            &Asked::whole(std::slice::from_ref(&(0..file.size))),
            cut,
            &|_| {},
            &mut |segment| {
                let at = (segment.index.0 as usize) << 20;
                assert!(bytes[at..].starts_with(segment.bytes));
                segments.push(segment.index.0);
            },
        );
        segments.sort_unstable();
        (done, segments)
    };
    assert_eq!(read(&large, &Cut::default()), (Ok(0), vec![0, 1, 2, 3]));
    let cut = Cut::default();
    cut.at(0);
    assert_eq!(read(&large, &cut).0, Ok(0));
    let whole = |file: &Wanted| {
        let mut came = Vec::new();
        let done = fetcher.small(&[file], &Cut::default(), &|_| {}, &mut |_, content| {
            came.push(content);
        });
        (done, came)
    };
    assert_eq!(whole(&small), (Ok(()), vec![Ok(b"few".to_vec())]));
    let other = |file: &Wanted| Wanted { modified: Time { secs: 9, nanos: 9 }, ..file.clone() };
    assert_eq!(whole(&other(&small)), (Ok(()), vec![Err(ErrorKind::Changed)]));
    let changed = Err(FetchError::File(ErrorKind::Changed));
    assert_eq!(read(&other(&large), &Cut::default()).0, changed);
    assert!(fetcher.is_alive());
    fetcher.close("over");
    let lost = read(&large, &Cut::default()).0;
    assert!(matches!(lost, Err(FetchError::Lost(_))) && !fetcher.is_alive(), "{lost:?}");
}
