//! Continues the files that an earlier run of the same command has left, and leaves those of this run to the next one.

use super::{Fetched, Job};
use crate::census::File;
use crate::plan::Plan;
use crate::target::{Left, Memo, Others, Target, can_be_continued, is_in_place, made_version};
use hikyaku_job::{Opened, Same};
use hikyaku_store::{Draft, Found, Store, StorePath, Token, Versions};
use hikyaku_transfer::{
    FileRecord, Head, Part, Proven, Remains, SEGMENT, SegmentHash, SegmentIndex, Version,
};
use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

/// Bytes at the end of what is there that are read again, and are compared with the source as well if its version may be that of
/// two contents.
const COMPARED_BYTES: u64 = 4 << 20;

/// How sure it is that a source has the content that an earlier run fetched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    /// Its version is of one content only.
    Same,
    /// It has the same size and time.
    Alike,
}

/// The target, recorded in the journal of the transfer, with the part that an earlier run has left.
pub(super) fn continued<'a>(job: &Job<'a>, file: &File, target: Target<'a>) -> Target<'a> {
    let (Some(opened), Some(version)) = (job.journal, version(file, job.plan.versions)) else {
        return target;
    };
    let target = target.recorded(Memo { journal: &opened.journal, version });
    let Some(Remains::Part(part)) = opened.remains.get(file.to.as_bytes()) else { return target };
    let content = content((&part.record, file), job.plan.versions);
    let Some(content) = content.filter(|_| target.is_continued()) else {
        discard(&*job.store, &file.to, &part.record);
        return target;
    };
    match left((job, &target), part, content) {
        Some(left) => {
            job.meter.add_kept(left.bytes());
            // Equal size and time do not prove equal content. So a file that is only alike keeps the version of its
            // earlier record.
            let version = part.record.version;
            target.recorded(Memo { journal: &opened.journal, version }).continuing(left)
        }
        None => target,
    }
}

/// Whether the next run continues the files of this one, should it be stopped.
pub(super) fn is_continued(job: &Job<'_>) -> bool {
    job.journal.is_some_and(|opened| opened.journal.is_open())
        && can_be_continued(&*job.store, job.writing.write)
        && job.plan.versions != Versions::Nothing
}

/// Whether the file at the target is the one that an earlier run made from this content.
pub(super) fn is_whole(job: &Job<'_>, file: &File, found: Option<&Found>) -> bool {
    let remains = job.journal.and_then(|opened| opened.remains.get(file.to.as_bytes()));
    let (Some(Remains::Whole(done)), Some(found)) = (remains, found) else { return false };
    version(file, job.plan.versions) == Some(done.version) && made_version(found) == done.made
}

/// After a run: its journal stays if the next one continues. Otherwise it goes, with what nothing has continued. A copy that
/// does not compare files with those at the target needs it also for the files that are complete.
pub(super) fn end(job: &Job<'_>, fetched: &Fetched) {
    let Some(Opened { journal, remains, .. }) = job.journal else { return };
    let is_stopped = job.stop.load(Ordering::Relaxed) || job.store.lost().is_some();
    let has_whole = || remains.values().any(|remains| matches!(remains, Remains::Whole(_)));
    let has_some = fetched.files > 0 || fetched.kept > 0 || has_whole();
    let knows_whole = job.same == Same::Never && !fetched.failed.is_empty() && has_some;
    let has_more = fetched.failed.iter().any(|(_, error)| error.leaves_the_file());
    if !is_stopped && !knows_whole && !has_more {
        discard_all(&*job.store, remains);
        journal.remove();
    }
}

/// Removes unfinished files that nothing continues. One that has its name by now is not there any more.
pub(crate) fn discard_all(store: &dyn Store, remains: &BTreeMap<Vec<u8>, Remains>) {
    for (path, remains) in remains {
        if let Remains::Part(Part { record, .. }) | Remains::Void(record) = remains
            && let Ok(path) = StorePath::new(path)
        {
            discard(store, &path, record);
        }
    }
}

fn discard(store: &dyn Store, path: &StorePath, record: &FileRecord) {
    let token = Token(record.partial.clone());
    // A file that was written under its own name stays as it is.
    if !is_in_place(&token, path)
        && let Ok(draft) = store.take_up(path, &token)
    {
        draft.discard();
    }
}

impl Plan {
    /// The version under which the file of this number is recorded in a journal; `None` if it is not.
    pub fn version_of(&self, file: usize) -> Option<Version> {
        version(self.files.get(file)?, self.versions)
    }
}

/// The version of the content of a file; `None` if another content of the same size would have the same one.
fn version(file: &File, versions: Versions) -> Option<Version> {
    strong(file).or_else(|| weak(file, versions))
}

fn strong(file: &File) -> Option<Version> {
    let token = &file.content.as_ref()?.0;
    let number = |bytes: &[u8]| bytes.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    let parts = [file.seen.size, token.len() as u64].into_iter().chain(token.chunks(8).map(number));
    Some(Version::of(&parts.collect::<Vec<_>>()))
}

fn weak(file: &File, versions: Versions) -> Option<Version> {
    let (size, time) = (file.seen.size, file.seen.modified);
    let parts = [u64::MAX, size, time.secs.cast_unsigned(), u64::from(time.nanos)];
    (versions != Versions::Nothing).then(|| Version::of(&parts))
}

