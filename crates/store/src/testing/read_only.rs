//! Cases for stores that cannot be written to. The rig writes the files.

use super::{failure, get, path, random, why};
use crate::{
    Abilities, Access, Change, ErrorKind, Extent, Found, Kind, Make, Open, Replace, Store,
    StorePath, Writes,
};
use std::ops::ControlFlow;
use std::thread;

/// Provides stores that cannot be written to. Its storage is empty at first.
pub trait ReadOnlyRig {
    /// A store over the rig's storage.
    fn store(&self) -> Box<dyn Store>;

    /// Gives a file of the storage these bytes.
    fn put(&self, name: &str, bytes: &[u8]);

    /// Removes a file of the storage.
    fn remove(&self, name: &str);
}

/// A case of the suite.
struct Case {
    name: &'static str,
    run: fn(&dyn ReadOnlyRig),
}

/// All cases.
const CASES: &[Case] = &[
    Case { name: "R1: a read is short at the end only", run: short_reads },
    Case { name: "R1: reads at and behind the end give nothing", run: reads_behind },
    Case { name: "R1: a large file comes back whole by reads of any size", run: large },
    Case { name: "R1: a stream delivers its range in order until it is ended", run: streams },
    Case { name: "R2: another content has another version", run: versions },
    Case { name: "R2: an open file never has bytes of another version", run: replaced },
    Case { name: "R2: an open file that was removed has its bytes or is gone", run: removed },
    Case { name: "R6: names may have any characters", run: any_names },
    Case { name: "R7: a missing file is not found", run: missing },
    Case { name: "R7: nothing can be written", run: no_writes },
    Case { name: "an empty file is a file", run: empty },
    Case { name: "parallel readers of a file do not disturb each other", run: parallel },
    Case { name: "a walk of a file reports the file", run: walk },
];

/// Runs every case with a rig of its own. Returns the names of failed cases with the reason.
pub fn failures<R: ReadOnlyRig>(make: impl Fn() -> R) -> Vec<String> {
    let failed = |case: &Case| {
        let rig = make();
        failure(case.name, || (case.run)(&rig))
    };
    CASES.iter().filter_map(failed).collect()
}

fn opened(store: &dyn Store, name: &str) -> Box<dyn Open> {
    store.open(&path(name), Access::Read).unwrap()
}

fn short_reads(rig: &dyn ReadOnlyRig) {
    let bytes = random(1, 100_000);
    rig.put("f", &bytes);
    let open = opened(&*rig.store(), "f");
    for (at, ask) in
        [(0, 100_000), (0, 1), (5, 64 << 10), (99_999, 1), (50_000, 50_001), (99_990, 999)]
    {
        let mut into = vec![0; ask];
        let got = open.read_at(at as u64, &mut into).unwrap();
        assert_eq!(got, ask.min(100_000 - at), "{ask} at {at}");
        assert!(into[..got] == bytes[at..at + got], "{ask} at {at}");
    }
}

fn reads_behind(rig: &dyn ReadOnlyRig) {
    rig.put("f", b"12345");
    let open = opened(&*rig.store(), "f");
    for at in [5, 6, 1 << 40] {
        assert_eq!(open.read_at(at, &mut [0; 10]).unwrap(), 0, "at {at}");
        assert_eq!(open.extents(at..at + 1).unwrap(), [], "at {at}");
    }
    assert_eq!(open.read_at(0, &mut []).unwrap(), 0);
    assert_eq!(open.extents(2..9).unwrap(), [Extent::Data(2..5)]);
}

fn large(rig: &dyn ReadOnlyRig) {
    let bytes = random(2, (3 << 20) + 77);
    rig.put("f", &bytes);
    let store = rig.store();
    let open = opened(&*store, "f");
    for step in [70_001, 1 << 20] {
        let mut all = Vec::new();
        let mut piece = vec![0; step];
        while let got @ 1.. = open.read_at(all.len() as u64, &mut piece).unwrap() {
            all.extend_from_slice(&piece[..got]);
        }
        assert!(all == bytes, "by {step}");
    }
}

fn streams(rig: &dyn ReadOnlyRig) {
    let bytes = random(3, (2 << 20) + 5);
    rig.put("f", &bytes);
    let open = opened(&*rig.store(), "f");
    let size = bytes.len() as u64;
    for range in [0..size, 0..u64::MAX, 7..(1 << 20) + 9, size - 1..size, size..size + 1, 5..5] {
        let mut all = Vec::new();
        let passed = open.stream(range.clone(), &mut |bytes| {
            all.extend_from_slice(bytes);
            ControlFlow::Continue(())
        });
        let want = &bytes[range.start as usize..range.end.min(size) as usize];
        assert_eq!(passed.unwrap(), want.len() as u64, "{range:?}");
        assert!(all == want, "{range:?}");
    }
    let mut count = 0;
    let passed = open.stream(1..size, &mut |bytes| {
        count += bytes.len() as u64;
        ControlFlow::Break(())
    });
    assert_eq!(passed.unwrap(), count);
    assert!(count > 0 && count < size - 1, "{count}");
    // The end of a stream does not disturb the next read.
    let mut into = [0; 100];
    assert_eq!(open.read_at(1000, &mut into).unwrap(), 100);
    assert!(into[..] == bytes[1000..1100]);
}

fn versions(rig: &dyn ReadOnlyRig) {
    let mut seen: Vec<(&[u8], Found)> = Vec::new();
    for content in [&b"one"[..], b"two", b"six", b"three"] {
        rig.put("f", content);
        let found = rig.store().look(&path("f")).unwrap();
        assert_eq!((found.kind, found.size), (Kind::File, content.len() as u64));
        assert_eq!(opened(&*rig.store(), "f").found().unwrap().version, found.version);
        for (other, before) in &seen {
            let is_other = found.version.is_none() || found.version != before.version;
            assert!(is_other, "{other:?} {content:?}");
        }
        seen.push((content, found));
    }
}

