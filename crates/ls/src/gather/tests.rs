//! Locations of one and of several stores, in memory.

use super::*;
use hikyaku_store::{Finish, Make, Memory, Naming, Root};
use hikyaku_stores::HasAll;
use std::sync::Arc;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

/// A store with these files and links, in directories that are made for them.
fn store(files: &[(&str, usize)], links: &[(&str, &str)]) -> Memory {
    let store = Memory::default();
    let dirs = |at: &str| {
        for (end, _) in at.match_indices('/') {
            let _ = store.make_dir(&path(&at[..end]), 0o755);
        }
    };
    for (at, size) in files {
        dirs(at);
        let draft = store.create(&path(at), &Make::default()).unwrap();
        draft.write_at(0, &vec![b'x'; *size]).unwrap();
        draft.name(Naming::Replace, &Finish::default()).unwrap();
    }
    for (at, text) in links {
        dirs(at);
        store.make_link(&path(at), text.as_bytes()).unwrap();
    }
    store
}

fn opened(stores: &[(&str, Memory)], at: &str, ending: Ending) -> Opened {
    let holder = |(name, store): &(&str, Memory)| {
        Holder::new((*name).to_owned(), Arc::new(store.clone()), Root::OfAll)
    };
    let holders = stores.iter().map(holder).collect();
    Opened { holders, path: path(at), ending, has_all: HasAll::Yes }
}

fn args(line: &str) -> LsArgs {
    use clap::{Args, Command, FromArgMatches};
    let command = LsArgs::augment_args(Command::new("ls"));
    let words = ["ls", "x"].into_iter().chain(line.split_whitespace());
    LsArgs::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn names(gathered: &Gathered) -> Vec<String> {
    let of = |(path, listed): (&StorePath, &Listed)| {
        let at: Vec<&str> = listed.places.iter().map(|place| place.host.as_str()).collect();
        format!("{path} {}", at.join(","))
    };
    gathered.names.iter().map(of).collect()
}

#[test]
fn names_of_several_stores_are_one_list() {
    let one = store(&[("d/a", 1), ("d/e/b", 2), ("d/.hidden", 3), ("d/.h/x", 4)], &[]);
    let two = store(&[("d/a", 1), ("d/c", 3), ("dd/x", 1)], &[]);
    let stores = [("one", one), ("two", two)];
    let list = |line: &str| {
        let opened = opened(&stores, "d", Ending::Name);
        gather(&opened, &args(line)).map(|gathered| names(&gathered)).unwrap()
    };
    assert_eq!(list(""), [". one,two", "a one,two", "c two", "e one"]);
    assert_eq!(list("-r"), [". one,two", "a one,two", "c two", "e one", "e/b one"]);
    let all = [". one,two", ".h one", ".h/x one", ".hidden one", "a one,two", "c two"];
    assert_eq!(list("-ra"), [&all[..], &["e one", "e/b one"]].concat());
}

#[test]
fn a_store_that_has_nothing_of_the_name_takes_no_part() {
    let stores = [("one", store(&[("d/a", 1)], &[])), ("two", store(&[("x", 1)], &[]))];
    let list = |at: &str| {
        let gathered = gather(&opened(&stores, at, Ending::Name), &args(""));
        gathered.map(|gathered| (names(&gathered), gathered.failed.len()))
    };
    assert_eq!(list("d").unwrap(), (vec![". one".to_owned(), "a one".to_owned()], 0));
    assert_eq!(list("none").map_err(|error| error.kind), Err(ErrorKind::NotFound));
    assert_eq!(list("x").unwrap(), (vec![". two".to_owned()], 0));
}

#[test]
fn a_link_is_followed_unless_a_long_line_is_wanted() {
    let one = store(&[("d/a", 1)], &[("link", "d"), ("d/up", "../d/a")]);
    let stores = [("one", one)];
    let list = |at: &str, ending, line: &str| {
        gather(&opened(&stores, at, ending), &args(line)).map_err(|error| error.kind)
    };
    let followed = list("link", Ending::Name, "").unwrap();
    assert_eq!(names(&followed), [". one", "a one", "up one"]);
    let kept = list("link", Ending::Name, "-l").unwrap();
    assert_eq!(kept.names[&StorePath::ROOT].link.as_deref(), Some(&b"d"[..]));
    let slash = list("link", Ending::Slash, "-l").unwrap();
    assert_eq!(slash.names[&path("up")].link.as_deref(), Some(&b"../d/a"[..]));
    assert_eq!(list("d/a", Ending::Slash, "").map(drop), Err(ErrorKind::NotDir));
    assert_eq!(list("d/a", Ending::Name, "").unwrap().names.len(), 1);
}
