//! Rule R11: a draft takes bytes in the order that the store declares.

use super::{Case, Rig, get, names, path, random, takes_any_order};
use crate::{Draft, Finish, Make, Naming, Result, Store, Writes};
use std::thread;

pub(super) const CASES: &[Case] = &[
    Case { name: "R11: pieces in the declared order make the file", run: declared },
    Case { name: "R11: pieces of several drafts at once make their files", run: several },
    Case { name: "R11: pieces in another order make no other file", run: undeclared },
    Case { name: "R11: a draft that ends early has no name", run: incomplete },
];

const LENGTH: usize = 700_000;
/// An odd size, so that no piece ends at the end of a block.
const PIECE_BYTES: usize = 50_021;

/// The numbers of the pieces of the file, in an order that the store declares.
fn order(store: &dyn Store) -> Vec<usize> {
    let mut order: Vec<usize> = (0..LENGTH.div_ceil(PIECE_BYTES)).collect();
    match store.abilities().writes {
        _ if takes_any_order(store, LENGTH as u64) => order.reverse(),
        Writes::Window { bytes } => {
            let pieces = (bytes as usize / PIECE_BYTES).max(1);
            order.chunks_mut(pieces).for_each(<[usize]>::reverse);
        }
        _ => {}
    }
    order
}

fn write(draft: &dyn Draft, bytes: &[u8], number: usize) -> Result<()> {
    let at = number * PIECE_BYTES;
    draft.write_at(at as u64, &bytes[at..bytes.len().min(at + PIECE_BYTES)])
}

fn make() -> Make {
    Make { size: Some(LENGTH as u64), ..Make::default() }
}

fn declared(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(1, LENGTH);
    let draft = store.create(&path("f"), &make()).unwrap();
    order(&*store).into_iter().for_each(|number| write(&*draft, &bytes, number).unwrap());
    draft.sync().unwrap();
    assert_eq!(draft.name(Naming::Replace, &Finish::default()).unwrap().size, LENGTH as u64);
    assert!(get(&*store, "f") == bytes);
}

/// A thread writes each of them.
fn several(rig: &dyn Rig) {
    let store = rig.store();
    let store: &dyn Store = &*store;
    thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let (at, bytes) = (path(&seed.to_string()), random(seed, LENGTH));
                let draft = store.create(&at, &make()).unwrap();
                order(store).into_iter().for_each(|n| write(&*draft, &bytes, n).unwrap());
                draft.name(Naming::Replace, &Finish::default()).unwrap();
            });
        }
    });
    for seed in 0..4 {
        assert!(get(store, &seed.to_string()) == random(seed, LENGTH), "file {seed}");
    }
}

/// The last piece comes first.
fn undeclared(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(2, LENGTH);
    let draft = store.create(&path("f"), &make()).unwrap();
    let mut order: Vec<usize> = (0..LENGTH.div_ceil(PIECE_BYTES)).collect();
    order.rotate_right(1);
    let written = order.into_iter().try_for_each(|number| write(&*draft, &bytes, number));
    let named = written.and_then(|()| draft.name(Naming::Replace, &Finish::default()));
    match named {
        Ok(_) => assert!(get(&*store, "f") == bytes, "another file than was written"),
        Err(error) => {
            let is_any = takes_any_order(&*store, LENGTH as u64);
            assert!(!is_any, "the store declares any order: {error}");
            assert_eq!(names(&*store, "", 10), []);
        }
    }
}

/// Half of the file was written, and the writer has gone.
fn incomplete(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(3, LENGTH);
    let draft = store.create(&path("f"), &make()).unwrap();
    let mut order = order(&*store);
    order.truncate(order.len() / 2);
    order.into_iter().for_each(|number| write(&*draft, &bytes, number).unwrap());
    drop(draft);
    assert_eq!(names(&*store, "", 10), []);
}
