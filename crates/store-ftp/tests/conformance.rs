//! The suite of all stores, and what is particular to this one, with a server of plain FTP of either kind.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_gridftp::{Login, Server, Settings};
use hikyaku_store::testing::{self, Rig};
use hikyaku_store::{
    Access, Asked, Cut, Entry, FetchError, Finish, Growing, Kind, Make, Naming, Op, Store,
    StorePath, Wanted, Writes,
};
use hikyaku_store_ftp::{Ftp, OpenError, Retry, Writing};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};
use xtask::servers::ftp::{PlainFtp, Style};
use xtask::servers::gridftp::{self, GridFtp};

const STYLES: [Style; 2] = [Style::Facts, Style::Bare];
const MIB: usize = 1 << 20;

/// A server with a folder of its own, which is removed at the end.
struct Plain(PlainFtp);

static NUMBER: AtomicU64 = AtomicU64::new(0);

impl Plain {
    fn new(style: Style) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("store-ftp-{}-{number}", std::process::id());
        Self(PlainFtp::start(&std::env::temp_dir().join(name).join("data"), style).unwrap())
    }

    fn server(&self) -> Server {
        let (host, port) = (self.0.address.ip().to_string(), self.0.address.port());
        Server { host, port, login: Login::Anonymous }
    }

    fn ftp(&self, root: &str) -> Result<Ftp, OpenError> {
        Ftp::open(&self.server(), &Settings::default(), root.as_bytes())
    }

    fn there(&self, name: &str) -> PathBuf {
        self.0.data.join(name)
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(self.0.data.parent().unwrap());
    }
}

impl Rig for Plain {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.ftp("/").unwrap())
    }

    fn seeds(&self) -> u64 {
        2
    }
}

/// A directory of a server in extended block mode.
struct Extended<'s> {
    server: &'s GridFtp,
    root: PathBuf,
}

impl<'s> Extended<'s> {
    fn new(server: &'s GridFtp) -> Self {
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let root = server.data.join(number.to_string());
        fs::create_dir(&root).unwrap();
        Self { server, root }
    }

    fn ftp(&self) -> Ftp {
        let address = self.server.url.strip_prefix("ftp://").unwrap();
        let (host, port) = address[..address.find('/').unwrap()].rsplit_once(':').unwrap();
        let (host, port) = (host.to_owned(), port.parse().unwrap());
        let server = Server { host, port, login: Login::Anonymous };
        Ftp::open(&server, &Settings::default(), self.root.to_str().unwrap().as_bytes()).unwrap()
    }
}

impl Rig for Extended<'_> {
    fn store(&self) -> Box<dyn Store> {
        Box::new(self.ftp())
    }

    fn seeds(&self) -> u64 {
        1
    }
}

/// Runs a test with Globus' server, if its package is installed.
fn with_extended(name: &str, test: impl FnOnce(&GridFtp) + std::panic::UnwindSafe) {
    let folder = std::env::temp_dir().join(format!("store-ftp-{}-{name}", std::process::id()));
    let Ok(server) = gridftp::up(&folder, IpAddr::V4(Ipv4Addr::LOCALHOST)) else {
        return eprintln!("SKIPPED: {name}: globus-gridftp-server does not start");
    };
    let tested = std::panic::catch_unwind(|| test(&server));
    gridftp::down(&folder).unwrap();
    let _ = fs::remove_dir_all(&folder);
    tested.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn content(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8).collect()
}

