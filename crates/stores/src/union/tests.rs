//! Servers that have parts of a tree, that do not agree, and that fail.

use super::*;
use hikyaku_store::{
    Fault, Faulty, Finish, Memory, Naming, Op, Operation, Put, Root, Time, When, do_one,
};
use hikyaku_transfer::Durable;

fn path(name: &str) -> StorePath {
    StorePath::new(name.trim_end_matches('/').as_bytes()).unwrap()
}

/// A server with these names: a slash at the end makes a directory, and a digit is the size of a file.
fn server(names: &[&str]) -> Faulty<Memory> {
    let store = Faulty::new(Memory::default());
    for name in names {
        let size = name.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').sum::<u8>();
        let bytes = vec![7; size.into()];
        let name = name.trim_end_matches(|end: char| end.is_ascii_digit());
        let modified = Some(Time { secs: 9, nanos: 0 });
        let finish = Finish { modified, ..Finish::default() };
        let (path, naming, durable) = (&path(name), Naming::Replace, Durable::Cache);
        let op = match name.ends_with('/') {
            true => Op::MakeDir(path, 0o755),
            false => Op::Put(Put { path, bytes: &bytes, naming, finish: &finish, durable }),
        };
        do_one(&store, &op).unwrap();
    }
    store
}

fn union(servers: [&Faulty<Memory>; 2]) -> Union {
    let holder = |store: &Faulty<Memory>| {
        Holder::new(String::new(), std::sync::Arc::new(store.clone()), Root::Somewhere)
    };
    Union(servers.map(holder).to_vec())
}

/// The names of a directory by pages of two.
fn listed(union: &Union, dir: &str) -> Result<String> {
    let (mut names, mut after) = (Vec::new(), None);
    loop {
        let page = union.list(&path(dir), after.as_ref(), 2)?;
        assert!(page.items.len() <= 2);
        names.extend(
            page.items
                .into_iter()
                .map(|item| String::from_utf8_lossy(item.name.as_bytes()).into_owned()),
        );
        after = page.next;
        if after.is_none() {
            return Ok(names.join(" "));
        }
    }
}

/// The reported paths. Those with errors are in brackets.
fn walk(union: &Union) -> String {
    let mut all = Vec::new();
    let walked = union.walk(&StorePath::ROOT, &mut |entry| {
        all.push(match &entry.found {
            Ok(_) => entry.path.to_string(),
            Err(_) => format!("({})", entry.path),
        });
        ControlFlow::Continue(())
    });
    walked.unwrap();
    all.join(" ")
}

#[test]
fn names_of_all_servers_are_one_tree() {
    let one = server(&["a1", "both2", "d/", "d/x", "only one/"]);
    let two = server(&["both2", "d/", "d/y", "e3"]);
    let union = union([&one, &two]);
    assert_eq!(listed(&union, "").unwrap(), "a both d e only one");
    assert_eq!(listed(&union, "d").unwrap(), "x y");
    assert_eq!(listed(&union, "only one").unwrap(), "");
    assert_eq!(listed(&union, "none").unwrap_err().kind, ErrorKind::NotFound);
    assert_eq!(walk(&union), listed_below(&["a", "both", "d", "d/x", "d/y", "e", "only one"]));
    assert_eq!(union.look(&path("e")).unwrap().size, 3);
    let mut read = [0; 4];
    let open = union.open(&path("e"), Access::Read).unwrap();
    assert_eq!((open.read_at(0, &mut read).unwrap(), read), (3, [7, 7, 7, 0]));
}

fn listed_below(names: &[&str]) -> String {
    format!("{} {}", StorePath::ROOT, names.join(" "))
}

#[test]
fn what_servers_do_not_agree_on_is_an_error_and_no_choice() {
    let one = server(&["d/", "d/f1", "d/g", "k/"]);
    let two = server(&["d/", "d/f2", "d/g", "k"]);
    let union = union([&one, &two]);
    for (dir, name) in [("d", "d/f"), ("", "k")] {
        assert_eq!(listed(&union, dir).unwrap_err().kind, ErrorKind::DIFFERS);
        assert_eq!(union.look(&path(name)).unwrap_err().kind, ErrorKind::DIFFERS);
    }
    let walked = walk(&union);
    assert!(walked.contains("(d/f)") && walked.contains("(k)"), "{walked}");
}

#[test]
fn a_directory_that_one_server_cannot_list_is_not_listed() {
    for kind in [ErrorKind::Denied, ErrorKind::Unreachable] {
        let (one, two) = (server(&["d/", "d/x"]), server(&["d/", "d/y"]));
        let when = When { operation: Operation::List, path: Some(path("d")), nth: 1, times: 2 };
        two.add(when, Fault::Error(kind));
        let union = union([&one, &two]);
        assert_eq!(listed(&union, "d").unwrap_err().kind, kind);
        assert!(walk(&union).contains("(d)"), "{}", walk(&union));
    }
}
