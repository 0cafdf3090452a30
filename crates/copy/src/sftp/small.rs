//! Small files that go together: the requests of all of them are sent before the first answer is waited for. One by one,
//! each request would be a packet of ssh and wake four processes.

use super::Run;
use super::download::{Download, download, finish, finished, stays_here};
use super::fault::{Trouble, here, stored, there};
use super::file::{Limit, changed, draft_path};
use super::journal::Past;
use super::resume::RESUMED_BYTES_MIN;
use super::settle::{Complete, name};
use super::upload::{
    Until, Upload, kept, key_of, may_stay, opening_mode, present_at, replaceable, syncs, told,
    upload,
};
use crate::engine::End;
use hikyaku_sftp::{Attributes, DATA_BYTES_MAX, Request, Ticket};
use hikyaku_store::{Make, Naming, Store, StorePath};
use hikyaku_store_local::Local;
use std::fs::{File, Metadata};
use std::mem::take;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Files that go together.
const TOGETHER: usize = 64;
/// The largest of them, in bytes: less than one request carries.
const SMALL_BYTES_MAX: u64 = 16 << 10;

const _: () =
    assert!(SMALL_BYTES_MAX < RESUMED_BYTES_MIN && SMALL_BYTES_MAX < DATA_BYTES_MAX as u64);

/// Small files that were found, and are not under way.
pub(super) struct Small<F>(Vec<F>);

impl<F> Small<F> {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    /// Takes a file of this size, if it is small: gives those that are to go. A large file is given back.
    pub(super) fn add(&mut self, file: F, size: Option<u64>) -> Result<Option<Vec<F>>, F> {
        if size.is_none_or(|size| size > SMALL_BYTES_MAX) {
            return Err(file);
        }
        self.0.push(file);
        Ok((self.0.len() >= TOGETHER).then(|| self.rest()))
    }

    /// Those that are left.
    pub(super) fn rest(&mut self) -> Vec<F> {
        take(&mut self.0)
    }
}

/// Counts the failure of a file; anything else ends the copy.
fn tell(run: &Run<'_>, done: Result<(), Trouble>) -> Result<(), Trouble> {
    match done {
        Err(Trouble::File(end, failure)) => {
            run.meter.add_failure(end, &failure);
            Ok(())
        }
        other => other,
    }
}

/// A file that is being opened on the server.
struct Opening {
    complete: Complete,
    before: Metadata,
    contents: Vec<u8>,
    present: Ticket,
    opened: Ticket,
}

