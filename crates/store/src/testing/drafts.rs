//! Drafts: rule R3, and the naming of files.

use super::{Case, Rig, get, names, path, put, random, takes_any_order, why};
use crate::{
    Ability, Access, Attribute, ErrorKind, Finish, Kind, Make, Naming, Store, Time, Version, Writes,
};

pub(super) const CASES: &[Case] = &[
    Case { name: "R3: a draft has no name", run: unseen },
    Case { name: "R3: the old file is read until the new one has its name", run: old_until_named },
    Case { name: "a draft that is dropped is gone", run: dropped },
    Case { name: "a draft that is discarded is gone", run: discarded },
    Case { name: "a draft is written in any order", run: any_order },
    Case { name: "a draft reads back what was written", run: reads_back },
    Case { name: "a draft is cut to its length", run: cut },
    Case { name: "mode, time and attributes come with the name", run: finish },
    Case { name: "a name that is taken is refused where that was asked for", run: if_absent },
    Case { name: "only the wanted version is replaced", run: if_version },
    Case { name: "a draft does not take the name of a directory", run: over_dir },
    Case { name: "a draft replaces a link and not what it says", run: over_link },
    Case { name: "two drafts of one name, the last one stays", run: two_drafts },
    Case { name: "a draft that is kept is resumed by its token", run: resumed },
    Case { name: "a draft has one writer", run: one_writer },
    Case { name: "a draft needs its directory", run: no_dir },
    Case { name: "a draft of the longest name gets it", run: long_name },
    Case { name: "a draft is synced", run: synced },
];

fn begin(store: &dyn Store, at: &str) -> Box<dyn crate::Draft> {
    store.create(&path(at), &Make::default()).unwrap()
}

fn unseen(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let draft = begin(&*store, "d/f");
    draft.write_at(0, b"x").unwrap();
    assert_eq!(names(&*store, "d", 10), []);
    assert_eq!(why(store.look(&path("d/f"))), Some(ErrorKind::NotFound));
    assert_eq!(why(store.open(&path("d/f"), Access::Read).map(drop)), Some(ErrorKind::NotFound));
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert_eq!(names(&*store, "d", 10), [("f".to_owned(), Kind::File)]);
}

fn old_until_named(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"old");
    let draft = begin(&*store, "f");
    draft.write_at(0, b"new and longer").unwrap();
    assert_eq!(get(&*store, "f"), b"old");
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert_eq!(get(&*store, "f"), b"new and longer");
}

fn dropped(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"old");
    let draft = begin(&*store, "f");
    draft.write_at(0, b"new").unwrap();
    let token = draft.token();
    drop(draft);
    assert_eq!(get(&*store, "f"), b"old");
    if store.abilities().take_up {
        assert_eq!(why(store.take_up(&path("f"), &token).map(drop)), Some(ErrorKind::NotFound));
    }
}

fn discarded(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let draft = begin(&*store, "d/f");
    draft.write_at(0, b"new").unwrap();
    draft.keep();
    draft.discard();
    assert_eq!(names(&*store, "d", 10), []);
    // A remainder of the draft would keep the directory from being removed.
    store.remove(&path("d"), Kind::Dir).unwrap();
}

fn any_order(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(1, 500_000);
    let draft = begin(&*store, "f");
    let mut at: Vec<usize> = (0..bytes.len()).step_by(70_001).collect();
    if takes_any_order(&*store, bytes.len() as u64) {
        at.reverse();
        at.swap(0, 3);
    }
    for at in at {
        let end = (at + 70_001).min(bytes.len());
        draft.write_at(at as u64, &bytes[at..end]).unwrap();
    }
    assert_eq!(draft.name(Naming::Replace, &Finish::default()).unwrap().size, 500_000);
    assert!(get(&*store, "f") == bytes);
}

fn reads_back(rig: &dyn Rig) {
    let store = rig.store();
    let draft = begin(&*store, "f");
    let bytes = random(2, 100_000);
    draft.write_at(0, &bytes).unwrap();
    let mut into = vec![0; 100_001];
    match draft.read_at(0, &mut into) {
        // A draft that takes its bytes in order may have sent them already.
        Err(error) if store.abilities().writes == Writes::InOrder => {
            assert!(matches!(error.kind, ErrorKind::Unsupported(_)), "{error}");
        }
        read => {
            assert_eq!(read.unwrap(), 100_000);
            assert!(into[..100_000] == bytes[..]);
        }
    }
}

fn cut(rig: &dyn Rig) {
    let store = rig.store();
    let draft = begin(&*store, "f");
    draft.write_at(0, &[7; 10_000]).unwrap();
    match draft.set_len(4000) {
        Err(error) if store.abilities().writes == Writes::InOrder => {
            assert!(matches!(error.kind, ErrorKind::Unsupported(_)), "{error}");
            return;
        }
        cut => cut.unwrap(),
    }
    draft.set_len(6000).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert!(get(&*store, "f") == [vec![7; 4000], vec![0; 2000]].concat());
}

