//! Directory entries: directories, links, listing, renaming, removing, metadata.

use super::Rig;
use super::{Case, get, names, path, put, why};
use crate::{
    Ability, Attribute, Change, ErrorKind, Finish, Identities, Kind, Make, Naming, Owner, Replace,
    Store, StorePath, Time,
};

pub(super) const CASES: &[Case] = &[
    Case { name: "the root is an empty directory", run: root },
    Case { name: "a directory is made once", run: make_dir },
    Case { name: "a link says what it was given", run: link },
    Case { name: "a listing has every entry once, by pages of any size", run: listing },
    Case {
        name: "a listing goes on after an entry of the last page was removed",
        run: listing_meanwhile,
    },
    Case { name: "only what is of the kind is removed", run: remove },
    Case { name: "a directory that is not empty stays", run: not_empty },
    Case { name: "a file is renamed over another", run: rename_over },
    Case { name: "a rename that must not replace does not", run: rename_never },
    Case { name: "two names are exchanged", run: exchange },
    Case { name: "a directory is renamed with what is in it", run: rename_dir },
    Case { name: "a directory does not go below itself", run: rename_below_itself },
    Case { name: "renaming obeys the kinds", run: rename_kinds },
    Case { name: "modes are kept", run: modes },
    Case { name: "times are kept as finely as the store has them", run: times },
    Case { name: "the time of a link is its own", run: link_times },
    Case { name: "attributes are kept", run: attributes },
    Case { name: "names may be any bytes", run: odd_names },
    Case { name: "identity and version follow a rename", run: identity },
    Case { name: "there is room, and no more than the whole", run: space },
    Case { name: "places are of files that exist", run: places },
];

fn root(rig: &dyn Rig) {
    let store = rig.store();
    let found = store.look(&StorePath::ROOT).unwrap();
    assert_eq!(found.kind, Kind::Dir);
    assert_eq!(names(&*store, "", 10), []);
    assert!(store.remove(&StorePath::ROOT, Kind::Dir).is_err());
    assert_eq!(why(store.make_dir(&StorePath::ROOT, 0o755)), Some(ErrorKind::Exists));
}

fn make_dir(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("a"), 0o755).unwrap();
    store.make_dir(&path("a/b"), 0o750).unwrap();
    assert_eq!(why(store.make_dir(&path("a"), 0o755)), Some(ErrorKind::Exists));
    assert_eq!(store.look(&path("a/b")).unwrap().kind, Kind::Dir);
    assert_eq!(names(&*store, "a", 10), [("b".to_owned(), Kind::Dir)]);
    // Another store over the same storage sees it.
    assert_eq!(rig.store().look(&path("a/b")).unwrap().kind, Kind::Dir);
}

/// Whether links can be tested. A store without them must report that.
fn has_links(store: &dyn Store) -> bool {
    if !store.abilities().links {
        let unsupported = Some(ErrorKind::Unsupported(Ability::Links));
        assert_eq!(why(store.make_link(&path("l"), b"x")), unsupported);
        assert_eq!(why(store.look(&path("l"))), Some(ErrorKind::NotFound));
    }
    store.abilities().links
}

fn link(rig: &dyn Rig) {
    let store = rig.store();
    if !has_links(&*store) {
        return;
    }
    put(&*store, "f", b"bytes");
    for (name, text) in [("l", &b"f"[..]), ("m", b"../../etc/passwd"), ("n", b"\xff \n")] {
        store.make_link(&path(name), text).unwrap();
        assert_eq!(store.read_link(&path(name)).unwrap(), text);
        let found = store.look(&path(name)).unwrap();
        assert_eq!((found.kind, found.size), (Kind::Link, text.len() as u64));
    }
    assert_eq!(why(store.make_link(&path("l"), b"x")), Some(ErrorKind::Exists));
    assert!(store.read_link(&path("f")).is_err());
    store.remove(&path("l"), Kind::Link).unwrap();
    assert_eq!(get(&*store, "f"), b"bytes");
}

fn listing(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    let mut wanted = Vec::new();
    for n in 0..57 {
        if n % 5 == 0 {
            store.make_dir(&path(&format!("d/{n}")), 0o755).unwrap();
            wanted.push((n.to_string(), Kind::Dir));
        } else {
            put(&*store, &format!("d/{n}"), b"x");
            wanted.push((n.to_string(), Kind::File));
        }
    }
    wanted.sort();
    for room in [1, 7, 57, 58, 1000] {
        assert_eq!(names(&*store, "d", room), wanted, "by {room}");
    }
}

fn listing_meanwhile(rig: &dyn Rig) {
    let store = rig.store();
    for n in 0..20 {
        put(&*store, &n.to_string(), b"x");
    }
    let page = store.list(&StorePath::ROOT, None, 10).unwrap();
    for item in &page.items {
        store.remove(&StorePath::ROOT.join(&item.name).unwrap(), Kind::File).unwrap();
    }
    let cursor = page.next.expect("there is a second page");
    let rest = store.list(&StorePath::ROOT, Some(&cursor), 100).unwrap();
    assert_eq!(rest.items.len(), 10);
}

