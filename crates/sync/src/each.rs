//! Doing the same to many names, several at a time: over a long path each of them costs a round trip.

use crate::side::{Done, What, Why};
use hikyaku_console::Scope;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Names that are worked on at once.
const THREADS_MAX: usize = 32;

/// Calls `work` for each of `all`, and gives what failed in the order of `all`. A signal, or a failure that ends
/// everything, leaves the rest undone.
///
/// # Errors
///
/// The failure that ended it.
pub(crate) fn each<'a, T: Sync>(
    all: &'a [T],
    scope: &Scope,
    work: impl Fn(&T) -> Done + Sync,
) -> Done<Vec<(&'a T, Why)>> {
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let failed = Mutex::new(Vec::new());
    thread::scope(|threads| {
        for _ in 0..all.len().min(THREADS_MAX) {
            threads.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = all.get(at) else { return };
                    let done = match scope.stop_cause() {
                        Some(_) => Err(Why { text: "interrupted".to_owned(), what: What::End }),
                        None => work(item),
                    };
                    if let Err(why) = done {
                        is_over.fetch_or(why.is_end(), Ordering::Relaxed);
                        failed.lock().unwrap_or_else(PoisonError::into_inner).push((at, why));
                    }
                }
            });
        }
    });
    let mut failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.sort_by_key(|(at, _)| *at);
    match failed.iter().position(|(_, why)| why.is_end()) {
        Some(end) => Err(failed.swap_remove(end).1),
        None => Ok(failed.into_iter().map(|(at, why)| (&all[at], why)).collect()),
    }
}
