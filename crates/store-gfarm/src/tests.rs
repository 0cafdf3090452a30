//! Against Gfarm's own servers.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use super::*;
use hikyaku_gfarm::{Address, Config};
use hikyaku_store::{
    Access, Asked, Cut, ErrorKind, FetchError, Fetcher, Kind, Segment, Store, StorePath, Wanted,
    testing,
};
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use xtask::servers::gfarm::{Gfarm as Servers, NEEDS, Plan};

/// Servers that are ended with the test.
struct Rig {
    servers: Servers,
    dir: PathBuf,
}

impl Rig {
    /// `None` where Debian's packages are missing.
    fn up(name: &str, nodes: u8) -> Option<Self> {
        if !NEEDS.iter().all(xtask::Need::is_present) {
            println!("SKIPPED: no Gfarm here (try: apt-get install gfmd gfsd gfarm-client)");
            return None;
        }
        let dir = std::env::temp_dir().join(format!("store-gfarm-{name}-{}", std::process::id()));
        let servers = Servers::up(&dir, &Plan { nodes, ..Plan::default() }).unwrap();
        Some(Self { servers, dir })
    }

    fn put(&self, name: &str, bytes: &[u8], copies: usize) {
        let local = self.dir.join("local");
        fs::write(&local, bytes).unwrap();
        self.servers.run("gfreg", &[local.to_str().unwrap(), name]).unwrap();
        if copies > 1 {
            self.servers.run("gfrep", &["-q", "-N", &copies.to_string(), name]).unwrap();
        }
    }

    fn config(&self) -> Config {
        let text = fs::read_to_string(self.servers.config()).unwrap();
        let value = |key: &str| {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap();
            line.split_whitespace().nth(1).unwrap().to_owned()
        };
        let port = value("metadb_server_port").parse().unwrap();
        let user = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
        Config {
            metadata: vec![Address { host: value("metadb_server_host"), port }],
            key_file: value("shared_key_file").into(),
            user: String::from_utf8(user).unwrap().trim().to_owned(),
            dial: Dial::default(),
        }
    }

    fn gfarm(&self) -> Arc<Gfarm> {
        Arc::new(Gfarm::with(self.config()).unwrap())
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.servers.down().unwrap();
        let _ = fs::remove_dir_all(&self.dir);
    }
}

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn bytes(length: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(length as u64);
    std::iter::repeat_with(|| rng.u8(..)).take(length).collect()
}

#[test]
fn a_file_system_is_read_as_a_store() {
    let Some(rig) = Rig::up("store", 2) else { return };
    let whole = bytes(3_000_000);
    rig.servers.run("gfmkdir", &["/d"]).unwrap();
    rig.servers.run("gfln", &["-s", "a b", "/d/link"]).unwrap();
    rig.put("/d/a b", &whole, 2);
    rig.put("/d/empty", b"", 1);
    let store = rig.gfarm();
    let why = |error: hikyaku_store::StoreError| error.kind;

    let found = store.look(&path("d/a b")).unwrap();
    assert_eq!((found.kind, found.size), (Kind::File, 3_000_000));
    assert!(found.version.is_some());
    assert_eq!(store.look(&path("d/none")).map_err(why), Err(ErrorKind::NotFound));
    assert_eq!(store.look(&path("d/empty/x")).map_err(why), Err(ErrorKind::NotDir));
    assert_eq!(store.read_link(&path("d/link")).unwrap(), b"a b");

    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(&path("d"), after.as_ref(), 1).unwrap();
        names.extend(page.items.into_iter().map(|item| item.name.as_bytes().to_vec()));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(names, [&b"a b"[..], b"empty", b"link"]);

    let places = store.places(&path("d/a b")).unwrap();
    assert!(places.len() == 2 && places.iter().all(|place| place.is_up), "{places:?}");

    let open = store.open(&path("d/a b"), Access::Read).unwrap();
    let mut into = vec![0; 2_000_000];
    assert_eq!(open.read_at(1_500_000, &mut into).unwrap(), 1_500_000);
    assert!(into[..1_500_000] == whole[1_500_000..]);
    assert_eq!(open.read_at(3_000_000, &mut into).unwrap(), 0);
    let empty = store.open(&path("d/empty"), Access::Read).unwrap();
    assert_eq!(empty.read_at(0, &mut into).unwrap(), 0);
    let opened = |at: &str, access| store.open(&path(at), access).map(drop).map_err(why);
    assert_eq!(opened("d", Access::Read), Err(ErrorKind::IsDir));
    assert_eq!(opened("d/link", Access::Read), Err(ErrorKind::Link));
    assert_eq!(opened("d/link", Access::Update), Err(ErrorKind::Link));
    assert_eq!(opened("d/none", Access::Update), Err(ErrorKind::NotFound));

    // Another content of the same name: an open file does not go over to it.
    rig.put("/d/a b", b"other", 1);
    let version = store.look(&path("d/a b")).unwrap().version;
    assert_ne!(version, found.version);
    assert_eq!(open.read_at(0, &mut into).map_err(why), Err(ErrorKind::Changed));
}