fn finish(rig: &dyn Rig) {
    let store = rig.store();
    let able = store.abilities();
    let time = Time { secs: 1_234_567_890, nanos: 987_654_321 };
    let attribute = Attribute { name: b"user.origin".to_vec(), value: b"here".to_vec() };
    let finish = Finish {
        mode: able.modes.then_some(0o440),
        modified: able.times.then_some(time),
        made: None,
        owner: None,
        attributes: if able.attributes { vec![attribute] } else { Vec::new() },
    };
    let draft = begin(&*store, "f");
    draft.write_at(0, b"x").unwrap();
    draft.name(Naming::Replace, &finish).unwrap();
    let found = store.look(&path("f")).unwrap();
    assert!(!able.modes || found.mode & 0o777 == 0o440, "{found:?}");
    assert!(!able.times || Some(found.modified) == able.clock.kept(time), "{found:?}");
    if able.attributes {
        assert_eq!(store.attributes(&path("f")).unwrap(), finish.attributes);
    }
}

fn if_absent(rig: &dyn Rig) {
    let store = rig.store();
    let name = |at: &str, bytes: &[u8]| {
        let draft = begin(&*store, at);
        draft.write_at(0, bytes).unwrap();
        draft.name(Naming::IfAbsent, &Finish::default())
    };
    if !store.abilities().name_if_absent {
        let unsupported = Some(ErrorKind::Unsupported(Ability::NameIfAbsent));
        assert_eq!(why(name("a", b"new")), unsupported);
        return;
    }
    put(&*store, "a", b"old");
    assert_eq!(why(name("a", b"new")), Some(ErrorKind::Exists));
    assert_eq!(get(&*store, "a"), b"old");
    name("b", b"new").unwrap();
    assert_eq!(get(&*store, "b"), b"new");
    assert_eq!(names(&*store, "", 10).len(), 2, "the refused draft is left");
}

fn if_version(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"old");
    let name = |version: Version| {
        let draft = begin(&*store, "f");
        draft.write_at(0, b"new").unwrap();
        draft.name(Naming::IfVersion(version), &Finish::default())
    };
    assert_eq!(why(name(Version([0xee; 32]))), Some(ErrorKind::Changed));
    assert_eq!(get(&*store, "f"), b"old");
    if let Some(version) = store.look(&path("f")).unwrap().version {
        name(version).unwrap();
        assert_eq!(get(&*store, "f"), b"new");
        assert_eq!(why(name(version)), Some(ErrorKind::Changed));
    }
}

fn over_dir(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let draft = begin(&*store, "d");
    draft.write_at(0, b"x").unwrap();
    assert_eq!(why(draft.name(Naming::Replace, &Finish::default())), Some(ErrorKind::IsDir));
    assert_eq!(names(&*store, "", 10), [("d".to_owned(), Kind::Dir)]);
}

fn over_link(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().links {
        return;
    }
    put(&*store, "f", b"old");
    store.make_link(&path("l"), b"f").unwrap();
    put(&*store, "l", b"new");
    assert_eq!(store.look(&path("l")).unwrap().kind, Kind::File);
    assert_eq!((get(&*store, "f"), get(&*store, "l")), (b"old".to_vec(), b"new".to_vec()));
}

fn two_drafts(rig: &dyn Rig) {
    let store = rig.store();
    let (one, two) = (begin(&*store, "f"), begin(&*store, "f"));
    assert_ne!(one.token(), two.token());
    one.write_at(0, b"one").unwrap();
    two.write_at(0, b"two").unwrap();
    two.name(Naming::Replace, &Finish::default()).unwrap();
    one.name(Naming::Replace, &Finish::default()).unwrap();
    assert_eq!(get(&*store, "f"), b"one");
}

fn resumed(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(3, 200_000);
    let draft = begin(&*store, "f");
    let token = draft.token();
    if !store.abilities().take_up {
        draft.keep();
        drop(draft);
        let unsupported = Some(ErrorKind::Unsupported(Ability::TakeUp));
        assert_eq!(why(store.take_up(&path("f"), &token).map(drop)), unsupported);
        return;
    }
    draft.write_at(0, &bytes[..100_000]).unwrap();
    draft.keep();
    drop(draft);
    assert_eq!(names(&*store, "", 10), []);
    assert_eq!(why(store.take_up(&path("g"), &token).map(drop)), Some(ErrorKind::NotFound));
    // It is resumed through another store over the same storage.
    let store = rig.store();
    let draft = store.take_up(&path("f"), &token).unwrap();
    draft.write_at(100_000, &bytes[100_000..]).unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert!(get(&*store, "f") == bytes);
    assert_eq!(why(store.take_up(&path("f"), &token).map(drop)), Some(ErrorKind::NotFound));
}

fn one_writer(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().take_up {
        return;
    }
    let draft = begin(&*store, "f");
    draft.keep();
    let second = store.take_up(&path("f"), &draft.token()).map(drop);
    assert_eq!(why(second), Some(ErrorKind::Busy));
}

fn no_dir(rig: &dyn Rig) {
    let store = rig.store();
    let create = |at: &str| why(store.create(&path(at), &Make::default()).map(drop));
    assert_eq!(create("none/f"), Some(ErrorKind::NotFound));
    put(&*store, "file", b"x");
    assert_eq!(create("file/f"), Some(ErrorKind::NotDir));
}

fn long_name(rig: &dyn Rig) {
    let store = rig.store();
    let name = "n".repeat(255);
    put(&*store, &name, b"x");
    assert_eq!(names(&*store, "", 10), [(name, Kind::File)]);
}

fn synced(rig: &dyn Rig) {
    let store = rig.store();
    let draft = begin(&*store, "f");
    draft.write_at(0, b"x").unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    store.sync(&[crate::StorePath::ROOT]).unwrap();
    assert_eq!(get(&*store, "f"), b"x");
}
