//! Servers without extended block mode: files in stream mode, facts and listings of both kinds of servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use hikyaku_gridftp::{
    Channel, FtpError, Kind, Login, Made, Mode, Part, Plan, Progress, Rename, Server, Settings,
    Store, Transferred, Wanted,
};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use xtask::servers::ftp::{PlainFtp, Style};

const STYLES: [Style; 2] = [Style::Facts, Style::Bare];
const BYTES: u64 = 3_000_007;

/// A server with a folder of its own, which is removed at the end.
struct Stage(PlainFtp);

impl Stage {
    fn new(name: &str, style: Style) -> Self {
        let name = format!("gridftp-{name}-{style:?}-{}", std::process::id());
        Self(PlainFtp::start(&std::env::temp_dir().join(name), style).unwrap())
    }

    fn open(&self) -> Channel {
        let (host, port) = (self.0.address.ip().to_string(), self.0.address.port());
        let server = Server { host, port, login: Login::Anonymous };
        let channel = Channel::open(&server, &Settings::default()).unwrap();
        assert_eq!(channel.mode(), Mode::Stream);
        channel
    }

    fn there(&self, name: &str) -> PathBuf {
        self.0.data.join(name)
    }

    /// How many commands with this verb it was sent.
    fn count(&self, verb: &str) -> usize {
        self.0.commands().iter().filter(|line| line.split(' ').next() == Some(verb)).count()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0.data);
    }
}

fn byte(offset: u64) -> u8 {
    (offset % 251) as u8
}

fn content(range: std::ops::Range<u64>) -> Vec<u8> {
    range.map(byte).collect()
}

/// Parts of a file, one after the other.
struct Parts<'a>(Vec<(u64, u64)>, Arc<Store<'a>>);

impl<'a> Plan<'a, Arc<Store<'a>>> for Parts<'a> {
    fn next(&mut self, _: Option<&Progress>) -> Option<Wanted<'a, Arc<Store<'a>>>> {
        let (offset, length) = (!self.0.is_empty()).then(|| self.0.remove(0))?;
        let part = Part { path: b"/f", offset, length };
        Some(Wanted { part, connections: 4, with: Arc::clone(&self.1) })
    }

    fn done(&mut self, done: &Transferred) {
        assert_eq!(done.connections, 1);
    }
}

#[test]
fn parts_that_follow_each_other_come_by_one_command() {
    let stage = Stage::new("parts", Style::Bare);
    fs::write(stage.there("f"), content(0..BYTES)).unwrap();
    let mut channel = stage.open();
    // The third one begins elsewhere, and so does the last one, which ends before the file.
    let parts = [(0, 1_000_000), (1_000_000, 500_000), (2_000_000, BYTES - 2_000_000), (7, 10)];
    let got = Mutex::new(Vec::new());
    let store: Arc<Store<'_>> = Arc::new(|at, bytes: &[u8]| {
        got.lock().unwrap().push((at, bytes.to_vec()));
        Ok(())
    });
    channel.download(&mut Parts(parts.to_vec(), store), &AtomicU64::new(0)).unwrap();
    assert!(channel.is_in_step());
    let mut want: Vec<u64> = parts.iter().flat_map(|&(at, length)| at..at + length).collect();
    for (at, bytes) in got.into_inner().unwrap() {
        let end = at + bytes.len() as u64;
        assert!(bytes == content(at..end), "other bytes at {at}");
        let place = want.iter().position(|&wanted| wanted == at).unwrap();
        assert_eq!(want[place + bytes.len() - 1], end - 1);
        want.drain(place..place + bytes.len());
    }
    assert_eq!(want, [0; 0]);
    assert_eq!((stage.count("RETR"), stage.count("REST")), (3, 2));
    // The channel is of use for the next command.
    assert_eq!(channel.facts(b"/f").unwrap().unwrap().size, Some(BYTES));
}

#[test]
fn a_file_is_stored_whole_and_from_an_offset_on() {
    let stage = Stage::new("store", Style::Bare);
    let mut channel = stage.open();
    let counted = AtomicU64::new(0);
    let mut put = |offset: u64, length: u64| {
        let part = Part { path: b"/f", offset, length };
        channel.put(&part, 4, &counted, |at, bytes: &mut [u8]| {
            bytes.copy_from_slice(&content(at..at + bytes.len() as u64));
            Ok(())
        })
    };
    put(0, 2_000_000).unwrap();
    put(2_000_000, BYTES - 2_000_000).unwrap();
    assert!(fs::read(stage.there("f")).unwrap() == content(0..BYTES));
    put(0, 0).unwrap();
    assert_eq!(fs::read(stage.there("f")).unwrap(), b"");
    let missing = Part { path: b"/none/f", offset: 0, length: 10_000_000 };
    let refused = channel.put(&missing, 1, &counted, |_, _| Ok(())).unwrap_err();
    assert!(matches!(refused, FtpError::Refused { code: 550, .. }), "{refused}");
    assert!(refused.leaves_channel() && channel.is_in_step());
}

