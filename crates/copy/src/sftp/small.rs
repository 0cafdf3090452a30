//! Groups of small files: requests of one kind for all of them are sent together. Otherwise each request would be a packet
//! of ssh and wake four processes.

use super::Run;
use super::download::{Download, fetch, finish, stays_here};
use super::fault::{Trouble, here, stored, there};
use super::file::{changed, check_unchanged, draft_path, paced};
use super::journal::Past;
use super::landing::{Group, Landing};
use super::present::{Present, Seen};
use super::resume::RESUMED_BYTES_MIN;
use super::settle::{Complete, name};
use super::upload::{
    Until, Upload, kept, key_of, may_stay, opening_mode, present_at, replaceable, syncs, told,
    upload,
};
use hikyaku_fan::Dress;
use hikyaku_job::End;
use hikyaku_sftp::{Answer, Attributes, DATA_BYTES_MAX, Failed, Handle, Request};
use hikyaku_store::StorePath;
use hikyaku_store_local::{Folder, Local, Reached};
use hikyaku_transfer::{Durable, Limit};
use std::fs::{File, Metadata};
use std::mem::take;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Maximum number of files in a group.
const TOGETHER: usize = 64;
/// Number of files from which on their file system is synced as a whole.
const SYNCED_TOGETHER_MIN: usize = 8;
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

/// Reads files of the server into files of this machine, each of which gets its name when it is complete. A failure
/// concerns one of them, unless it ends the copy.
pub(super) fn download_together(
    run: &Run<'_>,
    limit: &Limit,
    (target, landing): ((&Local, Dress), &Landing),
    files: &[Download],
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let mut together = Vec::new();
    for file in files {
        run.go_on()?;
        match asked(run, target.0, file) {
            Ok(Asked::Kept) => run.meter.add_kept(file.size()),
            Ok(Asked::Alone) => run.told(fetch(run, limit, target, file))?,
            Ok(Asked::Together) => together.push(file),
            Err(trouble) => run.told(Err(trouble))?,
        }
    }
    let (flags, attributes) = (Request::READ, Attributes::default());
    let open = together.iter().map(|file| Request::Open { path: &file.from, flags, attributes });
    let answers = client.all(&open.collect::<Vec<_>>());
    let mut reading = Vec::new();
    for (file, opened) in together.into_iter().zip(answers) {
        match opened.handle().map_err(there(&file.from)) {
            Ok(handle) => {
                let size = usize::try_from(file.size()).unwrap_or(0);
                paced(run, limit, size)?;
                reading.push((file, size, handle));
            }
            Err(trouble) => run.told(Err(trouble))?,
        }
    }
    let requests = reading.iter().flat_map(|(_, size, handle)| {
        // A server sends all bytes up to the end of a file (section 6.4): one byte more shows whether the file continues.
        let (handle, length) = (handle.bytes(), u32::try_from(size + 1).unwrap_or(1));
        [Request::Read { handle, offset: 0, length }, Request::Close(handle)]
    });
    let mut answers = client.all(&requests.collect::<Vec<_>>()).into_iter();
    let (mut whole, mut ended) = (Vec::new(), Ok(()));
    for (file, size, _) in reading {
        let data = answers.next().map_or(Err(Failed::Odd), |answer| answer.data(size + 1));
        // The handle was not written through, so its answer is not awaited.
        drop(answers.next());
        let done = match data.map_err(there(&file.from)) {
            Ok(data) if data.len() == size => {
                whole.push((file, data));
                Ok(())
            }
            // A server may send less than requested, and files of /proc have a size of zero.
            Ok(data) if data.len() < size || size == 0 => fetch(run, limit, target, file),
            Ok(_) => Err(changed(End::There, &file.from)),
            Err(trouble) => Err(trouble),
        };
        ended = run.told(done);
        if ended.is_err() {
            break;
        }
    }
    // Files that have arrived are written, also if the copy ends.
    let group = store(run, target, &whole)?;
    match whole.len() < SYNCED_TOGETHER_MIN || run.options.rules.durable == Durable::Cache {
        true => group.name(run),
        false => landing.add(run, group),
    }
    ended
}

/// Whether and how a file is read.
enum Asked {
    /// Not at all: the existing file stays.
    Kept,
    Together,
    /// By itself: an earlier attempt has begun it, or the destination is a stream.
    Alone,
}

fn asked(run: &Run<'_>, store: &Local, file: &Download) -> Result<Asked, Trouble> {
    let key = file.key();
    if stays_here(run, store, file, key)? {
        return Ok(Asked::Kept);
    }
    let past = run.journal.and_then(|journal| journal.past(key));
    let is_stream =
        file.to.split().is_some_and(|(dir, name)| dir == StorePath::ROOT && store.is_stream(&name));
    let is_alone = is_stream || matches!(past, Some(Past::Part { .. }));
    Ok(if is_alone { Asked::Alone } else { Asked::Together })
}

/// Writes complete files on this host. A failure concerns one of them.
fn store(
    run: &Run<'_>,
    (store, dress): (&Local, Dress),
    files: &[(&Download, Vec<u8>)],
) -> Result<Group, Trouble> {
    let reached = match run.options.rules.durable == Durable::Disk {
        false => Reached::Kernel,
        true if files.len() < SYNCED_TOGETHER_MIN => Reached::Disk,
        true => Reached::DiskWithOthers,
    };
    let (mut group, mut folder) = (Group::default(), None::<Folder<'_>>);
    for (file, bytes) in files {
        // The root is a directory, which no file replaces: it was refused before it was asked for.
        let Some((dir, name)) = file.to.split() else { continue };
        if folder.as_ref().is_none_or(|open| *open.path() != dir) {
            group.folders += 1;
            folder = match store.folder(&dir) {
                Ok(open) => Some(open),
                Err(error) => {
                    run.told(Err(stored(error)))?;
                    None
                }
            };
        }
        let Some(open) = &folder else { continue };
        let finish = finish(run, (store, dress), file);
        match open.write((&name, bytes), &finish, reached) {
            Ok(whole) => {
                run.meter.add_bytes(bytes.len() as u64);
                group.files.push((file.key(), whole));
            }
            Err(error) => run.told(Err(stored(error)))?,
        }
    }
    Ok(group)
}