fn replaced(rig: &dyn ReadOnlyRig) {
    let (old, new) = (random(4, 3_000_000), random(5, 3_000_000));
    rig.put("f", &old);
    let store = rig.store();
    let open = opened(&*store, "f");
    let mut into = vec![0; 1000];
    assert_eq!(open.read_at(0, &mut into).unwrap(), 1000);
    rig.put("f", &new);
    let mut into = vec![0; 100_000];
    for at in [2_000_000, 1_500_000, 2_900_000] {
        match open.read_at(at as u64, &mut into) {
            Ok(got) => assert!(into[..got] == old[at..at + got], "at {at}"),
            Err(error) => {
                assert!(matches!(error.kind, ErrorKind::Changed | ErrorKind::Gone), "{error}");
            }
        }
    }
    assert!(get(&*store, "f") == new);
}

fn removed(rig: &dyn ReadOnlyRig) {
    let old = random(6, 3_000_000);
    rig.put("f", &old);
    let store = rig.store();
    let open = opened(&*store, "f");
    rig.remove("f");
    let mut into = vec![0; 100_000];
    match open.read_at(2_000_000, &mut into) {
        Ok(got) => assert!(into[..got] == old[2_000_000..2_000_000 + got]),
        Err(error) => assert_eq!(error.kind, ErrorKind::Gone),
    }
    assert_eq!(why(store.look(&path("f"))), Some(ErrorKind::NotFound));
}

fn any_names(rig: &dyn ReadOnlyRig) {
    let names =
        ["a b", "100%", "%41", "a?b=c", "a#b", "d/e f/g+h", "\u{e9}\u{65e5}", "a;b", "a\\b"];
    for name in names {
        rig.put(name, name.as_bytes());
    }
    let store = rig.store();
    for name in names {
        assert!(get(&*store, name) == name.as_bytes(), "{name}");
    }
}

fn missing(rig: &dyn ReadOnlyRig) {
    rig.put("f", b"1");
    let store = rig.store();
    let none = path("none");
    assert_eq!(why(store.look(&none)), Some(ErrorKind::NotFound));
    assert_eq!(why(store.open(&none, Access::Read).map(drop)), Some(ErrorKind::NotFound));
    let walked = store.walk(&none, &mut |_| ControlFlow::Continue(()));
    assert_eq!(why(walked), Some(ErrorKind::NotFound));
    assert_eq!(store.look(&StorePath::ROOT).unwrap().kind, Kind::Dir);
    assert_eq!(why(store.open(&StorePath::ROOT, Access::Read).map(drop)), Some(ErrorKind::IsDir));
}

fn no_writes(rig: &dyn ReadOnlyRig) {
    rig.put("f", b"1");
    let store = rig.store();
    let Abilities { update, rename, name_if_absent, take_up, writes, .. } = store.abilities();
    assert_eq!((update, rename, name_if_absent, take_up), (false, false, false, false));
    assert_eq!(writes, Writes::Never);
    let (file, new) = (path("f"), path("g"));
    let open = opened(&*store, "f");
    let change = Change { mode: Some(0o600), ..Change::default() };
    let refused = [
        why(store.create(&new, &Make::default()).map(drop)),
        why(store.open(&file, Access::Update).map(drop)),
        why(store.make_dir(&new, 0o755)),
        why(store.make_link(&new, b"f")),
        why(store.remove(&file, Kind::File)),
        why(store.rename(&file, &new, Replace::Allowed)),
        why(store.change(&file, &change)),
        why(open.write_at(0, b"2")),
        why(open.set_len(0)),
    ];
    assert_eq!(refused, [Some(ErrorKind::ReadOnly); 9]);
    assert!(get(&*store, "f") == b"1");
}

fn empty(rig: &dyn ReadOnlyRig) {
    rig.put("f", b"");
    let store = rig.store();
    let found = store.look(&path("f")).unwrap();
    assert_eq!((found.kind, found.size), (Kind::File, 0));
    let open = opened(&*store, "f");
    assert_eq!(open.read_at(0, &mut [0; 10]).unwrap(), 0);
    let none = |_: &[u8]| panic!("an empty file has bytes");
    assert_eq!(open.stream(0..10, &mut |bytes| none(bytes)).unwrap(), 0);
}

fn parallel(rig: &dyn ReadOnlyRig) {
    const PIECE: usize = 500_000;
    let bytes = random(7, 8 * PIECE);
    rig.put("f", &bytes);
    let open = opened(&*rig.store(), "f");
    thread::scope(|scope| {
        for number in 0..8 {
            let (open, bytes) = (&*open, &bytes);
            scope.spawn(move || {
                let at = number * PIECE;
                let mut all = Vec::new();
                let range = at as u64..(at + PIECE) as u64;
                let passed = open.stream(range, &mut |bytes| {
                    all.extend_from_slice(bytes);
                    ControlFlow::Continue(())
                });
                assert_eq!(passed.unwrap(), PIECE as u64, "{number}");
                assert!(all == bytes[at..at + PIECE], "{number}");
            });
        }
    });
}

fn walk(rig: &dyn ReadOnlyRig) {
    rig.put("f", b"123");
    let store = rig.store();
    let mut entries = Vec::new();
    let walked = store.walk(&path("f"), &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    });
    walked.unwrap();
    let [entry] = &entries[..] else { panic!("{} entries", entries.len()) };
    let found = entry.found.as_ref().unwrap();
    assert_eq!((&entry.path, found.kind, found.size), (&path("f"), Kind::File, 3));
}
