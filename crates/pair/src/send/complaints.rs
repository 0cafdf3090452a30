//! Failures of single files.

use crate::fault::Fault;
use hikyaku_job::{End, Meter};
use hikyaku_reach::Out;
use hikyaku_transfer::{EntryId, Failure, FromSender};

/// Files that cannot be read. The failure is shown at this end and sent to the other one, since either may have the user.
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
