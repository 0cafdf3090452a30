//! The plan of a copy into a store.

use super::{Arriving, Destination, SessionError, Streams, Together};
use crate::census::{Census, File};
use crate::choice::Choice;
use crate::fetch::Taking;
use crate::layout::Meant;
use crate::plan::Plan;
use hikyaku_fs::{Incoming, PeerPath};
use hikyaku_job::Opened;
use hikyaku_remote::Seen;
use hikyaku_store::{ErrorKind, Kind, Store, StorePath, Time};
use std::sync::Arc;
use std::time::SystemTime;

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

/// A pipe belongs to its user alone; a file that is made of one is as new files are.
const STREAM_MODE: u32 = 0o666;

/// A source without a size.
pub(super) struct StreamSource {
    /// The FIFO or descriptor that gives the bytes.
    pub(super) stream: Incoming,
    /// Its path on this machine.
    pub(super) path: PeerPath,
    /// Its name in a directory.
    pub(super) name: StorePath,
}

impl Landed {
    /// The plan of a copy of such a source, one of `count` of the call. The copy cannot be continued.
    ///
    /// # Errors
    ///
    /// It cannot be copied to the destination.
    pub(super) fn of_stream(
        (source, count): (&StreamSource, usize),
        destination: &Destination<'_>,
        (choice, together, streams): (&Choice<'_>, Together<'_>, &Streams),
    ) -> Result<Self, SessionError> {
        let StreamSource { stream, path, name } = source;
        if !choice.listed.is_empty() {
            let (kind, shown) = (ErrorKind::NotDir, StorePath::from(path.clone()));
            return Err(SessionError::refused(kind, format!("{shown}: {}", unfit(kind))));
        }
        let renamed = together.renamed(count, Meant::Itself);
        let (kind, pass) = (Kind::File, choice.pass);
        let arriving = Arriving { renamed, kind, pass, streams, origin: None };
        let landing = destination.landing((name, name), arriving)?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let secs = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        let modified = Time { secs, nanos: since.subsec_nanos() };
        let file = File {
            path: path.clone(),
            to: landing.place().clone(),
            seen: Seen { size: 0, modified },
            data: 0,
            content: None,
            mode: STREAM_MODE,
            at: Vec::new(),
        };
        let (base, stream) = (landing.base.clone(), Some(stream.clone()));
        let mut plan = Plan { base, stream, files: vec![file], ..Plan::default() };
        together.claim(count, "pipes", &mut plan);
        Ok(Self { store: landing.store, taking: landing.taking, journal: None, plan })
    }
}

/// Why a source cannot be copied as it was chosen ([`Census::choose`]).
pub(super) const fn unfit(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::IsDir => "is a directory, and -r was not given",
        _ => "is not a directory",
    }
}