#[test]
fn a_transfer_that_is_cut_fails_with_the_reply_of_the_server() {
    let stage = Stage::new("cut", Style::Facts);
    fs::write(stage.there("f"), content(0..BYTES)).unwrap();
    let (mut channel, counted) = (stage.open(), AtomicU64::new(0));
    let part = Part { path: b"/f", offset: 0, length: BYTES };
    stage.0.cut_next(1_000_000);
    let error = channel.get(&part, 1, &counted, |_, _| Ok(())).unwrap_err();
    assert!(matches!(error, FtpError::Refused { code: 426, .. }) && error.may_pass(), "{error}");
    stage.0.cut_next(1_000_000);
    let error = channel.put(&part, 1, &counted, |_, _| Ok(())).unwrap_err();
    assert!(matches!(error, FtpError::Refused { code: 426, .. }) && error.may_pass(), "{error}");
    // A file that is shorter than its announced size.
    fs::write(stage.there("f"), b"short").unwrap();
    let error = channel.get(&part, 1, &counted, |_, _| Ok(())).unwrap_err();
    assert!(error.to_string().contains("before all of it"), "{error}");
    let none = Part { path: b"/none", ..part };
    let error = channel.get(&none, 1, &counted, |_, _| Ok(())).unwrap_err();
    assert!(matches!(error, FtpError::Refused { code: 550, .. }), "{error}");
    assert!(channel.is_in_step());
}

#[test]
fn facts_and_listings_of_both_kinds_of_servers_are_the_same() {
    for style in STYLES {
        let stage = Stage::new("facts", style);
        let mut channel = stage.open();
        fs::create_dir_all(stage.there("d/sub \"quoted\"")).unwrap();
        fs::write(stage.there("d/a b"), b"12345").unwrap();
        fs::write(stage.there("d/.hidden"), b"1").unwrap();
        let old = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        fs::File::options()
            .write(true)
            .open(stage.there("d/a b"))
            .unwrap()
            .set_modified(old)
            .unwrap();
        let facts = channel.facts(b"/d/a b").unwrap().unwrap();
        assert_eq!((facts.kind, facts.size), (Kind::File, Some(5)), "{style:?}");
        assert_eq!(facts.modified.as_deref(), Some("20010909014640"), "{style:?}");
        for dir in [&b"/d"[..], b"/d/", b"/d/sub \"quoted\"", b"/"] {
            assert_eq!(channel.facts(dir).unwrap().unwrap().kind, Kind::Directory, "{style:?}");
        }
        assert_eq!(channel.facts(b"~/d/a b").unwrap().unwrap(), facts, "{style:?}");
        assert_eq!(channel.facts(b"/d/none").unwrap(), None, "{style:?}");
        assert_eq!(channel.facts(b"d/none").unwrap(), None, "{style:?}");
        for dir in [&b"/d"[..], b"/d/"] {
            let mut entries = channel.list(dir).unwrap();
            entries.sort_by_key(|entry| entry.name.clone().unwrap());
            let found: Vec<_> = entries
                .iter()
                .map(|entry| (entry.name.as_ref().unwrap().as_bytes(), entry.facts.kind))
                .collect();
            let want: [(&[u8], Kind); 3] = [
                (b".hidden", Kind::File),
                (b"a b", Kind::File),
                (b"sub \"quoted\"", Kind::Directory),
            ];
            assert_eq!(found, want, "{style:?}");
            assert_eq!(entries[1].facts.size, Some(5));
            assert_eq!(entries[1].facts.modified.as_deref(), Some("20010909014640"), "{style:?}");
        }
        assert_eq!(channel.list(b"/d/sub \"quoted\"").unwrap(), [], "{style:?}");
        assert!(matches!(channel.list(b"/none"), Err(FtpError::Refused { code: 550, .. })));
        let paths = [b"/d/a b".to_vec(), b"/none".to_vec(), b"/d".to_vec()];
        let kinds: Vec<_> = channel.facts_of_each(&paths, 1).unwrap();
        let kinds: Vec<_> = kinds.into_iter().map(|facts| facts.map(|facts| facts.kind)).collect();
        assert_eq!(kinds, [Some(Kind::File), None, Some(Kind::Directory)], "{style:?}");
        assert!(channel.is_in_step());
    }
}

#[test]
fn names_are_made_changed_and_removed() {
    for style in STYLES {
        let stage = Stage::new("names", style);
        let mut channel = stage.open();
        assert_eq!(channel.make_dirs(b"/a/b/").unwrap(), Made::New);
        assert_eq!(channel.make_dirs(b"/a/b/").unwrap(), Made::Before);
        fs::write(stage.there("a/f"), b"1").unwrap();
        let rename = Rename { from: b"/a/f", to: b"/a/b/g", mode: Some(0o600), modified: None };
        channel.rename(&rename).unwrap();
        assert_eq!(fs::read(stage.there("a/b/g")).unwrap(), b"1");
        assert_eq!(channel.set_mode(b"/a/b/g", 0o640).is_ok(), style == Style::Facts);
        assert_eq!(channel.set_modified(b"/a/b/g", 1_000_000_000).is_ok(), style == Style::Facts);
        assert!(channel.remove_dir(b"/a/b").is_err());
        channel.remove(b"/a/b/g").unwrap();
        channel.remove_dir(b"/a/b").unwrap();
        assert_eq!(fs::read_dir(stage.there("a")).unwrap().count(), 0);
    }
}