fn remove(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"x");
    store.make_dir(&path("d"), 0o755).unwrap();
    assert_eq!(why(store.remove(&path("f"), Kind::Dir)), Some(ErrorKind::NotDir));
    assert_eq!(why(store.remove(&path("d"), Kind::File)), Some(ErrorKind::IsDir));
    store.remove(&path("f"), Kind::File).unwrap();
    store.remove(&path("d"), Kind::Dir).unwrap();
    assert_eq!(names(&*store, "", 10), []);
    assert_eq!(why(store.remove(&path("f"), Kind::File)), Some(ErrorKind::NotFound));
}

fn not_empty(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&*store, "d/f", b"x");
    assert_eq!(why(store.remove(&path("d"), Kind::Dir)), Some(ErrorKind::NotEmpty));
    assert_eq!(get(&*store, "d/f"), b"x");
}

/// Whether renaming can be tested. A store without it must report that.
fn has_rename(store: &dyn Store) -> bool {
    if !store.abilities().rename {
        put(store, "x", b"x");
        let renamed = store.rename(&path("x"), &path("y"), Replace::Allowed);
        assert_eq!(why(renamed), Some(ErrorKind::Unsupported(Ability::Rename)));
        assert_eq!(get(store, "x"), b"x");
    }
    store.abilities().rename
}

fn rename_over(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) {
        return;
    }
    put(&*store, "a", b"new");
    put(&*store, "b", b"old");
    store.rename(&path("a"), &path("b"), Replace::Allowed).unwrap();
    assert_eq!(get(&*store, "b"), b"new");
    assert_eq!(why(store.look(&path("a"))), Some(ErrorKind::NotFound));
    assert_eq!(
        why(store.rename(&path("a"), &path("c"), Replace::Allowed)),
        Some(ErrorKind::NotFound)
    );
    // Renaming a file to itself has no effect.
    store.rename(&path("b"), &path("b"), Replace::Allowed).unwrap();
    assert_eq!(get(&*store, "b"), b"new");
}

fn rename_never(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) || !store.abilities().name_if_absent {
        return;
    }
    put(&*store, "a", b"new");
    put(&*store, "b", b"old");
    assert_eq!(why(store.rename(&path("a"), &path("b"), Replace::Never)), Some(ErrorKind::Exists));
    assert_eq!((get(&*store, "a"), get(&*store, "b")), (b"new".to_vec(), b"old".to_vec()));
    store.rename(&path("a"), &path("c"), Replace::Never).unwrap();
    assert_eq!(get(&*store, "c"), b"new");
}

fn exchange(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) {
        return;
    }
    put(&*store, "a", b"one");
    store.make_dir(&path("b"), 0o755).unwrap();
    put(&*store, "b/f", b"two");
    match store.rename(&path("a"), &path("b"), Replace::Exchange) {
        Ok(()) => {
            assert_eq!(
                (get(&*store, "b"), get(&*store, "a/f")),
                (b"one".to_vec(), b"two".to_vec())
            );
        }
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::Unsupported(Ability::Exchange));
            assert_eq!(get(&*store, "a"), b"one");
        }
    }
}

fn rename_dir(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) {
        return;
    }
    store.make_dir(&path("a"), 0o755).unwrap();
    store.make_dir(&path("a/b"), 0o755).unwrap();
    put(&*store, "a/b/f", b"deep");
    store.make_dir(&path("c"), 0o755).unwrap();
    store.rename(&path("a"), &path("c/d"), Replace::Allowed).unwrap();
    assert_eq!(get(&*store, "c/d/b/f"), b"deep");
    assert_eq!(why(store.look(&path("a"))), Some(ErrorKind::NotFound));
}

fn rename_below_itself(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) {
        return;
    }
    store.make_dir(&path("a"), 0o755).unwrap();
    store.make_dir(&path("a/b"), 0o755).unwrap();
    assert!(store.rename(&path("a"), &path("a/b/c"), Replace::Allowed).is_err());
    assert_eq!(names(&*store, "a", 10), [("b".to_owned(), Kind::Dir)]);
}

