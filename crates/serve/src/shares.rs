//! The flows of each key, counted over all its sessions (`max-flows=`).

use hikyaku_crypto::Fingerprint;
use hikyaku_forward::Share;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The counters of the keys that have a session with a limit.
#[derive(Debug, Default)]
pub(crate) struct Shares(Mutex<BTreeMap<Fingerprint, Weak<AtomicU32>>>);

impl Shares {
    /// The share of a key, of so many flows.
    pub(crate) fn of(&self, key: &Fingerprint, most: u32) -> Share {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // A key without a session has no flows.
        all.retain(|_, open| open.strong_count() > 0);
        let found = all.get(key).and_then(Weak::upgrade);
        let open = found.unwrap_or_else(|| {
            let open = Arc::default();
            all.insert(*key, Arc::downgrade(&open));
            open
        });
        Share::new(open, most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_crypto::Identity;

    #[test]
    fn sessions_of_one_key_share_and_those_of_others_do_not() {
        let [one, two] = [(); 2].map(|()| Identity::generate().unwrap().fingerprint());
        let shares = Shares::default();
        let (first, again, other) = (shares.of(&one, 1), shares.of(&one, 1), shares.of(&two, 1));
        let flow = first.enter().unwrap();
        assert!(again.enter().is_none() && other.enter().is_some());
        drop((flow, first, again));
        assert!(shares.of(&one, 1).enter().is_some());
    }
}