#[test]
fn a_server_that_tells_facts_keeps_the_rules() {
    let failures = testing::failures(|| Plain::new(Style::Facts));
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_server_that_tells_no_facts_keeps_the_rules() {
    let failures = testing::failures(|| Plain::new(Style::Bare));
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn a_server_in_extended_block_mode_keeps_the_rules() {
    with_extended("rules", |server| {
        let mut failures = testing::failures(|| Extended::new(server));
        // Without a character set of its own this server takes some names for others, so they are refused.
        failures.retain(|failure| !failure.starts_with("names may be any bytes: "));
        assert!(failures.is_empty(), "{failures:#?}");
    });
}

#[test]
fn a_large_draft_in_extended_block_mode_is_resumed() {
    with_extended("resumed", |server| {
        let rig = Extended::new(server);
        let (store, bytes) = (rig.ftp(), content(30 * MIB + 5));
        let size = bytes.len() as u64;
        let make = Make { size: Some(size), ..Make::default() };
        let draft = store.create(&path("f"), &make).unwrap();
        let (token, middle) = (draft.token(), 20 * MIB);
        draft.write_at(0, &bytes[..middle]).unwrap();
        // The synced bytes are stored, and the upload goes on.
        draft.sync().unwrap();
        let partial = rig.root.join(std::str::from_utf8(&token.0).unwrap());
        assert_eq!(fs::metadata(&partial).unwrap().len(), middle as u64);
        draft.write_at(middle as u64, &bytes[middle..middle + MIB]).unwrap();
        draft.keep();
        drop(draft);
        let store = rig.ftp();
        let draft = store.take_up(&path("f"), &token).unwrap();
        let mut back = vec![0; MIB];
        assert_eq!(draft.read_at(middle as u64, &mut back).unwrap(), MIB);
        assert!(back == bytes[middle..middle + MIB]);
        draft.write_at((middle + MIB) as u64, &bytes[middle + MIB..]).unwrap();
        draft.set_len(size).unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
        assert!(fs::read(rig.root.join("f")).unwrap() == bytes);
        assert!(!partial.exists());
    });
}

#[test]
fn directories_in_extended_block_mode_are_listed_and_made_over_one_session() {
    with_extended("dirs", |server| {
        let (rig, dirs) = (Extended::new(server), 100);
        let store = rig.ftp();
        let paths: Vec<_> = (0..dirs).map(|number| path(&format!("d{number:03}"))).collect();
        let ops: Vec<_> = paths.iter().map(|path| Op::MakeDir(path, 0o750)).collect();
        let mut made = 0;
        store.batch(&ops, &mut |_, reply| made += usize::from(reply.is_ok()));
        assert_eq!(made, dirs);
        let mode = fs::metadata(rig.root.join("d042")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        // Those that exist stay as they are.
        let ops: Vec<_> = paths.iter().map(|path| Op::MakeDir(path, 0o700)).collect();
        store.batch(&ops, &mut |_, reply| {
            assert_eq!(reply.unwrap_err().kind, hikyaku_store::ErrorKind::Exists);
        });
        let mode = fs::metadata(rig.root.join("d042")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        fs::write(rig.root.join("d099/f"), b"1").unwrap();
        // The server sends the entries of so large a directory in several replies.
        let many = 2500;
        (0..many).for_each(|number| {
            fs::write(rig.root.join(format!("d042/{number}")), b"").unwrap();
        });
        let mut found = Vec::new();
        let each = &mut |entry: Entry| {
            found.push(entry.path.to_string());
            ControlFlow::Continue(())
        };
        store.walk(&StorePath::ROOT, each).unwrap();
        assert_eq!(found.len(), 1 + dirs + 1 + many);
        assert!(found.contains(&"d099/f".to_owned()));
    });
}

#[test]
fn a_store_is_a_directory_that_exists() {
    let plain = Plain::new(Style::Facts);
    fs::create_dir(plain.there("d")).unwrap();
    fs::write(plain.there("d/f"), b"1").unwrap();
    assert!(plain.ftp("/d").unwrap().look(&path("f")).is_ok());
    assert!(matches!(plain.ftp("/none"), Err(OpenError::NotFound(_))));
    assert!(matches!(plain.ftp("/d/f"), Err(OpenError::NotDir(_))));
}

#[test]
fn a_walk_reports_a_link_and_does_not_enter_it() {
    for style in STYLES {
        let plain = Plain::new(style);
        fs::create_dir_all(plain.there("t/sub")).unwrap();
        fs::write(plain.there("t/sub/f"), b"1").unwrap();
        std::os::unix::fs::symlink(".", plain.there("t/circle")).unwrap();
        let mut found = Vec::new();
        plain
            .ftp("/")
            .unwrap()
            .walk(&path("t"), &mut |entry: Entry| {
                found.push((entry.path.to_string(), entry.found.unwrap().kind));
                ControlFlow::Continue(())
            })
            .unwrap();
        found.sort();
        let wanted = [
            ("t", Kind::Dir),
            ("t/circle", Kind::Special),
            ("t/sub", Kind::Dir),
            ("t/sub/f", Kind::File),
        ];
        assert_eq!(found, wanted.map(|(name, kind)| (name.to_owned(), kind)), "{style:?}");
    }
}

#[test]
fn a_large_draft_goes_in_order_and_leaves_nothing_when_it_is_dropped() {
    let plain = Plain::new(Style::Bare);
    let store = plain.ftp("/").unwrap();
    let bytes = content(30 * MIB + 5);
    let Writes::Window { bytes: window } = store.abilities().writes else { panic!("no window") };
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    // Each pair of blocks in the wrong order.
    let mut blocks: Vec<(usize, &[u8])> = bytes.chunks(MIB).enumerate().collect();
    blocks.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1));
    for (number, block) in &blocks {
        draft.write_at((number * MIB) as u64, block).unwrap();
    }
    let mut back = [0; 10];
    assert_eq!(draft.read_at(15 * MIB as u64, &mut back).unwrap(), 10);
    assert_eq!(back, bytes[15 * MIB..][..10]);
    assert_eq!(draft.name(Naming::Replace, &Finish::default()).unwrap().size, bytes.len() as u64);
    assert!(fs::read(plain.there("f")).unwrap() == bytes);
    let draft = store.create(&path("g"), &Make::default()).unwrap();
    for (number, block) in bytes.chunks(MIB).enumerate() {
        draft.write_at((number * MIB) as u64, block).unwrap();
    }
    assert!(draft.write_at(bytes.len() as u64 + 2 * window, b"x").is_err());
    drop(draft);
    let names: Vec<_> =
        fs::read_dir(&plain.0.data).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["f"]);
}

#[test]
fn a_draft_that_the_server_cuts_fails() {
    let plain = Plain::new(Style::Facts);
    let store = plain.ftp("/").unwrap();
    plain.0.cut_next(10 * MIB as u64);
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    let write = |number: u64| draft.write_at(number * MIB as u64, &vec![1; MIB]);
    let written: Result<Vec<_>, _> = (0..40).map(write).collect();
    let failed = written.map(drop).and_then(|()| draft.sync());
    assert_eq!(failed.unwrap_err().kind, hikyaku_store::ErrorKind::Unreachable);
    assert!(draft.name(Naming::Replace, &Finish::default()).is_err());
    assert_eq!(fs::read_dir(&plain.0.data).unwrap().count(), 0);
}

/// Attempts that follow at once.
fn persistent(store: Ftp) -> Ftp {
    let retry = Retry { attempts: 2, interval: Duration::from_millis(1) };
    store.with_writing(Writing { retry, ..Writing::default() })
}

#[test]
fn a_draft_that_the_server_cuts_goes_on_at_what_is_stored() {
    for style in STYLES {
        let plain = Plain::new(style);
        let store = persistent(plain.ftp("/").unwrap());
        let (bytes, cut) = (content(30 * MIB + 5), 10 * MIB as u64 + 7);
        plain.0.cut_next(cut);
        let make = Make { size: Some(bytes.len() as u64), ..Make::default() };
        let draft = store.create(&path("f"), &make).unwrap();
        for (number, block) in bytes.chunks(MIB).enumerate() {
            draft.write_at((number * MIB) as u64, block).unwrap();
        }
        draft.name(Naming::Replace, &Finish::default()).unwrap();
        assert!(fs::read(plain.there("f")).unwrap() == bytes, "{style:?}");
        let commands = plain.0.commands();
        assert!(commands.contains(&format!("REST {cut}")), "{style:?}: {commands:?}");
    }
}

#[test]
fn a_draft_in_stream_mode_is_resumed_at_what_is_stored() {
    let plain = Plain::new(Style::Bare);
    let (bytes, cut) = (content(30 * MIB + 5), 20 * MIB + 7);
    plain.0.cut_next(cut as u64);
    let store = plain.ftp("/").unwrap();
    let make = Make { size: Some(bytes.len() as u64), ..Make::default() };
    let draft = store.create(&path("f"), &make).unwrap();
    let token = draft.token();
    draft.keep();
    let write = |(number, block): (usize, &[u8])| draft.write_at((number * MIB) as u64, block);
    let written = bytes.chunks(MIB).enumerate().try_for_each(write);
    assert!(written.and_then(|()| draft.sync()).is_err());
    drop(draft);
    let store = plain.ftp("/").unwrap();
    let draft = store.take_up(&path("f"), &token).unwrap();
    assert_eq!(draft.stored().unwrap(), Some(cut as u64));
    // It is read, and goes on before its end.
    let mut back = [0; 10];
    assert_eq!(draft.read_at(MIB as u64, &mut back).unwrap(), 10);
    assert_eq!(back, bytes[MIB..][..10]);
    let at = 19 * MIB;
    draft.write_at(at as u64, &bytes[at..at + MIB]).unwrap();
    draft.write_at((at + MIB) as u64, &bytes[at + MIB..]).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert!(fs::read(plain.there("f")).unwrap() == bytes);
}

/// A way to a server whose control connection ends behind this number of complete parts, once.
fn cut_behind(server: &GridFtp, parts: usize) -> u16 {
    let address = server.url.strip_prefix("ftp://").unwrap();
    let address = address[..address.find('/').unwrap()].to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let left = Arc::new(AtomicUsize::new(parts));
    thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let (far, left) = (TcpStream::connect(&address).unwrap(), Arc::clone(&left));
            let (mut from, mut to) = (client.try_clone().unwrap(), far.try_clone().unwrap());
            thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
            });
            thread::spawn(move || {
                let (mut replies, mut line) = (BufReader::new(far), Vec::new());
                while replies.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
                    let is_done = line.starts_with(b"226 ");
                    if is_done && left.fetch_sub(1, Ordering::Relaxed) == 1 {
                        let _ = client.shutdown(Shutdown::Both);
                        return;
                    }
                    if (&client).write_all(&std::mem::take(&mut line)).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn blocks_that_were_not_confirmed_are_sent_again_in_extended_block_mode() {
    with_extended("again", |server| {
        let rig = Extended::new(server);
        let (host, login) = ("127.0.0.1".to_owned(), Login::Anonymous);
        let far = Server { host, port: cut_behind(server, 3), login };
        let root = rig.root.to_str().unwrap().as_bytes();
        let store = persistent(Ftp::open(&far, &Settings::default(), root).unwrap());
        let bytes = content(60 * MIB + 5);
        let make = Make { size: Some(bytes.len() as u64), ..Make::default() };
        let draft = store.create(&path("f"), &make).unwrap();
        for (number, block) in bytes.chunks(MIB).enumerate() {
            draft.write_at((number * MIB) as u64, block).unwrap();
        }
        draft.sync().unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
        assert!(fs::read(rig.root.join("f")).unwrap() == bytes);
    });
}

#[test]
fn a_file_that_grows_under_its_own_name_is_the_same_file() {
    for style in STYLES {
        let plain = Plain::new(style);
        let store = plain.ftp("/").unwrap();
        for size in [0, 5, 9 * MIB] {
            fs::write(plain.there("f"), content(MIB)).unwrap();
            let before = fs::metadata(plain.there("f")).unwrap().ino();
            let make = Make { size: Some(size as u64), ..Make::default() };
            let draft = store.grow(&path("f"), &make, Growing::Anew).unwrap();
            if size > 0 {
                draft.write_at(0, &content(size)).unwrap();
            }
            draft.name(Naming::Replace, &Finish::default()).unwrap();
            assert!(fs::read(plain.there("f")).unwrap() == content(size), "{style:?} {size}");
            assert_eq!(fs::metadata(plain.there("f")).unwrap().ino(), before);
        }
        // The written bytes stay.
        let make = Make { size: Some(100), ..Make::default() };
        let draft = store.grow(&path("f"), &make, Growing::Anew).unwrap();
        draft.write_at(0, b"12345").unwrap();
        draft.sync().unwrap();
        draft.discard();
        assert_eq!(fs::read(plain.there("f")).unwrap(), b"12345");
    }
}

#[test]
fn a_stream_is_one_command_and_ends_when_the_caller_breaks() {
    for style in STYLES {
        let plain = Plain::new(style);
        let bytes = content(5 * MIB + 3);
        fs::write(plain.there("f"), &bytes).unwrap();
        let store = plain.ftp("/").unwrap();
        let open = store.open(&path("f"), Access::Read).unwrap();
        let mut got = Vec::new();
        let passed = open.stream(1000..u64::MAX, &mut |block| {
            got.extend_from_slice(block);
            ControlFlow::Continue(())
        });
        assert_eq!(passed.unwrap(), bytes.len() as u64 - 1000);
        assert!(got == bytes[1000..], "{style:?}");
        let retrs = |plain: &Plain| {
            plain.0.commands().iter().filter(|line| line.starts_with("RETR")).count()
        };
        assert_eq!(retrs(&plain), 1, "{style:?}");
        assert!(open.stream(0..u64::MAX, &mut |_| ControlFlow::Break(())).unwrap() > 0);
        assert!(open.is_unchanged().unwrap());
        fs::write(plain.there("f"), b"another").unwrap();
        assert!(!open.is_unchanged().unwrap());
        assert!(open.stream(0..u64::MAX, &mut |_| ControlFlow::Continue(())).is_err());
    }
}

#[test]
fn a_fetcher_reads_ranges_and_small_files_and_follows_a_cut() {
    for style in STYLES {
        let plain = Plain::new(style);
        let bytes = content(6 * MIB + 77);
        fs::write(plain.there("f"), &bytes).unwrap();
        fs::write(plain.there("small"), b"small").unwrap();
        fs::write(plain.there("empty"), b"").unwrap();
        let store = plain.ftp("/").unwrap();
        let fetchers = store.own_fetchers(2).unwrap();
        assert_eq!(fetchers.len(), 2);
        let wanted = |name: &str| {
            let found = store.look(&path(name)).unwrap();
            let (size, modified) = (found.size, found.modified);
            Wanted { path: path(name), size, modified, content: None }
        };
        let (file, mib) = (wanted("f"), MIB as u64);
        let fetch = |ranges: &[std::ops::Range<u64>], cut: &Cut| {
            let mut segments = Vec::new();
            let arrived = AtomicU64::new(0);
            let count = |bytes| {
                arrived.fetch_add(bytes, Ordering::Relaxed);
            };
            let damaged =
                fetchers[0].ranges(&file, &Asked::whole(ranges), cut, &count, &mut |segment| {
                    let at = segment.index.0 as usize * MIB;
                    assert!(segment.bytes == &bytes[at..bytes.len().min(at + MIB)], "{style:?}");
                    segments.push(segment.index.0);
                });
            assert_eq!(damaged.unwrap(), 0);
            segments.sort_unstable();
            (segments, arrived.into_inner())
        };
        let ranges = [mib..3 * mib, 5 * mib..file.size];
        let (segments, arrived) = fetch(&ranges, &Cut::default());
        assert_eq!((segments, arrived), (vec![1, 2, 5, 6], 3 * mib + 77), "{style:?}");
        let cut = Cut::default();
        cut.at(2 * mib);
        assert_eq!(fetch(std::slice::from_ref(&(0..file.size)), &cut).0, [0, 1], "{style:?}");
        let (small, empty) = (wanted("small"), wanted("empty"));
        let missing = Wanted { path: path("none"), ..small.clone() };
        let mut got = vec![None; 3];
        let files = [&small, &missing, &empty];
        fetchers[1]
            .small(&files, &Cut::default(), &|_| (), &mut |at, content| got[at] = content.ok())
            .unwrap();
        assert_eq!(got, [Some(b"small".to_vec()), None, Some(Vec::new())], "{style:?}");
        fs::write(plain.there("f"), b"another").unwrap();
        let changed = fetchers[0].ranges(
            &file,
            &Asked::whole(&ranges),
            &Cut::default(),
            &|_| (),
            &mut |_| (),
        );
        assert_eq!(changed, Err(FetchError::File(hikyaku_store::ErrorKind::Changed)));
        assert!(fetchers[0].is_alive());
    }
}

#[test]
fn a_file_that_changes_while_it_is_fetched_is_never_complete() {
    for style in STYLES {
        let plain = Plain::new(style);
        fs::write(plain.there("f"), content(6 * MIB)).unwrap();
        let store = plain.ftp("/").unwrap();
        let found = store.look(&path("f")).unwrap();
        let (size, modified) = (found.size, found.modified);
        let file = Wanted { path: path("f"), size, modified, content: None };
        let change = |_| {
            let file = fs::File::options().write(true).open(plain.there("f")).unwrap();
            file.set_modified(SystemTime::now() + Duration::from_secs(100)).unwrap();
        };
        let (mut passed, cut, all) = (0, Cut::default(), 0..size);
        let fetcher = store.own_fetchers(1).unwrap().remove(0);
        let fetched =
            fetcher.ranges(&file, &Asked::whole(&[all]), &cut, &change, &mut |_| passed += 1);
        assert_eq!(fetched, Err(FetchError::File(hikyaku_store::ErrorKind::Changed)));
        assert!(passed < 6, "{style:?}: {passed} segments");
    }
}

#[test]
fn many_directories_are_listed_at_once_where_the_server_takes_several_sessions() {
    for (style, sessions_max) in
        [(Style::Facts, None), (Style::Bare, None), (Style::Facts, Some(1))]
    {
        let plain = Plain::new(style);
        let mut wanted = vec!["t".to_owned()];
        for (dir, sub) in (0..30).flat_map(|dir| [(dir, "a"), (dir, "b")]) {
            let path = format!("t/{dir:02}/{sub}");
            fs::create_dir_all(plain.there(&path)).unwrap();
            fs::write(plain.there(&path).join("f"), b"1").unwrap();
            wanted.extend([path.clone(), format!("{path}/f"), format!("t/{dir:02}")]);
        }
        sessions_max.into_iter().for_each(|most| plain.0.set_sessions_max(most));
        let mut found = Vec::new();
        let walked = plain.ftp("/").unwrap().walk(&path("t"), &mut |entry: Entry| {
            found.push(entry.found.map(|_| entry.path.to_string()).unwrap());
            ControlFlow::Continue(())
        });
        walked.unwrap();
        // All entries of a directory stand together.
        let place = |name: &str| found.iter().position(|other| other == name).unwrap();
        assert_eq!(place("t/29"), 30, "{found:?}");
        assert!(place("t/00/b") == place("t/00/a") + 1, "{found:?}");
        found.sort();
        wanted.sort();
        wanted.dedup();
        assert_eq!(found, wanted, "{style:?}");
        let logins = plain.0.commands().iter().filter(|line| line.starts_with("USER")).count();
        assert_eq!(logins > 1, sessions_max.is_none(), "{logins}");
    }
}
