//! The order of directories, and that they are listed at once.

use super::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The directories in a directory of a tree in which each name has two more below it, two levels deep.
fn inner(dir: &str) -> Vec<String> {
    match dir.len() {
        0..3 => ["a", "b"].map(|name| format!("{dir}{name}")).to_vec(),
        _ => Vec::new(),
    }
}

fn walked(at_once: usize, list: impl Fn(&String) -> Vec<String> + Sync) -> Vec<String> {
    let mut walk = Descent::new(at_once);
    let mut all = Vec::new();
    walk.enter(String::new());
    while let Some((dir, listed)) = walk.next(&list) {
        all.push(dir);
        listed.into_iter().for_each(|dir| walk.enter(dir));
    }
    all
}

#[test]
fn a_directory_comes_before_those_in_it_and_these_before_its_neighbours() {
    let wanted = [
        "", "a", "aa", "aaa", "aab", "ab", "aba", "abb", "b", "ba", "baa", "bab", "bb", "bba",
        "bbb",
    ];
    for at_once in [1, 2, 32] {
        let listings = AtomicUsize::new(0);
        let all = walked(at_once, |dir| {
            listings.fetch_add(1, Ordering::Relaxed);
            inner(dir)
        });
        assert_eq!(all, wanted, "{at_once}");
        assert_eq!(listings.into_inner(), wanted.len(), "each is listed once");
    }
}

#[test]
fn directories_that_wait_are_listed_at_once() {
    // Each of two neighbours is listed when both are being listed: one after the other would not end.
    let both = Barrier::new(2);
    let all = walked(2, |dir| match dir.len() {
        0 => inner(dir),
        _ => {
            both.wait();
            Vec::new()
        }
    });
    assert_eq!(all, ["", "a", "b"]);
}