/// Other programs see what was changed, and all replicas are of the new content.
#[test]
fn a_file_with_replicas_is_changed_in_place() {
    let Some(rig) = Rig::up("update", 2) else { return };
    let mut whole = vec![b'x'; 300_000];
    rig.put("/f", &whole, 2);
    let store = rig.gfarm();
    let found = store.look(&path("f")).unwrap();
    let open = store.open(&path("f"), Access::Update).unwrap();
    open.write_at(100_000, b"changed").unwrap();
    open.write_at(300_000, b"appended").unwrap();
    whole[100_000..100_007].copy_from_slice(b"changed");
    whole.extend_from_slice(b"appended");
    let changed = open.found().unwrap();
    assert_eq!((changed.size, changed.identity), (300_008, found.identity));
    assert_ne!(changed.version, found.version);
    assert!(rig.servers.run("gfexport", &["/f"]).unwrap().into_bytes() == whole);
    // Another file of the name is not changed in its place.
    rig.servers.run("gfrm", &["/f"]).unwrap();
    rig.put("/f", b"other", 1);
    assert!(open.write_at(0, b"x").is_err());
    let other = store.open(&path("f"), Access::Read).unwrap();
    let mut into = [0; 5];
    assert_eq!((other.read_at(0, &mut into).unwrap(), &into), (5, b"other"));
}

#[test]
fn a_replica_of_this_machine_is_read_from_the_spool() {
    let Some(rig) = Rig::up("here", 2) else { return };
    let whole = bytes(3_000_000);
    rig.put("/both", &whole, 2);
    rig.put("/one", &whole, 1);
    let names: Vec<String> = rig.servers.nodes().iter().map(ToString::to_string).collect();
    // Whether a file of this process is one of a spool.
    let spool_of = |node: usize| {
        let spool = rig.dir.join(format!("fs{node}"));
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|file| file.starts_with(&spool))
    };
    let store = |node: &str| {
        let gfarm = Arc::into_inner(rig.gfarm()).unwrap();
        gfarm.reading_here(Here::Node(node.to_owned()))
    };
    let at_one = store(&names[0]).places(&path("one")).unwrap().remove(0).host;
    for (node, name) in names.iter().enumerate() {
        let store = store(name);
        for (file, is_here) in [("both", true), ("one", *name == at_one)] {
            let open = store.open(&path(file), Access::Read).unwrap();
            assert_eq!(spool_of(node), is_here, "{file} at {node}");
            let mut into = vec![0; 3_000_001];
            assert_eq!(open.read_at(0, &mut into).unwrap(), 3_000_000);
            assert!(into[..3_000_000] == whole);
            assert_eq!(open.found().unwrap().size, 3_000_000);
            assert_eq!(open.read_at(3_000_000, &mut into).unwrap(), 0);
        }
    }
    let store = store(&names[0]);
    let open = store.open(&path("both"), Access::Read).unwrap();
    rig.put("/both", b"other", 1);
    let end = open.read_at(3_000_000, &mut [0]).map_err(|error| error.kind);
    assert_eq!(end, Err(ErrorKind::Changed));
}

#[test]
fn a_survey_tells_the_nodes_of_each_file() {
    let Some(rig) = Rig::up("survey", 3) else { return };
    rig.servers.run("gfmkdir", &["/d", "/d/e", "/other"]).unwrap();
    rig.put("/d/one", &bytes(10), 1);
    rig.put("/d/e/three", &bytes(20), 3);
    rig.servers.run("gfln", &["-s", "one", "/d/link"]).unwrap();
    let gfarm = rig.gfarm();
    let survey = survey(&gfarm, &path("d")).unwrap();
    let told: Vec<(&[u8], Kind, usize)> = survey
        .all
        .iter()
        .map(|one| (one.path.as_slice(), one.found.unwrap().kind, one.at.len()))
        .collect();
    let wanted: [(&[u8], Kind, usize); 5] = [
        (b"d", Kind::Dir, 0),
        (b"d/e", Kind::Dir, 0),
        (b"d/e/three", Kind::File, 3),
        (b"d/link", Kind::Link, 0),
        (b"d/one", Kind::File, 1),
    ];
    assert_eq!(told, wanted);
    assert_eq!(survey.all[3].link.as_deref(), Some(&b"one"[..]));
    assert_eq!(survey.nodes.len(), 3);
    let mut walked = Vec::new();
    let walk = gfarm.walk(&path("d"), &mut |entry| {
        let size = entry.found.unwrap().size;
        walked.push((entry.path.to_string(), size, entry.places.len(), entry.content.is_some()));
        ControlFlow::Continue(())
    });
    walk.unwrap();
    walked.sort();
    let wanted = [
        ("d", 0, 0, false),
        ("d/e", 0, 0, false),
        ("d/e/three", 20, 3, true),
        ("d/link", 3, 0, false),
        ("d/one", 10, 1, true),
    ];
    assert_eq!(walked, wanted.map(|(path, size, at, is_one)| (path.to_owned(), size, at, is_one)));
    let none = super::survey(&gfarm, &path("none"));
    assert_eq!(none.map(drop), Err(Trouble::Refused(ErrorKind::NotFound)));
}

