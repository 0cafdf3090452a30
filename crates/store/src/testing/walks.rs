//! Walks: rule R9.

use super::{Case, Forbidden, Rig, get, path, put, why};
use crate::{Entry, ErrorKind, Kind, Make, Store};
use std::collections::BTreeSet;
use std::ops::ControlFlow;

pub(super) const CASES: &[Case] = &[
    Case { name: "R9: a walk has a directory before its entries, and each path once", run: order },
    Case { name: "R9: a walk reports what a look does", run: metadata },
    Case { name: "R9: a walk has links with their text and does not follow them", run: links },
    Case { name: "R9: a walk of a file or a link has it alone", run: roots },
    Case { name: "R9: a walk of a missing root fails", run: missing },
    Case { name: "R9: a walk ends when its caller has enough", run: broken_off },
    Case { name: "R9: a walk goes on after a directory that cannot be listed", run: forbidden },
    Case { name: "R9: a walk does not have drafts", run: drafts },
    Case { name: "R9: a walk has all names of a large directory", run: large },
    Case { name: "R9: another content has another token", run: contents },
];

fn walked(store: &dyn Store, root: &str) -> Vec<Entry> {
    let mut all = Vec::new();
    let walked = store.walk(&path(root), &mut |entry| {
        all.push(entry);
        ControlFlow::Continue(())
    });
    walked.unwrap();
    all
}

fn texts(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8(entry.path.as_bytes().to_vec()).unwrap();
    entries.iter().map(text).collect()
}