/// Whether a file has the content of a record; `None` if it has another one, or one that cannot be known.
fn content((record, file): (&FileRecord, &File), versions: Versions) -> Option<Content> {
    if record.size != file.seen.size {
        return None;
    }
    // A store may know a strong version of a file only when it has not been changed for a while.
    let is_alike = || weak(file, versions) == Some(record.version);
    match strong(file) {
        Some(strong) if strong == record.version => Some(Content::Same),
        _ => is_alike().then_some(Content::Alike),
    }
}

/// The part of a file that is on the disk as it was fetched; `None` if nothing of the part can be used. Bytes that were
/// written after the last sync are read again, and the last ones before it: where a file was cut or damaged, it was most likely
/// there. A store that reports the length of a file that it was sent in order has no syncs, and only the last bytes are read
/// again: to read more would take as long as to send it. If the file is older than its record, or other programs may have
/// written to it, all of it is read again.
fn left((job, target): (&Job<'_>, &Target<'_>), part: &Part, content: Content) -> Option<Left> {
    let (draft, others) = target.take_up(&Token(part.record.partial.clone()))?;
    draft.keep();
    let modified = draft.modified().ok()?.map(|time| (time.secs, time.nanos));
    let is_older = part.stamp.zip(modified).is_some_and(|(stamp, modified)| modified < stamp);
    let nothing = Proven::nothing(part.proven.file());
    let stored = draft.stored().ok()?;
    let (recorded, mut claimed) = match stored {
        Some(length) => {
            let mut all = part.proven.clone();
            add(&mut all, &part.claimed);
            (within(&all, length), nothing.clone())
        }
        None => (part.proven.clone(), part.claimed.clone()),
    };
    let (mut proven, last) = split(&recorded);
    for (index, hash) in last {
        claimed.insert(index, hash);
    }
    if is_older || others == Others::Possible {
        add(&mut claimed, &proven);
        proven = nothing.clone();
    }
    // The kernel's copy may be right where the disk's is not. So the disk gets what it lacks first, and is then asked.
    if draft.sync().and_then(|()| draft.forget_cache()).is_err() {
        draft.discard();
        return None;
    }
    add(&mut proven, &still_right(job, &*draft, &claimed));
    let (proven, compared) = match content {
        Content::Same => (proven, BTreeMap::new()),
        Content::Alike => split(&proven),
    };
    // Without a whole segment that is compared, alike is all that is known of the content.
    let is_sure = content == Content::Same || proven.bytes() > 0;
    let heads =
        if is_sure { heads(job, &*draft, (part, stored.unwrap_or(u64::MAX))) } else { Vec::new() };
    let is_open = |head: &Head| proven.lacks(head.index) && !compared.contains_key(&head.index);
    let heads = heads.into_iter().filter(|(head, _)| is_open(head)).collect();
    Some(Left { draft, proven, compared, heads })
}

/// The recorded heads that the first `stored` bytes of a draft still have. The user may end the reading.
fn heads(job: &Job<'_>, draft: &dyn Draft, (part, stored): (&Part, u64)) -> Vec<(Head, Vec<u8>)> {
    let read = |head: &Head| {
        let range = head.range(part.proven.file()).filter(|range| range.end <= stored)?;
        let mut bytes = vec![0; (range.end - range.start) as usize];
        let length = draft.read_at(range.start, &mut bytes).ok()?;
        (length == bytes.len() && head.is(&bytes)).then_some((*head, bytes))
    };
    let is_wanted = |_: &&Head| !job.stop.load(Ordering::Relaxed);
    part.heads.iter().take_while(is_wanted).filter_map(read).collect()
}

/// Those of the segments that end within the first `length` bytes.
fn within(of: &Proven, length: u64) -> Proven {
    let file = of.file();
    let mut within = Proven::nothing(file);
    let is_within = |index| file.range(index).is_some_and(|range| range.end <= length);
    for (index, hash) in segments(of).filter(|(index, _)| is_within(*index)) {
        within.insert(index, hash);
    }
    within
}

fn add(to: &mut Proven, other: &Proven) {
    other.runs().iter().for_each(|(first, hashes)| to.insert_run(*first, hashes));
}

fn segments(of: &Proven) -> impl Iterator<Item = (SegmentIndex, SegmentHash)> {
    let numbered = |(first, hashes): (SegmentIndex, Vec<SegmentHash>)| {
        (first.0..).zip(hashes).map(|(index, hash)| (SegmentIndex(index), hash))
    };
    of.runs().into_iter().flat_map(numbered)
}

/// Those of the segments that a draft still has. The user may end the reading.
fn still_right(job: &Job<'_>, draft: &dyn Draft, claimed: &Proven) -> Proven {
    let (file, mut right) = (claimed.file(), Proven::nothing(claimed.file()));
    let mut bytes = vec![0; SEGMENT as usize];
    for (index, hash) in segments(claimed) {
        let Some(range) = file.range(index) else { continue };
        let bytes = &mut bytes[..(range.end - range.start) as usize];
        let is_read = draft.read_at(range.start, bytes).is_ok_and(|length| length == bytes.len());
        if is_read && SegmentHash::new(file, index, bytes) == Some(hash) {
            right.insert(index, hash);
        }
        if job.stop.load(Ordering::Relaxed) {
            break;
        }
    }
    right
}

/// All segments but the last ones, and the last ones.
fn split(proven: &Proven) -> (Proven, BTreeMap<SegmentIndex, SegmentHash>) {
    let all: Vec<_> = segments(proven).collect();
    let compared = all.len().saturating_sub((COMPARED_BYTES / SEGMENT) as usize);
    let mut counted = Proven::nothing(proven.file());
    for (index, hash) in &all[..compared] {
        counted.insert(*index, *hash);
    }
    (counted, all[compared..].iter().copied().collect())
}
