//! Tests of rule R5 (documentation of the crate): eight threads use one store. Writers of disjoint ranges do not disturb
//! each other, and of overlapping writes one remains.

use super::{Case, Rig, get, names, path, put, random, takes_any_order};
use crate::{Access, Finish, Kind, Make, Naming, Store};
use std::thread;

pub(super) const CASES: &[Case] = &[
    Case { name: "R5: eight writers of disjoint ranges of a draft", run: draft },
    Case { name: "R5: eight writers of disjoint ranges of a file", run: update },
    Case { name: "R5: of overlapping writes one remains", run: overlapping },
    Case { name: "R5: eight threads make, rename and remove names", run: trees },
    Case { name: "R5: a reader never sees a mixture of two files", run: readers },
];

const THREADS: usize = 8;
/// An odd size, so that neighbouring pieces share blocks and pages.
const PIECE_BYTES: usize = 1237;

/// Writes `bytes` with all threads, of which each writes every eighth piece.
fn scatter(bytes: &[u8], write: impl Fn(u64, &[u8]) + Sync) {
    thread::scope(|scope| {
        for lane in 0..THREADS {
            let write = &write;
            scope.spawn(move || {
                let pieces = bytes.chunks(PIECE_BYTES).enumerate();
                for (n, piece) in pieces.filter(|(n, _)| n % THREADS == lane) {
                    write((n * PIECE_BYTES) as u64, piece);
                }
            });
        }
    });
}

fn draft(rig: &dyn Rig) {
    let store = rig.store();
    let bytes = random(1, 400_000);
    if !takes_any_order(&*store, bytes.len() as u64) {
        return;
    }
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    scatter(&bytes, |at, piece| draft.write_at(at, piece).unwrap());
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    assert!(get(&*store, "f") == bytes);
}

fn update(rig: &dyn Rig) {
    let store = rig.store();
    if !store.abilities().update {
        return;
    }
    put(&*store, "f", &random(2, 400_000));
    let bytes = random(3, 400_000);
    let open = store.open(&path("f"), Access::Update).unwrap();
    scatter(&bytes, |at, piece| open.write_at(at, piece).unwrap());
    drop(open);
    assert!(get(&*store, "f") == bytes);
}

fn overlapping(rig: &dyn Rig) {
    let store = rig.store();
    if !takes_any_order(&*store, 4096) {
        return;
    }
    let draft = store.create(&path("f"), &Make::default()).unwrap();
    thread::scope(|scope| {
        for lane in 0..THREADS as u8 {
            let draft = &draft;
            scope.spawn(move || draft.write_at(0, &[lane; 4096]).unwrap());
        }
    });
    draft.name(Naming::Replace, &Finish::default()).unwrap();
    let bytes = get(&*store, "f");
    assert_eq!(bytes.len(), 4096);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a mixture of two writes");
}

fn trees(rig: &dyn Rig) {
    let store = rig.store();
    let store: &dyn Store = &*store;
    thread::scope(|scope| {
        for lane in 0..THREADS {
            scope.spawn(move || {
                let dir = format!("d{lane}");
                store.make_dir(&path(&dir), 0o755).unwrap();
                for n in 0..20 {
                    put(store, &format!("{dir}/{n}"), dir.as_bytes());
                    if n % 2 == 0 {
                        store.remove(&path(&format!("{dir}/{n}")), Kind::File).unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(names(store, "", 100).len(), THREADS);
    for lane in 0..THREADS {
        assert_eq!(names(store, &format!("d{lane}"), 7).len(), 10);
    }
}

fn readers(rig: &dyn Rig) {
    let store = rig.store();
    let store: &dyn Store = &*store;
    put(store, "f", &[0; 30_000]);
    thread::scope(|scope| {
        let writer = scope.spawn(move || {
            for n in 1..40u8 {
                put(store, "f", &vec![n; 30_000 + usize::from(n)]);
            }
        });
        while !writer.is_finished() {
            let open = store.open(&path("f"), Access::Read).unwrap();
            let mut bytes = vec![0; 40_000];
            if let Ok(got) = open.read_at(0, &mut bytes) {
                let first = bytes[0];
                assert_eq!(got, 30_000 + usize::from(first));
                assert!(bytes[..got].iter().all(|byte| *byte == first));
            }
        }
    });
}
