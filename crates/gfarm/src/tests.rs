//! Against Gfarm's own servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use super::*;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use xtask::servers::gfarm::{Gfarm, NEEDS, Plan};

/// A Gfarm that is ended with the test; `None` where Debian's packages are missing.
struct Servers {
    gfarm: Gfarm,
    dir: PathBuf,
}

impl Servers {
    fn up(name: &str, nodes: u8) -> Option<Self> {
        if !NEEDS.iter().all(xtask::Need::is_present) {
            println!("SKIPPED: no Gfarm here (try: apt-get install gfmd gfsd gfarm-client)");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("hikyaku-gfarm-{name}-{}", std::process::id()));
        let gfarm = Gfarm::up(&dir, &Plan { nodes, ..Plan::default() }).unwrap();
        Some(Self { gfarm, dir })
    }

    /// Stores a file of these bytes, on `copies` nodes.
    fn put(&self, name: &str, bytes: &[u8], copies: usize) {
        let local = self.dir.join("local");
        fs::write(&local, bytes).unwrap();
        self.gfarm.run("gfreg", &[local.to_str().unwrap(), name]).unwrap();
        if copies > 1 {
            self.gfarm.run("gfrep", &["-q", "-N", &copies.to_string(), name]).unwrap();
        }
    }

    fn config(&self) -> Config {
        let text = fs::read_to_string(self.gfarm.config()).unwrap();
        let value = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        let port = value("metadb_server_port").parse().unwrap();
        Config {
            metadata: vec![Address { host: value("metadb_server_host"), port }],
            key_file: value("shared_key_file").into(),
            user: String::from_utf8(
                std::process::Command::new("id").arg("-un").output().unwrap().stdout,
            )
            .unwrap()
            .trim()
            .to_owned(),
            dial: Dial::default(),
        }
    }

