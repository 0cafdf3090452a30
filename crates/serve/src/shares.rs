//! Limits that all sessions of one key share: the rate of its connections, and the number of its flows.

use hikyaku_crypto::Fingerprint;
use hikyaku_reach::Connection;
use hikyaku_transfer::Pace;
use hikyaku_units::Rate;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// A value for each key that has a session. A key without one has no value.
#[derive(Debug)]
pub(crate) struct PerKey<V>(Mutex<BTreeMap<Fingerprint, Weak<V>>>);

impl<V> Default for PerKey<V> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<V> PerKey<V> {
    /// The value of a key, if it has one that `fits`; otherwise a new one.
    pub(crate) fn of(
        &self,
        key: &Fingerprint,
        fits: impl FnOnce(&V) -> bool,
        make: impl FnOnce() -> V,
    ) -> Arc<V> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, value| value.strong_count() > 0);
        let found = all.get(key).and_then(Weak::upgrade).filter(|value| fits(value));
        found.unwrap_or_else(|| {
            let value = Arc::new(make());
            all.insert(*key, Arc::downgrade(&value));
            value
        })
    }
}

/// The limits of the payload of one key: each direction has the same rate, for all sessions of the key together.
#[derive(Debug)]
pub struct KeyRate {
    sent: Arc<Pace>,
    received: Arc<Pace>,
}

impl KeyRate {
    /// Limits of `rate`.
    pub fn new(rate: Rate) -> Self {
        let [sent, received] = [(); 2].map(|()| Arc::new(Pace::new(rate)));
        Self { sent, received }
    }

    /// The limit of each direction.
    pub fn rate(&self) -> Rate {
        self.sent.rate()
    }

    /// Makes a session keep the limits.
    pub(crate) fn limit(&self, connection: &Connection) {
        connection.limit(&self.sent, &self.received);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_crypto::Identity;
    use hikyaku_forward::Share;
    use std::sync::atomic::AtomicU32;

    #[test]
    fn sessions_of_one_key_share_and_those_of_others_do_not() {
        let [one, two] = [(); 2].map(|()| Identity::generate().unwrap().fingerprint());
        let flows = PerKey::<AtomicU32>::default();
        let share = |key| Share::new(flows.of(key, |_| true, AtomicU32::default), 1);
        let (first, again, other) = (share(&one), share(&one), share(&two));
        let flow = first.enter().unwrap();
        assert!(again.enter().is_none() && other.enter().is_some());
        drop((flow, first, again));
        assert!(share(&one).enter().is_some());
    }

    #[test]
    fn a_key_whose_rate_was_changed_gets_the_new_one() {
        let key = Identity::generate().unwrap().fingerprint();
        let rates = PerKey::<KeyRate>::default();
        let of = |bits| {
            let rate = Rate::from_bits_per_sec(bits);
            rates.of(&key, |has| has.rate() == rate, || KeyRate::new(rate))
        };
        let (first, again) = (of(1000), of(1000));
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(of(2000).rate().bits_per_sec(), 2000);
    }
}
