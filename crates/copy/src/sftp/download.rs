//! Download of a file by SFTP. Requests are sent ahead of the answers.

use super::Run;
use super::fault::{Trouble, stored, there};
use super::file::{WINDOW, changed, more, paced};
use super::journal::{Key, Past};
use super::remote::Known;
use super::resume::{RESUMED_BYTES_MIN, is_begun_here};
use hikyaku_fan::Dress;
use hikyaku_fs::Shown;
use hikyaku_job::End;
use hikyaku_pair::SMALL;
use hikyaku_sftp::{Attributes, DATA_BYTES_MAX, Handle, Request, Ticket};
use hikyaku_store::{Draft, ErrorKind, Finish, Found, Make, Naming, Store, StorePath, Time};
use hikyaku_store_local::Local;
use hikyaku_transfer::{Durable, Existing, FailureKind, Limit};
use std::collections::VecDeque;

/// Bytes after which the progress of a file is recorded.
const NOTED_BYTES: u64 = 64 << 20;

/// A file of the server, and its destination on this host.
pub(super) struct Download {
    pub(super) from: Vec<u8>,
    pub(super) to: StorePath,
    pub(super) found: Known,
}

/// Downloads a file. The destination gets its name when it is complete.
pub(super) fn download(
    run: &Run<'_>,
    limit: &Limit,
    (store, dress): (&Local, Dress),
    file: &Download,
) -> Result<(), Trouble> {
    if stays_here(run, store, file, file.key())? {
        run.meter.add_kept(file.size());
        return Ok(());
    }
    fetch(run, limit, (store, dress), file)
}

/// Downloads a file whose destination does not exist or is to be replaced.
pub(super) fn fetch(
    run: &Run<'_>,
    limit: &Limit,
    (store, dress): (&Local, Dress),
    file: &Download,
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let flags = Request::READ;
    let open = Request::Open { path: &file.from, flags, attributes: Attributes::default() };
    let handle = client.open(&open).map_err(there(&file.from))?;
    let done = receive(run, limit, (store, dress), file, &handle);
    // The handle was not written through, so its answer is not awaited.
    drop(client.ask(&Request::Close(handle.bytes())));
    let named = done?;
    run.journal.iter().for_each(|journal| journal.add(file.key(), &done_of(&named)));
    run.meter.add_file();
    Ok(())
}

/// The record of a complete file.
pub(super) const fn done_of(named: &Found) -> Past {
    Past::Done { size: named.size, modified: named.modified.secs }
}

impl Download {
    pub(super) fn size(&self) -> u64 {
        self.found.attributes.size.unwrap_or_default()
    }

    pub(super) fn key(&self) -> Key {
        Key::new(&self.from, self.to.as_bytes(), self.size(), self.found.modified.unwrap_or(0))
    }
}

/// Whether the existing file stays: an earlier attempt has copied it, or the user keeps existing files.
pub(super) fn stays_here(
    run: &Run<'_>,
    store: &Local,
    file: &Download,
    key: Key,
) -> Result<bool, Trouble> {
    if file.to.split().is_some_and(|(dir, name)| dir == StorePath::ROOT && store.is_stream(&name)) {
        return Ok(false);
    }
    let found = match store.look(&file.to) {
        Ok(found) => found,
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(stored(error)),
    };
    if found.kind == hikyaku_store::Kind::Dir {
        let text = "a directory has this name, and is not replaced by a file";
        return Err(Trouble::of(End::Here, file.to.as_bytes(), FailureKind::IsDirectory, text));
    }
    let is_done = match run.journal.and_then(|journal| journal.past(key)) {
        Some(Past::Done { size, modified }) => {
            (found.size, found.modified.secs) == (*size, *modified)
        }
        _ => false,
    };
    let existing = run.options.rules.existing;
    let is_kept = |secs| existing.keeps(Time { secs, nanos: 0 }, found.modified);
    Ok(is_done || existing == Existing::Kept || file.found.modified.is_some_and(is_kept))
}

/// Reports the result of a dry run for a file.
pub(super) fn rehearse_download(
    run: &Run<'_>,
    store: &Local,
    file: &Download,
) -> Result<(), Trouble> {
    if !stays_here(run, store, file, file.key())? {
        run.meter.add_note(Shown::new(file.to.as_bytes()).to_string());
    }
    Ok(())
}

/// An unfinished file on this host, and its recorded length.
fn draft_of(
    run: &Run<'_>,
    store: &Local,
    file: &Download,
    handle: &Handle,
) -> Result<(Box<dyn Draft>, u64), Trouble> {
    let past = run.journal.and_then(|journal| journal.past(file.key()));
    if let Some(Past::Part { bytes, token }) = past
        && *bytes <= file.size()
        && let Ok(draft) = store.take_up(&file.to, &hikyaku_store::Token(token.clone()))
    {
        let names = (&file.from[..], handle);
        if is_begun_here(&run.server.client, names, &*draft, *bytes)? {
            return Ok((draft, *bytes));
        }
        draft.discard();
    }
    let draft = store
        .create(&file.to, &Make { size: file.found.attributes.size, ..Make::default() })
        .map_err(stored)?;
    Ok((draft, 0))
}

