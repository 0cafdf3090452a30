//! The plan of a copy into a store.

use super::{Arriving, Destination, SessionError, Streams, Together};
use crate::census::Census;
use crate::choice::Choice;
use crate::fetch::Taking;
use crate::plan::Plan;
use hikyaku_job::Opened;
use hikyaku_store::{ErrorKind, Store, StorePath};
use std::sync::Arc;

/// The plan of a copy into a store.
pub struct Landed {
    /// The store.
    pub store: Arc<dyn Store>,
    /// In which order the target takes bytes.
    pub taking: Taking,
    /// The journal.
    pub journal: Option<Opened>,
    /// The files, and their names there.
    pub plan: Plan,
}

/// A source whose entries are known.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    /// Its path without symbolic links.
    pub root: &'a StorePath,
    /// Its path as the user has named it.
    pub named: &'a StorePath,
    /// Its name in messages and in the journal.
    pub shown: &'a str,
    /// The name of its storage, which distinguishes its files from those of other storages.
    pub origin: &'a str,
    /// The number of sources of the call, of which this is one.
    pub count: usize,
}

impl Landed {
    /// The plan of a copy of the entries that were found at and below a source.
    ///
    /// # Errors
    ///
    /// The source is a directory or a file where the other is wanted, or it cannot be copied to the destination.
    pub fn of(
        (source, mut found): (Listed<'_>, Census),
        destination: &Destination<'_>,
        (choice, together, streams): (&Choice<'_>, Together<'_>, &Streams),
    ) -> Result<Self, SessionError> {
        let Listed { root, named, shown, origin, count } = source;
        let kind = found
            .choose((root, named), choice)
            .map_err(|kind| SessionError::refused(kind, format!("{shown}: {}", unfit(kind))))?;
        let renamed = together.renamed(count, choice.meant(named));
        let pass = choice.pass;
        let arriving = Arriving { renamed, kind, pass, streams, origin: choice.origin(shown) };
        let landing = destination.landing((root, named), arriving)?;
        let mut plan = Plan::of(found, &landing);
        together.claim(count, origin, &mut plan);
        Ok(Self { store: landing.store, taking: landing.taking, journal: landing.journal, plan })
    }
}

/// Why a source cannot be copied as it was chosen ([`Census::choose`]).
pub(super) const fn unfit(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::IsDir => "is a directory, and -r was not given",
        _ => "is not a directory",
    }
}