/// Directories and files, some of them beside `d` with a name that begins with it.
fn tree(store: &dyn Store) {
    for dir in ["d", "d/b", "d/b/c", "d/empty", "dd"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    for file in ["d/a", "d/b/c/f", "d/b/g", "d/z", "dd/x", "d-", "e"] {
        put(store, file, file.as_bytes());
    }
}

fn order(rig: &dyn Rig) {
    let store = rig.store();
    assert_eq!(texts(&walked(&*store, "")), [""]);
    tree(&*store);
    let below = ["d", "d/a", "d/b", "d/b/c", "d/b/c/f", "d/b/g", "d/empty", "d/z"];
    let all = ["", "d-", "dd", "dd/x", "e"].into_iter().chain(below);
    for (root, wanted) in [("d", below.to_vec()), ("", all.collect())] {
        let entries = walked(&*store, root);
        let found = texts(&entries);
        let mut before = BTreeSet::new();
        for (entry, text) in entries.iter().zip(&found) {
            let dir = entry.path.split().map(|(dir, _)| dir);
            let is_in_order = text == root || dir.is_some_and(|dir| before.contains(&dir));
            assert!(is_in_order, "{text} comes before its directory: {found:?}");
            assert!(before.insert(entry.path.clone()), "{text} comes twice: {found:?}");
        }
        let sorted: BTreeSet<&str> = found.iter().map(String::as_str).collect();
        assert_eq!(sorted, wanted.into_iter().collect(), "below '{root}'");
    }
}

fn metadata(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    if store.abilities().links {
        store.make_link(&path("d/link"), b"somewhere else").unwrap();
    }
    for entry in walked(&*store, "d") {
        let (walk, look) = (entry.found.unwrap(), store.look(&entry.path).unwrap());
        let able = store.abilities();
        assert_eq!((walk.kind, walk.size), (look.kind, look.size), "{}", entry.path);
        assert_eq!(walk.identity, look.identity, "{}", entry.path);
        assert!(!able.modes || walk.mode == look.mode, "{}", entry.path);
        assert!(!able.times || walk.modified == look.modified, "{}", entry.path);
        let has_one = walk.version.is_some() && look.version.is_some();
        assert!(!has_one || walk.version == look.version, "{}", entry.path);
        if !entry.places.is_empty() {
            assert_eq!(entry.places, store.places(&entry.path).unwrap(), "{}", entry.path);
        }
    }
}

fn links(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().links {
        return;
    }
    tree(&*store);
    let all = [("d/dir", &b"b"[..]), ("d/loop", b"."), ("d/none", b"/no where"), ("d/up", b"..")];
    for (at, text) in all {
        store.make_link(&path(at), text).unwrap();
    }
    let entries = walked(&*store, "d");
    for (at, text) in all {
        let entry = entries.iter().find(|entry| entry.path == path(at));
        let entry = entry.unwrap_or_else(|| panic!("{at} is missing"));
        assert_eq!(entry.link.as_deref(), Some(text), "{at}");
        assert_eq!(entry.found.as_ref().unwrap().kind, Kind::Link, "{at}");
    }
    assert_eq!(entries.len(), 8 + all.len(), "{:?}", texts(&entries));
    let others = entries.iter().filter(|entry| entry.link.is_some());
    assert_eq!(others.count(), all.len());
}

fn roots(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    let entries = walked(&*store, "d/b/g");
    assert_eq!(texts(&entries), ["d/b/g"]);
    assert_eq!(entries[0].found.as_ref().unwrap().kind, Kind::File);
    if store.abilities().links {
        store.make_link(&path("l"), b"d").unwrap();
        let entries = walked(&*store, "l");
        assert_eq!(texts(&entries), ["l"]);
        assert_eq!(entries[0].link.as_deref(), Some(&b"d"[..]));
    }
}

fn missing(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    let walk = |at: &str| {
        let walked = store.walk(&path(at), &mut |entry| panic!("{} was found", entry.path));
        why(walked)
    };
    assert_eq!(walk("none"), Some(ErrorKind::NotFound));
    assert_eq!(walk("none/x"), Some(ErrorKind::NotFound));
    assert_eq!(walk("e/x"), Some(ErrorKind::NotDir));
    if store.abilities().links {
        store.make_link(&path("l"), b"d").unwrap();
        let below = walk("l/a");
        assert!(matches!(below, Some(ErrorKind::Link | ErrorKind::NotDir)), "{below:?}");
    }
}

fn broken_off(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    for wanted in 1..8 {
        let mut calls = 0;
        let walked = store.walk(&path("d"), &mut |_| {
            calls += 1;
            if calls == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(why(walked), None);
        assert_eq!(calls, wanted);
    }
}

fn forbidden(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    if rig.forbid(&path("d/b")) == Forbidden::NotHere {
        return;
    }
    let entries = walked(&*store, "");
    let failed: Vec<&Entry> = entries.iter().filter(|entry| entry.found.is_err()).collect();
    assert_eq!(texts(&failed.into_iter().cloned().collect::<Vec<_>>()), ["d/b"]);
    let found = entries.iter().filter(|entry| entry.found.is_ok()).cloned();
    let found: BTreeSet<String> = texts(&found.collect::<Vec<_>>()).into_iter().collect();
    let wanted = ["", "d", "d-", "d/a", "d/b", "d/empty", "d/z", "dd", "dd/x", "e"];
    assert_eq!(found, wanted.into_iter().map(str::to_owned).collect());
}

fn drafts(rig: &dyn Rig) {
    let store = rig.store();
    tree(&*store);
    let before = texts(&walked(&*store, ""));
    let draft = store.create(&path("d/new"), &Make::default()).unwrap();
    draft.write_at(0, b"x").unwrap();
    assert_eq!(texts(&walked(&*store, "")), before);
}

/// More names than a page of a listing has, if names are cheap.
fn large(rig: &dyn Rig) {
    let store = rig.store();
    let number = if rig.seeds() < 40 { 60 } else { 1050 };
    store.make_dir(&path("d"), 0o755).unwrap();
    for n in 0..number {
        store.make_dir(&path(&format!("d/{n}")), 0o755).unwrap();
    }
    put(&*store, "d/last", b"x");
    let found: BTreeSet<String> = texts(&walked(&*store, "d")).into_iter().collect();
    assert_eq!(found.len(), number + 2);
}

fn contents(rig: &dyn Rig) {
    let store = rig.store();
    let token = || walked(&*store, "f").remove(0).content;
    let mut seen = Vec::new();
    for content in [&b"one"[..], b"two", b"three"] {
        put(&*store, "f", content);
        assert_eq!(get(&*store, "f"), content);
        let found = token();
        // A store that takes no young file for unchanged has no token of it at first.
        assert!(found.is_none() || found == token(), "without a change");
        assert!(found.is_none() || !seen.contains(&found), "{found:?} twice");
        seen.push(found);
    }
    assert!(walked(&*store, "").iter().all(|entry| {
        let is_file = entry.found.as_ref().is_ok_and(|found| found.kind == Kind::File);
        is_file || entry.content.is_none()
    }));
}
