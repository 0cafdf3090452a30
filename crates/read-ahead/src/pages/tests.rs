//! Blocks within a budget, and a random use of them.

use super::*;
use alloc::vec;

const FILE: Content = Content(1);

fn pages(blocks: u64) -> Pages<u64> {
    Pages::new(blocks * BLOCK_BYTES)
}

fn fetch(pages: &mut Pages<u64>, blocks: Range<u64>) {
    for index in pages.ask(FILE, blocks, Class::Ahead) {
        assert_eq!(pages.put(FILE, index, index, BLOCK_BYTES), Put::Here);
    }
}

#[test]
fn a_block_is_asked_for_once() {
    let mut pages = pages(100);
    assert_eq!(pages.ask(FILE, 0..4, Class::Ahead), [0, 1, 2, 3]);
    assert_eq!(pages.ask(FILE, 2..6, Class::Fault), [4, 5]);
    assert_eq!(pages.asked(FILE, 1), Some(Class::Ahead));
    assert_eq!(pages.asked(FILE, 2), Some(Class::Fault));
    assert_eq!(pages.ask(FILE, 2..3, Class::Ahead), [0; 0]);
    assert_eq!(pages.asked(FILE, 2), Some(Class::Fault), "a fault is not lowered");
    pages.put(FILE, 2, 2, BLOCK_BYTES);
    assert_eq!(pages.ask(FILE, 2..3, Class::Fault), [0; 0]);
    pages.fail(FILE, 3);
    assert_eq!(pages.ask(FILE, 0..6, Class::Fault), [3]);
    assert_eq!(pages.put(FILE, 9, 9, BLOCK_BYTES), Put::Unwanted);
}

#[test]
fn memory_stays_within_the_budget_and_unread_blocks_stay() {
    let mut pages = pages(20);
    fetch(&mut pages, 0..5);
    for round in 0..50 {
        let from = 100 + round * 4;
        fetch(&mut pages, from..from + 4);
        for index in from..from + 4 {
            assert_eq!(pages.read(FILE, index), Some(index));
        }
        let totals = pages.totals();
        assert!(totals.here_bytes + totals.asked_bytes <= 20 * BLOCK_BYTES);
    }
    assert!(pages.has(FILE, 0..5), "nobody has read them");
    assert_eq!(pages.totals().wasted_bytes, 0);
    pages.abandon(FILE);
    assert_eq!(pages.totals().wasted_bytes, 5 * BLOCK_BYTES);
    fetch(&mut pages, 1000..1020);
    assert!(!pages.has(FILE, 0..5));
}

#[test]
fn what_is_asked_for_is_never_evicted() {
    let mut pages = pages(8);
    let asked = pages.ask(FILE, 0..8, Class::Fault);
    assert_eq!(pages.room_ahead(), 0);
    for &index in &asked {
        assert_eq!(pages.put(FILE, index, index, BLOCK_BYTES), Put::Here);
        assert!(pages.ask(FILE, 0..8, Class::Fault).is_empty());
    }
    assert!(pages.has(FILE, 0..8));
}

#[test]
fn blocks_that_are_read_again_survive_a_long_reading() {
    let mut pages = pages(40);
    fetch(&mut pages, 0..8);
    for _ in 0..3 {
        (0..8).for_each(|index| assert!(pages.read(FILE, index).is_some()));
    }
    for index in 100..1000 {
        fetch(&mut pages, index..index + 1);
        pages.read(FILE, index);
    }
    assert!(pages.has(FILE, 0..8));
}

#[test]
fn a_dropped_content_is_gone_and_its_late_blocks_are_unwanted() {
    let mut pages = pages(40);
    fetch(&mut pages, 0..4);
    pages.read(FILE, 0);
    let asked = pages.ask(FILE, 4..6, Class::Ahead);
    let other = Content(2);
    assert_eq!(pages.ask(other, 0..1, Class::Fault), [0]);
    pages.drop_content(FILE);
    assert_eq!(asked, vec![4, 5]);
    assert_eq!(pages.put(FILE, 4, 4, BLOCK_BYTES), Put::Unwanted);
    assert_eq!(pages.read(FILE, 0), None);
    let totals = pages.totals();
    assert_eq!((totals.here_bytes, totals.unread_bytes, totals.asked_bytes), (0, 0, BLOCK_BYTES));
}

/// Random calls beside a list of what must hold.
#[test]
fn random_use_keeps_the_sums() {
    let mut rng = fastrand::Rng::with_seed(7);
    let mut pages = pages(32);
    let mut asked = BTreeSet::new();
    for _ in 0..20_000 {
        let (content, index) = (Content(rng.u64(..3)), rng.u64(..60));
        match rng.u8(..6) {
            0 | 1 => {
                let class = if rng.bool() { Class::Fault } else { Class::Ahead };
                for index in pages.ask(content, index..index + rng.u64(..4), class) {
                    assert!(asked.insert((content, index)), "asked twice");
                }
            }
            2 => {
                if let Some(&key) = asked.iter().next() {
                    asked.remove(&key);
                    assert_eq!(
                        pages.put(key.0, key.1, key.1, 1 + rng.u64(..BLOCK_BYTES)),
                        Put::Here
                    );
                }
            }
            3 => {
                if let Some(bytes) = pages.read(content, index) {
                    assert_eq!(bytes, index);
                }
            }
            4 if rng.u8(..20) == 0 => {
                pages.drop_content(content);
                asked.retain(|key| key.0 != content);
            }
            _ => {
                if asked.remove(&(content, index)) {
                    pages.fail(content, index);
                }
            }
        }
        let totals = pages.totals();
        assert_eq!(totals.asked_bytes, asked.len() as u64 * BLOCK_BYTES);
        let rest = 32 * BLOCK_BYTES.max(totals.asked_bytes / 32);
        assert!(totals.here_bytes <= rest + BLOCK_BYTES, "{totals:?}");
        assert!(totals.unread_bytes <= totals.here_bytes);
    }
}
