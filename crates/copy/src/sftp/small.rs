//! Groups of small files: requests of one kind for all of them are sent together. Otherwise each request would be a packet
//! of ssh and wake four processes.

use super::Run;
use super::fault::{Trouble, here, there};
use super::file::{changed, check_unchanged, draft_path, paced};
use super::present::{Present, Seen};
use super::resume::RESUMED_BYTES_MIN;
use super::settle::{Complete, name};
use super::upload::{
    Until, Upload, kept, key_of, may_stay, opening_mode, present_at, replaceable, syncs, told,
    upload,
};
use hikyaku_job::End;
use hikyaku_sftp::{Answer, Attributes, DATA_BYTES_MAX, Failed, Handle, Request};
use hikyaku_transfer::Limit;
use std::fs::{File, Metadata};
use std::mem::take;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Maximum number of files in a group.
const TOGETHER: usize = 64;
/// Maximum size of a small file in bytes: less than the payload of one request.
const SMALL_BYTES_MAX: u64 = 16 << 10;

const _: () =
    assert!(SMALL_BYTES_MAX < RESUMED_BYTES_MIN && SMALL_BYTES_MAX < DATA_BYTES_MAX as u64);

/// Small files that wait for their group.
pub(super) struct Small<F>(Vec<F>);

impl<F> Small<F> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Adds a file of this size, if it is small, and returns a full group. A large file is returned.
    pub(super) fn add(&mut self, file: F, size: Option<u64>) -> Result<Option<Vec<F>>, F> {
        if size.is_none_or(|size| size > SMALL_BYTES_MAX) {
            return Err(file);
        }
        self.0.push(file);
        Ok((self.0.len() >= TOGETHER).then(|| self.rest()))
    }

    /// Takes the remaining files.
    pub(super) fn rest(&mut self) -> Vec<F> {
        take(&mut self.0)
    }
}

/// A file of this machine that was read.
struct Ready {
    complete: Complete,
    before: Metadata,
    contents: Vec<u8>,
}

/// Writes files on the server, each under a temporary name first. A failure concerns one of them, unless it ends the
/// copy.
pub(super) fn upload_together(
    run: &Run<'_>,
    (limit, present): (&Limit, &Present),
    files: &[Upload],
) -> Result<(), Trouble> {
    let settling = run.settling.filter(|one| files.iter().all(|file| one.takes(run, &file.to)));
    let (mut ready, mut done) = (Vec::new(), Ok(()));
    for file in files {
        done = match run.go_on().and_then(|()| read(run, limit, file)) {
            Ok(Some(one)) => {
                ready.push(one);
                Ok(())
            }
            Ok(None) => run.told(upload(run, limit, file)),
            Err(trouble) => run.told(Err(trouble)),
        };
        // Files that were read are completed before the copy ends.
        if done.is_err() {
            break;
        }
    }
    let (opened, told) = opened(run, present, ready);
    done = done.and(told);
    let until = if settling.is_some() { Until::Written } else { Until::Synced };
    let (written, told) = written(run, opened, until);
    let named = match settling {
        Some(settling) => settling.add(run, written),
        None => name(run, written),
    };
    done.and(told).and(named)
}

/// Reads a file. `None` if it has to be copied by itself.
fn read(run: &Run<'_>, limit: &Limit, file: &Upload) -> Result<Option<Ready>, Trouble> {
    let source = File::open(&file.from).map_err(here("open", &file.from))?;
    let before = source.metadata().map_err(here("look at", &file.from))?;
    let (key, size) = (key_of(file, &before), before.size());
    let has_past = run.journal.is_some_and(|journal| journal.past(key).is_some());
    if has_past || may_stay(run, key) || size > SMALL_BYTES_MAX {
        return Ok(None);
    }
    // One byte more shows whether the file has grown.
    let mut contents = vec![0; usize::try_from(size).unwrap_or(0) + 1];
    let mut length = 0;
    loop {
        let read = source.read_at(&mut contents[length..], length as u64);
        match read.map_err(here("read", &file.from))? {
            0 => break,
            read => length += read,
        }
        if length == contents.len() {
            break;
        }
    }
    if size == 0 && length > 0 {
        // A file of /proc.
        return Ok(None);
    }
    check_unchanged(&source, &before, &file.from)?;
    if length as u64 != size {
        return Err(changed(End::Here, file.from.as_os_str().as_encoded_bytes()));
    }
    contents.truncate(length);
    paced(run, limit, length)?;
    let (draft, to) = (draft_path(&file.to)?, file.to.clone());
    let complete = Complete { draft, to, size, told: told(run, &before), key };
    Ok(Some(Ready { complete, before, contents }))
}

