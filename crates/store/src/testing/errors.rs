//! Rules R6 and R7: failures report their reason, and symbolic links are not followed.

use super::{Case, Rig, get, path, put, why};
use crate::{Access, Change, ErrorKind, Kind, Make, Replace, StorePath};

pub(super) const CASES: &[Case] = &[
    Case { name: "R6: paths that are none are refused", run: no_paths },
    Case { name: "R6: a link in a path is not followed", run: links_in_paths },
    Case { name: "R6: a link is not opened as the file that it names", run: open_link },
    Case { name: "R7: what is not there is not found", run: not_found },
    Case { name: "R7: a file is no directory", run: not_dir },
    Case { name: "R7: a directory is no file", run: is_dir },
    Case { name: "R7: an error names its path", run: named },
];

fn no_paths(_: &dyn Rig) {
    for bytes in [&b"/etc"[..], b"a//b", b"a/", b"..", b"a/../b", b"./a", b"a\0b", &[b'x'; 256]] {
        assert!(StorePath::new(bytes).is_err(), "{bytes:?}");
    }
}

fn links_in_paths(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().links {
        return;
    }
    store.make_dir(&path("d"), 0o755).unwrap();
    put(&*store, "d/f", b"secret");
    for (name, text) in [("l", &b"d"[..]), ("up", b"..")] {
        store.make_link(&path(name), text).unwrap();
        let below = path(&format!("{name}/f"));
        let is_refused =
            |why: Option<ErrorKind>| matches!(why, Some(ErrorKind::Link | ErrorKind::NotDir));
        assert!(is_refused(why(store.look(&below))), "{name}");
        assert!(is_refused(why(store.open(&below, Access::Read).map(drop))), "{name}");
        assert!(is_refused(why(store.create(&below, &Make::default()).map(drop))), "{name}");
        assert!(is_refused(why(store.make_dir(&below, 0o755))), "{name}");
        assert!(is_refused(why(store.make_link(&below, b"x"))), "{name}");
        assert!(is_refused(why(store.remove(&below, Kind::File))), "{name}");
        let moved = store.rename(&below, &path("x"), Replace::Allowed);
        assert!(is_refused(why(moved)), "{name}");
        assert!(is_refused(why(store.change(&below, &Change::default()))), "{name}");
        assert!(is_refused(why(store.list(&path(name), None, 10))), "{name}");
    }
    assert_eq!(get(&*store, "d/f"), b"secret");
}

fn open_link(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().links {
        return;
    }
    put(&*store, "f", b"secret");
    store.make_link(&path("l"), b"f").unwrap();
    assert_eq!(why(store.open(&path("l"), Access::Read).map(drop)), Some(ErrorKind::Link));
    if store.abilities().update {
        assert_eq!(why(store.open(&path("l"), Access::Update).map(drop)), Some(ErrorKind::Link));
    }
}

fn not_found(rig: &dyn Rig) {
    let store = rig.store();
    for at in ["none", "none/deeper"] {
        let at = path(at);
        let all = [
            why(store.look(&at)),
            why(store.list(&at, None, 10)),
            why(store.open(&at, Access::Read).map(drop)),
            why(store.remove(&at, Kind::File)),
            why(store.remove(&at, Kind::Dir)),
            why(store.change(&at, &Change { mode: Some(0o600), ..Change::default() })),
            why(store.sync(std::slice::from_ref(&at))),
        ];
        assert!(all.iter().all(|why| *why == Some(ErrorKind::NotFound)), "{at}: {all:?}");
    }
    assert_eq!(why(store.make_dir(&path("none/d"), 0o755)), Some(ErrorKind::NotFound));
}

fn not_dir(rig: &dyn Rig) {
    let store = rig.store();
    put(&*store, "f", b"x");
    let below = path("f/x");
    let all = [
        why(store.look(&below)),
        why(store.open(&below, Access::Read).map(drop)),
        why(store.make_dir(&below, 0o755)),
        why(store.remove(&below, Kind::File)),
        why(store.list(&path("f"), None, 10)),
    ];
    assert!(all.iter().all(|why| *why == Some(ErrorKind::NotDir)), "{all:?}");
}

fn is_dir(rig: &dyn Rig) {
    let store = rig.store();
    store.make_dir(&path("d"), 0o755).unwrap();
    assert_eq!(why(store.open(&path("d"), Access::Read).map(drop)), Some(ErrorKind::IsDir));
}

fn named(rig: &dyn Rig) {
    let error = rig.store().look(&path("a\u{1b}[2J/b")).unwrap_err().to_string();
    assert!(error.contains("[2J/b") && !error.contains('\u{1b}'), "{error:?}");
}
