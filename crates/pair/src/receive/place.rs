//! Where an entry goes: only what was asked for, and what no other part of the copy has made.

use super::{Receiver, Stopped};
use crate::error::PairError;
use crate::failure::Fatal;
use crate::kind_of;
use hikyaku_fs::{PeerPath, Shown};
use hikyaku_job::{Attempt, Claim, End, just_made};
use hikyaku_transfer::{Depth, Entry, EntryKind, FailureKind, FromReceiver, Links};

impl Receiver<'_> {
    /// Where an entry belongs, unless another part of the copy has made something there.
    // spec: copy-entry-1
    pub(super) fn free_place(&self, entry: &Entry) -> Result<Option<PeerPath>, Stopped> {
        let path = self.place(entry)?;
        let claim = self.claims.claim(path.as_bytes(), kind_of(&entry.kind));
        match claim.map_err(|error| self.disk.fault.report(error))? {
            Claim::Free => Ok(Some(path)),
            Claim::Taken => {
                let failure = just_made(path.as_bytes());
                self.disk.meter.add_failure(End::There, &failure);
                let (path, failure) = (path.as_bytes().to_vec(), Some(failure));
                self.say(&FromReceiver::Failed { path, failure })?;
                Ok(None)
            }
        }
    }

    fn place(&self, entry: &Entry) -> Result<PeerPath, Stopped> {
        // No honest sender has such a path.
        let options = self.disk.options;
        let is_deep = entry.path.contains(&b'/') || entry.kind == EntryKind::Dir;
        let is_link = matches!(entry.kind, EntryKind::Link(_));
        let is_unasked =
            (is_deep && options.rules.depth == Depth::File && options.files.is_empty())
                || (is_link && options.rules.links == Links::Followed);
        // spec: copy-order-2
        if is_unasked || !self.allowed.admits(&entry.path, kind_of(&entry.kind)) {
            let shown = Shown::new(&entry.path);
            return Err(self.disk.fault.report(PairError::ended(format_args!(
                "the other end sends {shown}, which was not asked for"
            ))));
        }
        if self.landing.must_be_dir() && !is_deep {
            let place = self.landing.path().join(
                self.landing.name().map_or_else(Default::default, |name| {
                    std::path::PathBuf::from(name.as_os_str())
                }),
            );
            if self.attempt == Attempt::First {
                // The only source is refused: no attempt continues this one.
                self.disk.journal.remove();
            }
            let shown = Shown::new(place.as_os_str().as_encoded_bytes()).to_string();
            let missing = Fatal::of(FailureKind::NotFound, format!("{shown}/: no such directory"));
            return Err(self.disk.fault.report(missing));
        }
        self.landing.locate(&entry.path).map_err(|error| {
            let shown = Shown::new(&entry.path);
            self.disk.fault.report(PairError::ended(format_args!(
                "the sender wants to write {shown}: {error}"
            )))
        })
    }
}
