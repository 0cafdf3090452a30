//! Sources with links that lead elsewhere and back, and lists.

use super::*;
use crate::census::{Behind, stored_census};
use crate::choice::Choice;
use hikyaku_job::Patterns;
use hikyaku_store::{Faulty, Make, Memory, Naming, Writes};

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

fn put(store: &Memory, at: &str) {
    let draft = store.create(&path(at), &Make::default()).unwrap();
    draft.write_at(0, b"content").unwrap();
    draft.name(Naming::Replace, &hikyaku_store::Finish::default()).unwrap();
}

/// The directories, links and files of a plan, and what is left out.
fn plan(source: &Arc<dyn Store>, choice: &Choice<'_>) -> (Vec<String>, Vec<(String, Why)>) {
    let mut plan = Plan::default();
    let (from, to) = (path("t"), path("to"));
    let found = source.look(&from).unwrap();
    plan.add(source, (&from, found), &to, &Selection::new(choice));
    let dirs = plan.dirs.iter().map(|(to, _)| format!("{to}/"));
    let links = plan
        .links
        .iter()
        .map(|(to, link)| format!("{to} -> {}", String::from_utf8_lossy(&link.text)));
    let files = plan.files.iter().map(|file| {
        let path = StorePath::from(file.path.clone());
        format!("{} = {path}", file.to)
    });
    let mut all: Vec<String> = dirs.chain(links).chain(files).collect();
    all.sort();
    let left = |one: &LeftOut| (String::from_utf8_lossy(&one.path).into_owned(), one.why);
    let mut left_out: Vec<_> = plan.left_out.iter().map(left).collect();
    left_out.sort_by(|a, b| a.0.cmp(&b.0));
    (all, left_out)
}

/// The tree `t` with links into `beside`, back to directories above them, and to nothing.
fn linked() -> Memory {
    let store = Memory::default();
    for dir in ["t", "t/deep", "beside"] {
        store.make_dir(&path(dir), 0o755).unwrap();
    }
    put(&store, "t/deep/a");
    put(&store, "beside/b");
    for (at, text) in [
        ("t/self", "."),
        ("t/deep/self", "."),
        ("t/deep/up", ".."),
        ("t/deep/top", "../../t"),
        ("beside/back", "../t"),
        ("t/beside", "../beside"),
        ("t/deep/beside", "../../beside"),
        ("t/file", "deep/a"),
        ("t/nothing", "none"),
        ("t/away", "../../away"),
    ] {
        store.make_link(&path(at), text.as_bytes()).unwrap();
    }
    store
}

const FOLLOWED: Choice<'_> = Choice { links: Links::Followed, ..Choice::TREES };

#[test]
fn links_are_followed_and_those_that_lead_back_are_left_out() {
    let store = linked();
    // The listings of a store behind a network go on at once, with the same result.
    let stores: [Arc<dyn Store>; 2] =
        [Arc::new(store.clone()), Arc::new(Faulty::new(store).far(Writes::Anywhere))];
    for store in &stores {
        let (all, left_out) = plan(store, &FOLLOWED);
        let wanted = [
            "to/",
            "to/beside/",
            "to/beside/b = beside/b",
            "to/deep/",
            "to/deep/a = t/deep/a",
            "to/deep/beside/",
            "to/deep/beside/b = beside/b",
            "to/file = t/deep/a",
        ];
        assert_eq!(all, wanted);
        let circles = left_out.iter().filter(|(_, why)| *why == Why::Circle);
        let circles: Vec<&str> = circles.map(|(path, _)| path.as_str()).collect();
        // Those of `beside` are met twice.
        let wanted =
            ["beside/back", "beside/back", "t/deep/self", "t/deep/top", "t/deep/up", "t/self"];
        assert_eq!(circles, wanted);
        let others: Vec<_> = left_out.iter().filter(|(_, why)| *why != Why::Circle).collect();
        let nothing = Why::Server(ErrorKind::NotFound);
        let wanted = [("t/away".to_owned(), Why::Away), ("t/nothing".to_owned(), nothing)];
        assert_eq!(others, wanted.iter().collect::<Vec<_>>());
    }
}