#[test]
fn a_node_gives_ranges_and_small_files_of_one_content() {
    let Some(rig) = Rig::up("node", 1) else { return };
    let whole = bytes((9 << 20) + 5);
    rig.put("/big", &whole, 1);
    for n in 1..30 {
        rig.put(&format!("/{n}"), &bytes(n), 1);
    }
    let gfarm = rig.gfarm();
    let survey = survey(&gfarm, &StorePath::ROOT).unwrap();
    let node = Node::new(gfarm.clone(), survey.nodes[0].clone());
    let wanted = |name: &str| {
        let one = survey.all.iter().find(|one| one.path == name.as_bytes()).unwrap();
        let found = one.found.unwrap();
        Wanted {
            path: path(name),
            size: found.size,
            modified: found.modified,
            content: found.version.map(Into::into),
        }
    };
    let big = wanted("big");
    let read = |cut: &Cut| {
        let (mut at_all, count) = (Vec::new(), AtomicU64::new(0));
        let size = whole.len() as u64;
        let ranges = [0..2 << 20, 4 << 20..size];
        let mut each = |segment: Segment<'_>| {
            let at = u64::from(segment.index.0);
            assert!(whole[(at << 20) as usize..][..segment.bytes.len()] == *segment.bytes);
            at_all.push(at);
        };
        let arrived = |bytes| _ = count.fetch_add(bytes, Ordering::Relaxed);
        let done = node.ranges(&big, &Asked::whole(&ranges), cut, &arrived, &mut each);
        (done, at_all, count.into_inner())
    };
    for _ in 0..2 {
        let (done, at, count) = read(&Cut::default());
        done.unwrap();
        assert_eq!(at, [0, 1, 4, 5, 6, 7, 8, 9]);
        assert_eq!(count, whole.len() as u64 - (2 << 20));
    }
    let cut = Cut::default();
    cut.at(3 << 20);
    let (done, at, _) = read(&cut);
    done.unwrap();
    assert_eq!(at, [0, 1, 4]);

    let none = Wanted { path: path("none"), ..big.clone() };
    let small: Vec<Wanted> = (1..30).map(|n| wanted(&n.to_string())).chain([none]).collect();
    let small: Vec<&Wanted> = small.iter().collect();
    let (count, mut seen) = (AtomicU64::new(0), 0);
    let arrived = |bytes| _ = count.fetch_add(bytes, Ordering::Relaxed);
    node.small(&small, &Cut::default(), &arrived, &mut |index, content| {
        seen += 1;
        match content {
            Ok(content) => assert!(content == bytes(index + 1), "{index}"),
            Err(kind) => assert_eq!((index, kind), (29, ErrorKind::NotFound)),
        }
    })
    .unwrap();
    assert_eq!((seen, count.into_inner()), (30, (1..30).sum()));

    // Another content: none of it is handed on as the old one.
    rig.put("/big", &whole[1..], 1);
    rig.put("/1", b"x", 1);
    let (done, at, _) = read(&Cut::default());
    assert_eq!(done, Err(FetchError::File(ErrorKind::Changed)));
    assert!(!at.contains(&9), "{at:?}");
    node.small(&small[..1], &Cut::default(), &|_| {}, &mut |_, content| {
        assert_eq!(content, Err(ErrorKind::Changed));
    })
    .unwrap();
    node.close("");
    node.probe().unwrap();
}

/// The file system of one case, empty at its begin.
struct Case(Config);

impl testing::Rig for Case {
    fn store(&self) -> Box<dyn Store> {
        Box::new(Gfarm::with(self.0.clone()).unwrap())
    }

    fn seeds(&self) -> u64 {
        3
    }
}

/// Removes everything below a directory, with the names that a listing does not show.
fn empty(gfarm: &Gfarm, dir: &[u8]) {
    let entries = gfarm.session().list(&[dir]).unwrap().remove(0).unwrap();
    for (name, stat) in entries {
        if stat.kind == hikyaku_gfarm::Kind::Dir {
            empty(gfarm, &draft::joined(dir, &name));
        }
        gfarm.session().remove(hikyaku_gfarm::Place { dir, name: &name }).unwrap().unwrap();
    }
}

#[test]
fn the_rules_of_a_store_hold() {
    let Some(rig) = Rig::up("conform", 2) else { return };
    let gfarm = rig.gfarm();
    let failures = testing::failures(|| {
        empty(&gfarm, b"");
        Case(rig.config())
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
