//! Work on several hosts at the same time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Maximum number of concurrent logins: sshd(8) drops connections if more than ten have not logged in (`MaxStartups`), and
/// with a host that all others are logged in to through, one sshd receives all of them.
const LOGINS_MAX: usize = 8;

/// Does `work` for each host, at most eight at a time. The results are in the order of the hosts.
pub fn for_each_host<H: Sync, R: Send>(hosts: &[H], work: impl Fn(&H) -> R + Sync) -> Vec<R> {
    let waiting: Mutex<VecDeque<_>> = Mutex::new(hosts.iter().enumerate().collect());
    let done = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    thread::scope(|scope| {
        for _ in 0..hosts.len().min(LOGINS_MAX) {
            scope.spawn(|| {
                while let Some((at, host)) = next() {
                    let result = work(host);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn eight_hosts_at_a_time_and_results_in_their_order() {
        let hosts: Vec<usize> = (0..2 * LOGINS_MAX).collect();
        // Each round of eight ends together, so fewer threads would wait for ever.
        let (together, running) = (Barrier::new(LOGINS_MAX), AtomicUsize::new(0));
        let results = for_each_host(&hosts, |host| {
            assert!(running.fetch_add(1, Ordering::SeqCst) < LOGINS_MAX);
            together.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            host * 10
        });
        assert_eq!(results, hosts.iter().map(|host| host * 10).collect::<Vec<_>>());
        assert!(for_each_host(&[], |host: &usize| *host).is_empty());
    }
}