/// A file that is open on the server.
struct Open {
    complete: Complete,
    contents: Vec<u8>,
    handle: Handle,
    /// Its metadata, or the reason why the existing entry is not replaced.
    kept: Result<Option<Attributes>, Trouble>,
}

impl Open {
    /// The remaining requests.
    fn requests(&self, is_synced: bool) -> impl Iterator<Item = Request<'_>> {
        let (handle, data) = (self.handle.bytes(), &self.contents[..]);
        let kept = self.kept.as_ref().ok();
        let write = Request::Write { handle, offset: 0, data };
        let requests = [
            kept.filter(|_| !data.is_empty()).map(|_| write),
            kept.copied().flatten().map(|attributes| Request::FSetStat(handle, attributes)),
            kept.filter(|_| is_synced).map(|_| Request::Sync(handle)),
            Some(Request::Close(handle)),
        ];
        requests.into_iter().flatten()
    }
}

/// Opens new files, and requests the metadata of existing ones.
fn opened(run: &Run<'_>, present: &Present, files: Vec<Ready>) -> (Vec<Open>, Result<(), Trouble>) {
    let names: Vec<&[u8]> = files.iter().map(|file| &file.complete.to[..]).collect();
    let seen = present.of(run, &names);
    let requests = files.iter().zip(&seen).flat_map(|(Ready { complete, before, .. }, seen)| {
        let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
        let attributes = Attributes { mode: Some(opening_mode(before)), ..Attributes::default() };
        let open = Request::Open { path: &complete.draft, flags, attributes };
        let look = (*seen == Seen::Unknown).then_some(Request::LStat(&complete.to));
        look.into_iter().chain([open])
    });
    let mut answers = run.server.client.all(&requests.collect::<Vec<_>>()).into_iter();
    let (mut all, mut done) = (Vec::new(), Ok(()));
    for (Ready { complete, before, contents }, seen) in files.into_iter().zip(seen) {
        let to = &complete.to;
        let present = match seen {
            Seen::Told(present) => Ok(present),
            Seen::Unknown => {
                present_at(answers.next().map_or(Err(Failed::Odd), Answer::attributes), to)
            }
        };
        let replaced = present.and_then(|present| replaceable(present, to));
        match answers.next().map_or(Err(Failed::Odd), Answer::handle) {
            Ok(handle) => {
                let kept = replaced
                    .and_then(|replaced| kept(run, &before, (to, &complete.draft), replaced));
                all.push(Open { complete, contents, handle, kept });
            }
            // The reason concerning the name is more exact.
            Err(error) => {
                let trouble = replaced.err().unwrap_or_else(|| there(to)(error));
                done = done.and(run.told(Err(trouble)));
            }
        }
    }
    (all, done)
}

/// Writes files that are open. Gives those that have all of their bytes; the others are removed.
fn written(run: &Run<'_>, files: Vec<Open>, until: Until) -> (Vec<Complete>, Result<(), Trouble>) {
    let is_synced = until == Until::Synced && syncs(run);
    let all: Vec<_> = files.iter().flat_map(|file| file.requests(is_synced)).collect();
    let counts: Vec<_> = files.iter().map(|file| file.requests(is_synced).count()).collect();
    let mut answers = run.server.client.all(&all).into_iter();
    let (mut written, mut done) = (Vec::new(), Ok(()));
    for (Open { complete, kept, .. }, count) in files.into_iter().zip(counts) {
        // All answers are read, also after a failure.
        let heard: Vec<_> = answers.by_ref().take(count).map(Answer::done).collect();
        let heard = heard.into_iter().collect::<Result<(), _>>().map_err(there(&complete.to));
        match kept.and(heard) {
            Ok(()) => {
                run.meter.add_bytes(complete.size);
                written.push(complete);
            }
            Err(trouble) => {
                let failed = complete.fails(run, trouble);
                done = done.and(failed);
            }
        }
    }
    (written, done)
}
