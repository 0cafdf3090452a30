//! How many flows one client of a standing gateway may have at once, over all its connections.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

/// The share of a client. Clones count the same flows.
#[derive(Clone, Debug)]
pub struct Share {
    open: Arc<AtomicU32>,
    most: u32,
}

/// A flow that counts, until it is dropped.
#[derive(Debug)]
pub struct Counted(Arc<AtomicU32>);

impl Share {
    /// A share of at most `most` flows. `open` is the number of open ones.
    pub const fn new(open: Arc<AtomicU32>, most: u32) -> Self {
        Self { open, most }
    }

    /// Counts one flow more. `None` if there are as many as there may be.
    pub fn enter(&self) -> Option<Counted> {
        let one_more = |open| (open < self.most).then_some(open + 1);
        let entered = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        entered.ok().map(|_| Counted(self.open.clone()))
    }

    /// Flows at most.
    pub const fn most(&self) -> u32 {
        self.most
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PartialEq for Share {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.open, &other.open) && self.most == other.most
    }
}

impl Eq for Share {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_counted_over_all_its_clones() {
        let open = Arc::new(AtomicU32::new(0));
        let (share, other) = (Share::new(open.clone(), 2), Share::new(open, 1));
        let first = share.enter().unwrap();
        assert!(other.enter().is_none());
        let second = share.clone().enter().unwrap();
        assert!(share.enter().is_none());
        drop(first);
        assert!(share.enter().is_some() && other.enter().is_none());
        drop(second);
        assert!(other.enter().is_some());
        assert!(Share::new(Arc::default(), 0).enter().is_none());
    }
}
