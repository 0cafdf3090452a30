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
    let is_over = AtomicBool::new(false);
    let done = at_once(all, THREADS_MAX, |item| {
        if is_over.load(Ordering::Relaxed) {
            return Ok(());
        }
        let done = match scope.stop_cause() {
            Some(_) => Err(Why { text: "interrupted".to_owned(), what: What::End }),
            None => work(item),
        };
        is_over.fetch_or(done.as_ref().is_err_and(Why::is_end), Ordering::Relaxed);
        done
    });
    let failed = all.iter().zip(done).filter_map(|(item, done)| Some((item, done.err()?)));
    let mut failed: Vec<_> = failed.collect();
    match failed.iter().position(|(_, why)| why.is_end()) {
        Some(end) => Err(failed.swap_remove(end).1),
        None => Ok(failed),
    }
}

/// The results of `work` for all items, in their order. At most `threads_max` are worked on at the same time.
pub(crate) fn at_once<T: Sync, R: Send>(
    all: &[T],
    threads_max: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    thread::scope(|threads| {
        for _ in 0..all.len().min(threads_max) {
            threads.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = all.get(at) else { return };
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