/// Writes files on the server, each under a temporary name first. A failure concerns one of them, unless it ends the
/// copy.
pub(super) fn upload_together(
    run: &Run<'_>,
    limit: &Limit,
    files: &[Upload],
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let settling = run.settling.filter(|one| files.iter().all(|file| one.takes(run, &file.to)));
    let (mut opening, mut sent, mut done) = (Vec::new(), Vec::new(), Ok(()));
    for file in files {
        done = match run.go_on().and_then(|()| open(run, limit, file)) {
            Ok(Some(one)) => {
                opening.push(one);
                Ok(())
            }
            Ok(None) => tell(run, upload(run, limit, file)),
            Err(trouble) => tell(run, Err(trouble)),
        };
        // What is open is completed all the same.
        if done.is_err() {
            break;
        }
    }
    let until = if settling.is_some() { Until::Written } else { Until::Synced };
    for one in opening {
        match send(run, one, until) {
            Ok(one) => sent.push(one),
            Err(trouble) => done = done.and(tell(run, Err(trouble))),
        }
    }
    let mut written = Vec::new();
    for (complete, answers) in sent {
        // All answers are heard, also behind a failure.
        let all: Vec<_> = answers.into_iter().map(|ticket| client.is_done(ticket)).collect();
        match all.into_iter().collect::<Result<(), _>>().map_err(there(&complete.to)) {
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
    let named = match settling {
        Some(settling) => settling.add(run, written),
        None => name(run, written),
    };
    done.and(named)
}

/// Reads a file, and asks for a new one. `None` if it is to be looked at more closely first.
fn open(run: &Run<'_>, limit: &Limit, file: &Upload) -> Result<Option<Opening>, Trouble> {
    let source = File::open(&file.from).map_err(here("open", &file.from))?;
    let before = source.metadata().map_err(here("look at", &file.from))?;
    let (key, size) = (key_of(file, &before), before.size());
    let has_past = run.journal.is_some_and(|journal| journal.past(key).is_some());
    if has_past || may_stay(run, key) || size > SMALL_BYTES_MAX {
        return Ok(None);
    }
    // One byte more tells whether it has grown.
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
    let after = source.metadata().map_err(here("look at", &file.from))?;
    let is_same = before.mtime() == after.mtime() && before.size() == after.size();
    if !is_same || length as u64 != size {
        return Err(changed(End::Here, file.from.as_os_str().as_encoded_bytes()));
    }
    contents.truncate(length);
    limit.keep(run, length)?;
    let (client, draft) = (&run.server.client, draft_path(&file.to)?);
    let present = client.ask(&Request::LStat(&file.to));
    let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
    let attributes = Attributes { mode: Some(opening_mode(&before)), ..Attributes::default() };
    let opened = client.ask(&Request::Open { path: &draft, flags, attributes });
    let complete = Complete { draft, to: file.to.clone(), size, told: told(run, &before), key };
    Ok(Some(Opening { complete, before, contents, present, opened }))
}

/// Sends all that is left of a file, when it is open.
fn send(run: &Run<'_>, one: Opening, until: Until) -> Result<(Complete, Vec<Ticket>), Trouble> {
    let (client, to) = (&run.server.client, &one.complete.to);
    let opened = client.opened(one.opened).map_err(there(to));
    let present = present_at(client.wait(one.present), to);
    let replaced = present.and_then(|present| replaceable(present, to));
    let handle = match opened {
        Ok(handle) => handle,
        // The reason of the name is the better one.
        Err(trouble) => return Err(replaced.err().unwrap_or(trouble)),
    };
    let draft = &one.complete.draft;
    let kept = replaced.and_then(|replaced| kept(run, &one.before, (to, draft), replaced));
    let mut answers = Vec::new();
    if let Ok(kept) = &kept {
        if !one.contents.is_empty() {
            let (handle, data) = (handle.bytes(), &one.contents[..]);
            answers.push(client.ask(&Request::Write { handle, offset: 0, data }));
        }
        if let Some(attributes) = kept {
            answers.push(client.ask(&Request::FSetStat(handle.bytes(), *attributes)));
        }
        if until == Until::Synced && syncs(run) {
            answers.push(client.ask(&Request::Sync(handle.bytes())));
        }
    }
    answers.push(client.ask(&Request::Close(handle.bytes())));
    match kept {
        Ok(_) => Ok((one.complete, answers)),
        Err(trouble) => {
            one.complete.remove(run);
            Err(trouble)
        }
    }
}

/// A file of the server that is being read.
struct Reading<'a> {
    file: &'a Download,
    size: usize,
    /// Its bytes, and what follows them: nothing.
    answers: [Ticket; 2],
}

/// Reads files of the server into files of this machine, each of which gets its name when it is complete. A failure
/// concerns one of them, unless it ends the copy.
pub(super) fn download_together(
    run: &Run<'_>,
    limit: &Limit,
    target: (&Local, u32),
    files: &[Download],
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let mut opening = Vec::new();
    for file in files {
        run.go_on()?;
        match asked(run, target.0, file) {
            Ok(Asked::Kept) => run.meter.add_kept(file.size()),
            Ok(Asked::Alone) => tell(run, download(run, limit, target, file))?,
            Ok(Asked::Together) => {
                let (flags, attributes) = (Request::READ, Attributes::default());
                let open = Request::Open { path: &file.from, flags, attributes };
                opening.push((file, client.ask(&open)));
            }
            Err(trouble) => tell(run, Err(trouble))?,
        }
    }
    let mut reading = Vec::new();
    for (file, opened) in opening {
        match client.opened(opened).map_err(there(&file.from)) {
            Ok(handle) => {
                let size = usize::try_from(file.size()).unwrap_or(0);
                limit.keep(run, size)?;
                let read =
                    |offset, length| Request::Read { handle: handle.bytes(), offset, length };
                // One byte behind the size tells whether the file goes on.
                let whole = client.ask(&read(0, u32::try_from(size.max(1)).unwrap_or(1)));
                let end = client.ask(&read(size as u64, 1));
                drop(client.ask(&Request::Close(handle.bytes())));
                reading.push(Reading { file, size, answers: [whole, end] });
            }
            Err(trouble) => tell(run, Err(trouble))?,
        }
    }
    for Reading { file, size, answers: [whole, end] } in reading {
        let whole = client.data(whole, size.max(1)).map_err(there(&file.from));
        let end = client.data(end, 1).map_err(there(&file.from));
        let done = match (whole, end) {
            (Ok(data), Ok(end)) if data.len() == size && end.is_empty() => {
                written(run, target, file, &data)
            }
            // A server may give less than was asked for, and files of /proc are told to be empty.
            (Ok(data), Ok(_)) if data.len() < size || size == 0 => {
                download(run, limit, target, file)
            }
            (Ok(_), Ok(_)) => Err(changed(End::There, &file.from)),
            (Err(trouble), _) | (_, Err(trouble)) => Err(trouble),
        };
        tell(run, done)?;
    }
    Ok(())
}

/// How a file is read.
enum Asked {
    /// Not at all: what is here stays.
    Kept,
    Together,
    /// By itself: an earlier attempt has begun it, or the target is a stream.
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

/// Writes a file of this machine.
fn written(
    run: &Run<'_>,
    (store, umask): (&Local, u32),
    file: &Download,
    data: &[u8],
) -> Result<(), Trouble> {
    let make = Make { size: Some(data.len() as u64), ..Make::default() };
    let draft = store.create(&file.to, &make).map_err(stored)?;
    let filled = if data.is_empty() { Ok(()) } else { draft.write_at(0, data) };
    let filled = filled.and_then(|()| if run.options.durable { draft.sync() } else { Ok(()) });
    if let Err(error) = filled {
        draft.discard();
        return Err(stored(error));
    }
    let named = draft.name(Naming::Replace, &finish(run, (store, umask), file)).map_err(stored)?;
    run.meter.add_bytes(data.len() as u64);
    finished(run, file, &named);
    Ok(())
}
