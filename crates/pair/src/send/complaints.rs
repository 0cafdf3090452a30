//! What goes wrong with a single file.

use crate::fault::Fault;
use hikyaku_job::{End, Meter};
use hikyaku_reach::Out;
use hikyaku_transfer::{EntryId, Failure, FromSender};

/// What cannot be read: both ends are told, one of them has a user.
pub(crate) struct Complaints<'a> {
    pub(crate) out: Out,
    pub(crate) meter: &'a Meter,
    pub(crate) fault: &'a Fault,
}

impl Complaints<'_> {
    pub(crate) fn say(&self, id: Option<EntryId>, failure: Failure) {
        self.meter.add_failure(End::Here, &failure);
        if let Err(error) = self.out.say(&FromSender::Unreadable { id, failure }) {
            self.fault.report(error);
        }
    }
}