fn receive(
    run: &Run<'_>,
    limit: &Limit,
    (store, dress): (&Local, Dress),
    file: &Download,
    handle: &Handle,
) -> Result<Found, Trouble> {
    let (draft, begin) = draft_of(run, store, file, handle)?;
    run.meter.add_kept(begin);
    let mut bytes = begin;
    let filled = fill(run, limit, file, handle, (&*draft, &mut bytes));
    if let Err(trouble) = filled.and_then(|()| check_unchanged(run, file, handle)) {
        match trouble {
            Trouble::Stopped | Trouble::End(_) => keep(run, file, &*draft, bytes),
            Trouble::File(..) => draft.discard(),
        }
        return Err(trouble);
    }
    if run.options.rules.durable == Durable::Disk {
        draft.sync().map_err(stored)?;
    }
    draft.name(Naming::Replace, &finish(run, (store, dress), file)).map_err(stored)
}

/// Checks that the server's file has not changed since it was found, as far as version 3 shows it: its times are in
/// seconds.
fn check_unchanged(run: &Run<'_>, file: &Download, handle: &Handle) -> Result<(), Trouble> {
    // Files of /proc have a size of zero, and a new time at each request.
    if file.size() == 0 {
        return Ok(());
    }
    let now = run.server.client.attributes(&Request::FStat(handle.bytes()));
    let (now, before) = (now.map_err(there(&file.from))?, &file.found.attributes);
    let modified = |told: &Attributes| told.times.map(|(_, modified)| modified);
    match now.size == before.size
        && (modified(before).is_none() || modified(&now) == modified(before))
    {
        true => Ok(()),
        false => Err(changed(End::There, &file.from)),
    }
}

/// Records the length of an unfinished file, which then outlives this process.
fn keep(run: &Run<'_>, file: &Download, draft: &dyn Draft, bytes: u64) {
    let Some(journal) = run.journal.filter(|_| bytes >= RESUMED_BYTES_MIN) else { return };
    if run.options.rules.durable == Durable::Cache || draft.sync().is_ok() {
        journal.add(file.key(), &Past::Part { bytes, token: draft.token().0 });
        draft.keep();
    }
}

/// Writes the file's bytes from `done` on, which counts them.
fn fill(
    run: &Run<'_>,
    limit: &Limit,
    file: &Download,
    handle: &Handle,
    (draft, done): (&dyn Draft, &mut u64),
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let size = file.size();
    let ask = |offset: u64, length: usize| {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        client.ask(&Request::Read { handle: handle.bytes(), offset, length })
    };
    let mut under_way: VecDeque<(u64, usize, Ticket)> = VecDeque::new();
    let begun = *done;
    let (mut asked, mut noted, mut end) = (begun, begun, None::<u64>);
    while end.is_none() {
        run.go_on()?;
        // One request behind the reported size shows whether the file continues.
        while under_way.len() < WINDOW && (asked <= size || under_way.is_empty()) {
            let left = usize::try_from(size.saturating_sub(asked)).unwrap_or(usize::MAX);
            let length = if left == 0 { DATA_BYTES_MAX } else { left.min(DATA_BYTES_MAX) };
            if !under_way.is_empty() && !limit.is_open() {
                break;
            }
            paced(run, limit, left.min(length))?;
            under_way.push_back((asked, length, ask(asked, length)));
            asked += length as u64;
        }
        let Some((offset, length, ticket)) = under_way.pop_front() else { break };
        let data = client.data(ticket, length).map_err(there(&file.from))?;
        let behind = offset + data.len() as u64;
        if !data.is_empty() && file.found.attributes.size.is_some_and(|size| behind > size) {
            // The file may be endless. A small file with a size of zero may be one of /proc.
            match size == 0 && begun == 0 {
                true if behind <= SMALL => {}
                true => return Err(more(&file.from)),
                false => return Err(changed(End::There, &file.from)),
            }
        }
        draft.write_at(offset, &data).map_err(stored)?;
        run.meter.add_bytes(data.len() as u64);
        *done = offset + data.len() as u64;
        if *done >= noted + NOTED_BYTES {
            // A killed process records nothing more.
            keep(run, file, draft, *done);
            noted = *done;
        }
        if data.is_empty() {
            end = Some(offset);
        } else if data.len() < length {
            under_way.push_front((*done, length - data.len(), ask(*done, length - data.len())));
        }
    }
    // The answers behind the end must be empty as well.
    for (_, length, ticket) in under_way {
        if !client.data(ticket, length).map_err(there(&file.from))?.is_empty() {
            return Err(changed(End::There, &file.from));
        }
    }
    let is_told = file.found.attributes.size.is_some_and(|size| size != 0);
    if is_told && end != Some(size) {
        return Err(changed(End::There, &file.from));
    }
    Ok(())
}

/// The metadata of a new file, which may replace an existing one.
pub(super) fn finish(run: &Run<'_>, (store, dress): (&Local, Dress), file: &Download) -> Finish {
    let present = store.look(&file.to).ok();
    let told = file.found.attributes.mode.or_else(|| present.map(|found| found.mode));
    let mode = told.map(|mode| dress.file(mode, present.as_ref()));
    let modified = file.found.kept_time(run, &file.from);
    Finish { mode, modified, ..Finish::default() }
}
