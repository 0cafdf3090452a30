//! The unfinished file of a download, and what an earlier attempt has left.

use super::{Added, Tools};
use crate::journal::{Attempt, Journal, UNKNOWN_SOURCE};
use crate::metalink::Expect;
use crate::ranges::Piece;
use crate::target::Existing;
use crate::verify::{Verdict, verify};
use anyhow::Result;
use hikyaku_fs::{Draft, FilePlace, Meta, Name};
use hikyaku_http::{Known, Proof, Url};
use std::sync::Arc;

/// The unfinished file of an earlier attempt and what is in it, or a new one.
pub(super) fn open(
    tools: &Tools<'_>,
    spot: &FilePlace,
    journal: &Journal,
    urls: &[Url],
    (known, total): (&Known, u64),
) -> Result<(Draft, Vec<Piece>)> {
    let version = known.offer.version.if_range.clone();
    let sources = sources_digest(urls);
    let mut found: Option<(Draft, Vec<Piece>)> = None;
    if let Some(earlier) = journal.earlier()
        && let Some(draft) = spot.take_up(&earlier.partial)?
    {
        // With a digest the whole is checked at the end, whatever the server says of its version.
        let is_checked = known.proof == Proof::Digest;
        let is_same_version = version.is_some() && version == earlier.version;
        if earlier.size == Some(total) && (is_same_version || is_checked) {
            let same_sources = earlier.sources == sources;
            let source = |of: usize| if same_sources { of } else { UNKNOWN_SOURCE };
            let have = earlier.have.into_iter().filter(|piece| piece.range.end <= total);
            let have = have.map(|piece| Piece { source: source(piece.source), ..piece });
            found = Some((draft, have.collect()));
        } else {
            draft.discard();
            tools.show.remark("the server may have another file by now; begun anew".to_owned());
        }
    }
    let (found, have) = found.unzip();
    let (partial, have) = (partial(spot, found.as_ref())?, have.unwrap_or_default());
    let attempt = Attempt {
        size: Some(total),
        version,
        sources,
        partial: partial.as_bytes().to_vec(),
        have: have.clone(),
        complete: None,
    };
    let draft = made(spot, journal, (attempt, partial), found)?;
    draft.keep();
    Ok((draft, have))
}

/// The name of the unfinished file: of an earlier attempt's, or a new one.
pub(super) fn partial(spot: &FilePlace, found: Option<&Draft>) -> Result<Name> {
    Ok(found.map_or_else(|| spot.partial(), |draft| Ok(draft.partial().clone()))?)
}

/// The unfinished file, which is in the journal before it is made: if this process is killed, the next one finds it.
pub(super) fn made(
    spot: &FilePlace,
    journal: &Journal,
    (attempt, partial): (Attempt, Name),
    found: Option<Draft>,
) -> Result<Draft> {
    journal.begin(attempt)?;
    let draft = found.map_or_else(|| spot.make(partial), Ok);
    if draft.is_err() {
        // The first failure is the one to report.
        let _ = journal.remove();
    }
    Ok(draft?)
}

/// Whether an earlier attempt has completed the file, and only its journal is left: it has the version and the digests
/// that are wanted now.
pub(super) fn is_complete(
    tools: &Tools<'_>,
    spot: &FilePlace,
    journal: &Journal,
    (known, expect): (&Known, &Expect),
) -> Result<bool> {
    let Some(earlier) = journal.earlier().filter(|earlier| journal.has_named(earlier)) else {
        return Ok(false);
    };
    let is_same = earlier.version == known.offer.version.if_range;
    // Without a version a user who has files replaced wants this one replaced as well.
    let is_wanted = earlier.version.is_some() || tools.existing == Existing::Refused;
    if !is_same || !is_wanted {
        return Ok(false);
    }
    let Ok(draft) = Draft::in_place(Arc::clone(&spot.dir), &spot.name) else { return Ok(false) };
    let size = draft.with(|file| Meta::of(file))?.size;
    if known.offer.total.is_some_and(|total| total != size)
        || verify(&draft, size, expect)? != Verdict::Right
    {
        return Ok(false);
    }
    tools.add(Added { total_bytes: size, kept_bytes: size });
    Ok(true)
}

/// A digest of the URLs, which may be secrets.
fn sources_digest(urls: &[Url]) -> String {
    let mut sum = hikyaku_http::Function::Sha256.begin();
    for url in urls {
        sum.update(format!("{url}\0{}\0", url.target).as_bytes());
    }
    sum.finish().as_ref().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
