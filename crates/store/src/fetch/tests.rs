//! Cuts of requests.

use super::Cut;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

#[test]
fn the_earliest_cut_counts_and_the_sender_hears_of_those_before_and_after_it_listens() {
    let (cut, heard) = (Cut::default(), Arc::new(AtomicU64::new(0)));
    assert!(!cut.is_reached(u64::MAX));
    cut.at(100);
    let tells = heard.clone();
    cut.on_cut(move |at| {
        tells.fetch_add(at, Ordering::Relaxed);
    });
    assert_eq!(heard.load(Ordering::Relaxed), 100);
    cut.at(50);
    cut.at(70);
    assert_eq!(heard.load(Ordering::Relaxed), 220);
    assert!(cut.is_reached(50) && !cut.is_reached(49));
}