fn rename_kinds(rig: &dyn Rig) {
    let store = rig.store();
    if !has_rename(&*store) {
        return;
    }
    put(&*store, "f", b"x");
    for dir in ["d", "e", "e/full"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    let rename = |from: &str, to: &str| why(store.rename(&path(from), &path(to), Replace::Allowed));
    assert_eq!(rename("f", "d"), Some(ErrorKind::IsDir));
    assert_eq!(rename("d", "f"), Some(ErrorKind::NotDir));
    assert_eq!(rename("d", "e"), Some(ErrorKind::NotEmpty));
    assert_eq!(rename("e/full", "d"), None);
    assert_eq!(names(&*store, "e", 10), []);
}

fn modes(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().modes {
        return;
    }
    put(&*store, "f", b"x");
    store.make_dir(&path("d"), 0o700).unwrap();
    for mode in [0o600, 0o755, 0o444, 0o640] {
        let change = Change { mode: Some(mode), ..Change::default() };
        for at in ["f", "d"] {
            store.change(&path(at), &change).unwrap();
            assert_eq!(store.look(&path(at)).unwrap().mode & 0o777, mode, "{at}");
        }
    }
}

const OLD: Time = Time { secs: 1_000_000_000, nanos: 123_456_789 };

fn times(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().times {
        return;
    }
    put(&*store, "f", b"x");
    store.make_dir(&path("d"), 0o755).unwrap();
    let change = Change { modified: Some(OLD), ..Change::default() };
    for at in ["f", "d"] {
        store.change(&path(at), &change).unwrap();
        let kept = store.abilities().clock.kept(OLD).unwrap();
        assert_eq!(store.look(&path(at)).unwrap().modified, kept, "{at}");
    }
}

fn link_times(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().links || !store.abilities().times {
        return;
    }
    let before = put(&*store, "f", b"x").modified;
    store.make_link(&path("l"), b"f").unwrap();
    store.change(&path("l"), &Change { modified: Some(OLD), ..Change::default() }).unwrap();
    let kept = store.abilities().clock.kept(OLD).unwrap();
    assert_eq!(store.look(&path("l")).unwrap().modified, kept);
    assert_eq!(store.look(&path("f")).unwrap().modified, before);
    let owner: Owner = store.look(&path("l")).unwrap().owner;
    match store.change(&path("l"), &Change { owner: Some(owner), ..Change::default() }) {
        Err(error) => assert_eq!(error.kind, ErrorKind::Unsupported(Ability::Owners)),
        Ok(()) => assert_eq!(store.look(&path("l")).unwrap().owner, owner),
    }
}

fn attributes(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().attributes {
        return;
    }
    put(&*store, "f", b"x");
    let attribute = |name: &str, value: &[u8]| Attribute {
        name: name.as_bytes().to_vec(),
        value: value.to_vec(),
    };
    let all = vec![attribute("user.a", b"1"), attribute("user.b", b"\0\xff")];
    store.change(&path("f"), &Change { attributes: all.clone(), ..Change::default() }).unwrap();
    let mut found = store.attributes(&path("f")).unwrap();
    found.sort();
    assert_eq!(found, all);
    store.make_dir(&path("d"), 0o755).unwrap();
    assert_eq!(store.attributes(&path("d")).unwrap(), []);
}

fn odd_names(rig: &dyn Rig) {
    let store = rig.store();
    let long = "x".repeat(255);
    for name in [" ", "-rf", "a\nb", "\u{1b}[2J", "...", "a:b", "%2e", "ä", &*long] {
        let named = store.create(&path(name), &Make::default()).and_then(|draft| {
            draft.write_at(0, name.as_bytes())?;
            draft.name(Naming::Replace, &Finish::default())
        });
        match named {
            Err(error) if name.contains(char::is_control) => {
                assert_eq!(error.kind, ErrorKind::BadName, "{name:?}");
            }
            named => {
                named.unwrap();
                assert_eq!(get(&*store, name), name.as_bytes(), "{name:?}");
            }
        }
    }
    let bytes = StorePath::new(b"\xff\xfe").unwrap();
    match store.make_dir(&bytes, 0o755) {
        Ok(()) => assert_eq!(store.look(&bytes).unwrap().kind, Kind::Dir),
        Err(error) => assert_eq!(error.kind, ErrorKind::BadName),
    }
}

fn identity(rig: &dyn Rig) {
    let store = rig.store();
    let a = put(&*store, "a", b"x");
    let b = put(&*store, "b", b"x");
    assert_ne!(a.identity, b.identity);
    if has_rename(&*store) && store.abilities().identities == Identities::OfFiles {
        store.rename(&path("a"), &path("c"), Replace::Allowed).unwrap();
        assert_eq!(store.look(&path("c")).unwrap().identity, a.identity);
    }
}

fn space(rig: &dyn Rig) {
    match rig.store().space() {
        Ok(space) => assert!(space.free <= space.total && space.total > 0, "{space:?}"),
        Err(error) => assert_eq!(error.kind, ErrorKind::Unsupported(Ability::Space)),
    }
}

fn places(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"x");
    let places = store.places(&path("f")).unwrap();
    assert_eq!(store.abilities().replicas, !places.is_empty());
    assert_eq!(why(store.places(&path("none"))), Some(ErrorKind::NotFound));
}
