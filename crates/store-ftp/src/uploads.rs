//! The rules of a store's uploads for their number of connections, and the measurements that they leave for the next ones.

use crate::ftp::Ftp;
use crate::steering::Steering;
use crate::tuning::Tuning;
use hikyaku_gridftp::Stripes;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The measurements of the uploads of a store.
#[derive(Default)]
pub(crate) struct Uploads {
    /// Of uploads in chunks that have ended.
    tunings: Mutex<Vec<Tuning>>,
    /// Of all uploads whose number of connections changes while they run.
    steering: OnceLock<Option<Steering>>,
}

impl Uploads {
    fn tunings(&self) -> MutexGuard<'_, Vec<Tuning>> {
        self.tunings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ftp {
    /// The measurements with which an upload in chunks begins.
    pub(crate) fn take_tuning(&self) -> Tuning {
        let earlier = self.uploads().tunings().pop();
        let (traits, connections) = (self.traits(), &self.writing().connections);
        earlier.unwrap_or_else(|| Tuning::new(connections, traits.mode, traits.rtt))
    }

    /// Keeps the measurements of an upload for the next one.
    pub(crate) fn keep_tuning(&self, tuning: Tuning) {
        self.uploads().tunings().push(tuning);
    }

    /// The rule for the number of connections of all uploads; `None` if it does not change while they run.
    pub(crate) fn steering_of_uploads(&self) -> Option<&Steering> {
        let is_one = self.settings().stripes == Stripes::One;
        let new = || Steering::of_uploads(&self.writing().connections).filter(|_| is_one);
        self.uploads().steering.get_or_init(new).as_ref()
    }
}