/// A census of the same tree, with its links followed and with what is wanted of it.
fn census(source: &Arc<dyn Store>, choice: &Choice<'_>) -> (Vec<String>, Vec<(String, Why)>) {
    let (root, asked) = (path("t"), std::cell::Cell::new(0));
    let all = |place: &StorePath| {
        asked.set(asked.get() + 1);
        stored_census(&**source, place, 1).map_err(|error| error.kind)
    };
    let mut found = all(&root).unwrap();
    let behind = Behind {
        lead: &mut |link| source.follow(link).map(|led| led.0).map_err(|error| error.kind),
        census: &mut |place| all(place),
    };
    found.follow(&root, choice, behind);
    found.choose((&root, &root), choice).unwrap();
    assert!(asked.get() <= 2, "the tree, and the directory beside it, which is listed once");
    let place = |path: &[u8]| String::from_utf8_lossy(path).replacen('t', "to", 1);
    let dirs = found.dirs.iter().map(|(path, _)| format!("{}/", place(path.as_bytes())));
    let files = found.files.iter().map(|file| {
        format!("{} = {}", place(file.to.as_bytes()), StorePath::from(file.path.clone()))
    });
    let mut all: Vec<String> = dirs.chain(files).collect();
    all.sort();
    let left = |one: &LeftOut| (String::from_utf8_lossy(&one.path).into_owned(), one.why);
    let mut left_out: Vec<_> = found.left_out.iter().map(left).collect();
    left_out.sort_by(|a, b| a.0.cmp(&b.0));
    (all, left_out)
}

fn left_out_at_top() -> Patterns {
    let exclude = ["/nothing", "/away", "/deep"].map(|text| text.parse().unwrap()).to_vec();
    Patterns { exclude, ..Patterns::NONE }
}

#[test]
fn a_census_follows_the_same_links_as_a_walk() {
    let source: Arc<dyn Store> = Arc::new(linked());
    let whys = |left_out: Vec<(String, Why)>| {
        let mut whys: Vec<String> =
            left_out.into_iter().map(|(_, why)| format!("{why:?}")).collect();
        whys.sort();
        whys
    };
    let patterns = &left_out_at_top();
    let names = ["deep/a", "beside/b", "none", "file"].map(|name| name.as_bytes().to_vec());
    for choice in [
        FOLLOWED,
        Choice { patterns, ..FOLLOWED },
        Choice { listed: &names, ..FOLLOWED },
        Choice { listed: &names, depth: Depth::File, ..FOLLOWED },
    ] {
        let (all, left_out) = census(&source, &choice);
        let (mut wanted, walked) = plan(&source, &choice);
        // A landing adds the source itself to the names of a list.
        wanted.retain(|name| choice.listed.is_empty() || name != "to/");
        assert_eq!(all, wanted);
        assert_eq!(whys(left_out), whys(walked));
    }
    // A link that is left out has its own name, not that of the place where it leads.
    let (_, left_out) = census(&source, &FOLLOWED);
    let circles = left_out.iter().filter(|(_, why)| *why == Why::Circle).map(|(path, _)| &**path);
    let circles: Vec<&str> = circles.collect();
    let wanted =
        ["t/beside/back", "t/deep/beside/back", "t/deep/self", "t/deep/top", "t/deep/up", "t/self"];
    assert_eq!(circles, wanted);
}

#[test]
fn links_that_are_kept_are_links() {
    let source: Arc<dyn Store> = Arc::new(linked());
    let (all, left_out) = plan(&source, &Choice::TREES);
    assert!(left_out.is_empty(), "{left_out:?}");
    assert_eq!(all.iter().filter(|name| name.contains(" -> ")).count(), 9);
    assert!(!all.iter().any(|name| name.contains("beside/b")));
}

#[test]
fn a_link_that_is_left_out_is_not_followed() {
    let source: Arc<dyn Store> = Arc::new(linked());
    let patterns = &left_out_at_top();
    let choice = Choice { patterns, ..FOLLOWED };
    let (all, left_out) = plan(&source, &choice);
    assert_eq!(all, ["to/", "to/beside/", "to/beside/b = beside/b", "to/file = t/deep/a"]);
    assert!(left_out.iter().all(|(_, why)| *why == Why::Circle), "{left_out:?}");
}

#[test]
fn a_list_names_what_is_copied_and_the_directories_above_it() {
    let source: Arc<dyn Store> = Arc::new(linked());
    let names = ["deep/a", "beside/b", "none", "file", "deep"].map(|name| name.as_bytes().to_vec());
    let choice = |listed, depth| Choice { listed, depth, ..FOLLOWED };
    let (all, left_out) = plan(&source, &choice(&names[..4], Depth::File));
    let wanted = [
        "to/",
        "to/beside/",
        "to/beside/b = beside/b",
        "to/deep/",
        "to/deep/a = t/deep/a",
        "to/file = t/deep/a",
    ];
    assert_eq!(all, wanted);
    assert_eq!(left_out, [("t/none".to_owned(), Why::Server(ErrorKind::NotFound))]);
    // A listed directory is copied as a whole, once. With `Depth::File` it is left out, and the reason is that it is a
    // directory.
    let both = [names[0].clone(), names[4].clone()];
    let (all, _) = plan(&source, &choice(&both, Depth::Tree));
    let wanted = ["to/", "to/deep/", "to/deep/a = t/deep/a", "to/deep/beside/"];
    assert_eq!(all[..4], wanted);
    let (all, left_out) = plan(&source, &choice(&names[4..], Depth::File));
    assert_eq!((all, left_out), (vec!["to/".to_owned()], vec![("t/deep".to_owned(), Why::Tree)]));
}
