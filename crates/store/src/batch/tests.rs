//! Which operations of a batch are done at once, and by how many threads.

use super::*;
use crate::{Finish, Memory, Naming};
use std::collections::BTreeSet;

fn path(text: &str) -> StorePath {
    StorePath::new(text.as_bytes()).unwrap()
}

#[test]
fn no_path_is_twice_in_a_run() {
    let [a, b, c] = ["a", "b", "c"].map(path);
    let ops = [
        Op::Look(&a),
        Op::MakeDir(&b, 0o755),
        Op::Look(&a),
        Op::Rename(&c, &b, Replace::Never),
        Op::Look(&b),
        Op::Remove(&c, Kind::File),
    ];
    assert_eq!(runs(&ops), [0..2, 2..4, 4..6]);
    assert_eq!(runs(&[]), []);
}

#[test]
fn each_operation_is_done_once_by_any_number_of_threads() {
    let paths: Vec<StorePath> = (0..100).map(|n| path(&n.to_string())).collect();
    let finish = Finish::default();
    let put = |path| {
        Op::Put(Put {
            path,
            bytes: b"x",
            naming: Naming::IfAbsent,
            finish: &finish,
            durable: Durable::Cache,
        })
    };
    for threads in [0, 1, 2, 7, 200] {
        let store = Memory::default();
        let run: Vec<(usize, Op<'_>)> = paths.iter().map(put).enumerate().collect();
        let mut done = BTreeSet::new();
        do_at_once(&store, &run, threads, &mut |index, result| {
            // A second attempt would find the file.
            assert!(result.is_ok() && done.insert(index), "{index}: {result:?}");
        });
        assert_eq!(done.len(), 100, "by {threads} threads");
        assert!(paths.iter().all(|path| store.look(path).is_ok()));
    }
}
