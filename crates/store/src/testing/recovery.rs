//! Rule R4: the state after a power failure. Rigs that cannot simulate one pass these cases.

use super::{Case, Rig, get, names, path, put, random, why};
use crate::{Access, ErrorKind, Finish, Kind, Make, Naming, Replace, StorePath, SyncScope};

pub(super) const CASES: &[Case] = &[
    Case { name: "R4: what was synced and named is there", run: promised },
    Case { name: "R4: no name shows a part of a draft", run: no_parts },
    Case { name: "R4: an update that was synced is there", run: updated },
    Case { name: "R4: a removal that was synced has lasted", run: removed },
    Case { name: "R4: a rename that was synced has lasted", run: renamed },
    Case { name: "R4: the old file comes back where the new one was not synced", run: old_one },
];

fn promised(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(1, 300_000);
    store.make_dir(&path("d"), 0o755).unwrap();
    let draft = store.create(&path("d/f"), &Make::default()).unwrap();
    draft.write_at(0, &bytes).unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    store.sync(&[path("d"), StorePath::ROOT]).unwrap();
    if let Some(after) = rig.crash() {
        assert!(get(&*after, "d/f") == bytes);
    }
}

fn no_parts(rig: &dyn Rig) {
    let store = rig.store();
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    draft.write_at(0, &[7; 100_000]).unwrap();
    if let Some(after) = rig.crash() {
        assert_eq!(names(&*after, "", 10), []);
    }
    draft.sync().unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    if let Some(after) = rig.crash() {
        assert_eq!(names(&*after, "", 10), []);
    }
}

fn updated(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().update {
        return;
    }
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    draft.write_at(0, b"12345").unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    let open = store.open(&path("f"), Access::Update).unwrap();
    open.write_at(1, b"X").unwrap();
    open.sync(SyncScope::Data).unwrap();
    if let Some(after) = rig.crash() {
        assert_eq!(get(&*after, "f"), b"1X345");
    }
}

fn removed(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"x");
    store.sync(&[StorePath::ROOT]).unwrap();
    store.remove(&path("f"), Kind::File).unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    if let Some(after) = rig.crash() {
        assert_eq!(why(after.look(&path("f"))), Some(ErrorKind::NotFound));
    }
}

fn renamed(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().rename {
        return;
    }
    put(&*store, "a", b"x");
    store.sync(&[StorePath::ROOT]).unwrap();
    store.rename(&path("a"), &path("b"), Replace::Allowed).unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    if let Some(after) = rig.crash() {
        assert_eq!(names(&*after, "", 10), [("b".to_owned(), Kind::File)]);
    }
}

fn old_one(rig: &dyn Rig) {
    let store = rig.store();
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    draft.write_at(0, b"old").unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    store.sync(&[StorePath::ROOT]).unwrap();
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    draft.write_at(0, b"newer").unwrap();
    draft.sync().unwrap();
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    if let Some(after) = rig.crash() {
        let bytes = get(&*after, "f");
        assert!(bytes == b"old" || bytes == b"newer", "{bytes:?}");
    }
}