    fn connect(&self) -> (Metadata, Account) {
        let config = self.config();
        let account = config.account().unwrap();
        (Metadata::connect(&config.metadata, &account).unwrap(), account)
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.gfarm.down().unwrap();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Bytes that follow from their offset.
fn bytes(length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(length as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

#[test]
fn names_and_replicas_are_told() {
    let Some(servers) = Servers::up("names", 2) else { return };
    let gfarm = &servers.gfarm;
    servers.put("/a", b"hello", 2);
    gfarm.run("gfmkdir", &["/d"]).unwrap();
    gfarm.run("gfln", &["-s", "../a", "/d/link"]).unwrap();
    for n in 0..3 {
        servers.put(&format!("/d/{n}"), &bytes(n), 1);
    }
    let (metadata, _) = servers.connect();
    let mut hosts: Vec<String> =
        metadata.hosts().unwrap().into_iter().map(|host| host.address.to_string()).collect();
    let address = |node: &std::net::Ipv4Addr| format!("{node}:{}", gfarm.port());
    hosts.sort();
    assert_eq!(hosts, gfarm.nodes().iter().map(address).collect::<Vec<_>>());

    let looked = metadata.look(&[b"", b"a", b"/d/", b"d/link", b"b", b"a/b", b"d/2"]).unwrap();
    let told: Vec<_> =
        looked.iter().map(|one| one.as_ref().map(|stat| (stat.kind, stat.size))).collect();
    let wanted = [
        Ok((Kind::Dir, 0)),
        Ok((Kind::File, 5)),
        Ok((Kind::Dir, 0)),
        Ok((Kind::Link, 0)),
        Err(&Code::NOT_FOUND),
        Err(&Code::NOT_DIR),
        Ok((Kind::File, 2)),
    ];
    // An error leaves the answers behind it in order. Sizes of directories and links are gfmd's.
    for (told, wanted) in told.into_iter().zip(wanted) {
        match (told, wanted) {
            (Ok((Kind::File, size)), wanted) => assert_eq!(Ok((Kind::File, size)), wanted),
            (told, wanted) => assert_eq!(told.map(|told| told.0), wanted.map(|wanted| wanted.0)),
        }
    }
    assert_eq!(metadata.read_links(&[b"d/link"]).unwrap(), [Ok(b"../a".to_vec())]);

    let listed = metadata.list(&[b"d", b"a", b"none"]).unwrap();
    let [Ok(entries), Err(Code::NOT_DIR), Err(Code::NOT_FOUND)] = listed.as_slice() else {
        panic!("{listed:?}");
    };
    let mut names: Vec<&[u8]> = entries.iter().map(|(name, _)| name.as_slice()).collect();
    names.sort();
    assert_eq!(names, [&b"0"[..], b"1", b"2", b"link"]);

    let replicas = metadata.replicas(&[b"a", b"d/2"]).unwrap();
    let counts: Vec<usize> = replicas
        .into_iter()
        .map(|told| {
            let (stat, replicas) = told.unwrap();
            assert!(replicas.iter().all(|replica| {
                replica.is_up && replica.is_complete && replica.generation == stat.handle.generation
            }));
            replicas.len()
        })
        .collect();
    assert_eq!(counts, [2, 1]);
}

#[test]
fn a_directory_of_many_pages_is_listed() {
    let Some(servers) = Servers::up("pages", 1) else { return };
    // So many compounds are sent ahead as well.
    let names: Vec<String> = (0..1100).map(|n| format!("/{n}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    servers.gfarm.run("gfmkdir", &names).unwrap();
    let (metadata, _) = servers.connect();
    let entries = metadata.list(&[b""]).unwrap().remove(0).unwrap();
    assert_eq!(entries.len(), 1100);
    assert!(entries.iter().all(|(_, stat)| stat.kind == Kind::Dir));
    let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
    assert!(metadata.look(&names).unwrap().iter().all(Result::is_ok));
}

#[test]
fn ranges_and_small_files_are_read() {
    let Some(servers) = Servers::up("ranges", 1) else { return };
    let whole = bytes((20 << 20) + 77);
    servers.put("/big", &whole, 1);
    for n in [0, 1, 70_000] {
        servers.put(&format!("/{n}"), &bytes(n), 1);
    }
    let (metadata, account) = servers.connect();
    let node = metadata.hosts().unwrap().remove(0).address;
    let mut spool = Spool::connect(&node, &account, metadata.process()).unwrap();
    let open = || metadata.open(&[b"big"]).unwrap().remove(0).unwrap();

    let big = open();
    spool.open(&big).unwrap();
    for range in [5..100, 1 << 20..18 << 20, (20 << 20) - 1..whole.len() as u64, 7..7] {
        let mut next = range.start;
        let each = |at: u64, block: &[u8]| {
            assert_eq!(at, next);
            assert!(whole[at as usize..][..block.len()] == *block);
            next += block.len() as u64;
            ControlFlow::Continue(())
        };
        spool.read(&big, range.clone(), each).unwrap();
        assert_eq!(next, range.end);
    }
    spool.close(&big).unwrap();
    let closed = metadata.close(std::slice::from_ref(&big)).unwrap().remove(0).unwrap();
    assert_eq!(closed, big.stat);

    for (file, n) in metadata.open(&[b"0", b"1", b"70000"]).unwrap().into_iter().zip([0, 1, 70_000])
    {
        let file = file.unwrap();
        spool.open(&file).unwrap();
        assert!(spool.read_small(&file).unwrap() == bytes(n), "{n}");
        spool.close(&file).unwrap();
        metadata.close(std::slice::from_ref(&file)).unwrap();
        // Its number is known no more, and the connection goes on.
        assert!(matches!(spool.open(&file), Err(CallError::Refused(_))));
        assert!(spool.is_usable());
    }

    // The node's own descriptor of the replica.
    let big = open();
    let mut local = Spool::connect_local(&node, &account, metadata.process()).unwrap().unwrap();
    let mut file = local.descriptor(&big).unwrap();
    local.close(&big).unwrap();
    metadata.close(std::slice::from_ref(&big)).unwrap();
    let mut read = Vec::new();
    std::io::Read::read_to_end(&mut file, &mut read).unwrap();
    assert!(read == whole);
    assert!(matches!(local.descriptor(&big), Err(CallError::Refused(_))));
    assert!(local.is_usable());

    // Beyond the end.
    let big = open();
    spool.open(&big).unwrap();
    let end = whole.len() as u64;
    let short = spool.read(&big, end - 10..end + 1, |_, _| ControlFlow::Continue(()));
    assert_eq!(short, Err(CallError::Short));
    // A reader that has enough.
    let mut blocks = 0;
    let each = |_, _: &[u8]| {
        blocks += 1;
        ControlFlow::Break(())
    };
    spool.read(&big, 0..end, each).unwrap();
    assert_eq!(blocks, 1);
    assert!(!spool.is_usable());
}

#[test]
fn a_wrong_key_is_refused_with_words() {
    let Some(servers) = Servers::up("key", 1) else { return };
    let config = servers.config();
    let account = |user: &str, key: SharedKey| {
        let dial = Dial::default();
        Account { user: user.to_owned(), key, dial }
    };
    let other = SharedKey::parse(&format!("7fffffff {}", "5a".repeat(32))).unwrap();
    let told = |account: &Account| {
        let error = Metadata::connect(&config.metadata, account).unwrap_err();
        assert!(matches!(error, ConnectError::Denied { .. }), "{error}");
        assert!(error.remedy().unwrap().contains(".gfarm_shared_key"));
        error.to_string()
    };
    let text = told(&account(&config.user, other));
    assert!(text.contains("does not accept the shared key of"), "{text}");
    let good = config.account().unwrap().key;
    let text = told(&account("nobody-of-this-name", good));
    assert!(text.contains("nobody-of-this-name"), "{text}");
}

#[test]
fn a_server_that_is_away_is_told() {
    let Some(servers) = Servers::up("away", 1) else { return };
    let config = servers.config();
    let (metadata, account) = servers.connect();
    servers.gfarm.kill_gfmd().unwrap();
    assert!(matches!(metadata.look(&[b""]), Err(CallError::MetadataLost { .. })));
    let again = Metadata::connect(&config.metadata, &account).unwrap_err();
    assert!(matches!(again, ConnectError::Connect { .. }), "{again}");
    assert!(again.is_worth_retrying());
}
