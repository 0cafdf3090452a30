//! A file of this machine that is written on the server: its requests are sent ahead of the answers.

use super::Run;
use super::fault::{Trouble, here, there};
use super::file::{
    WINDOW, changed, check_unchanged, draft_path, in_seconds, paced, seconds, times,
};
use super::journal::{Key, Past};
use super::resume::{RESUMED_BYTES_MIN, is_begun_there};
use super::settle::{Complete, name};
use hikyaku_fs::Shown;
use hikyaku_job::End;
use hikyaku_sftp::{
    Asked, Attributes, DATA_BYTES_MAX, Extension, Failed, Handle, Kind, Request, Ticket,
};
use hikyaku_transfer::{Durable, Existing, FailureKind, Limit};
use std::collections::VecDeque;
use std::fs::{self, File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// A file of this machine, to be written on the server.
pub(super) struct Upload {
    pub(super) from: PathBuf,
    pub(super) to: Vec<u8>,
}

/// Writes a file on the server: under a temporary name first. If the file fails that is removed; if the copy ends, it is
/// kept for the next attempt.
pub(super) fn upload(run: &Run<'_>, limit: &Limit, file: &Upload) -> Result<(), Trouble> {
    let client = &run.server.client;
    let source = File::open(&file.from).map_err(here("open", &file.from))?;
    let before = source.metadata().map_err(here("look at", &file.from))?;
    let key = key_of(file, &before);
    // What is there is asked of the server while the file is opened there, unless that decides whether it is.
    let ticket = client.ask(&Request::LStat(&file.to));
    let present = match may_stay(run, key) {
        false => Err(ticket),
        true => Ok(present_at(client.answer(ticket).attributes(), &file.to)?),
    };
    if let Ok(present) = &present
        && stays(run, present.as_ref(), key, seconds(before.mtime()), &file.to)?
    {
        run.meter.add_kept(before.size());
        return Ok(());
    }
    let is_small = before.size() < RESUMED_BYTES_MIN;
    let settling = run.settling.filter(|settling| is_small && settling.takes(run, &file.to));
    let until = if settling.is_some() { Until::Written } else { Until::Synced };
    let (draft, handle, begin) = match resumed(run, (&source, &before), file, key)? {
        Some(resumed) => resumed,
        None => opened(run, file, &before)?,
    };
    let present =
        present.or_else(|ticket| present_at(client.answer(ticket).attributes(), &file.to));
    let sent = present.and_then(|present| {
        let present = replaceable(present, &file.to)?;
        run.meter.add_kept(begin);
        let sent = send(run, limit, (&source, &before), file, (&draft, &handle, present, begin))?;
        Ok(synced(run, sent, &handle, until))
    });
    let closing = client.ask(&Request::Close(handle.bytes()));
    let written = sent.and_then(|sent| sent.settle(run, &file.to));
    let closed = client.is_done(closing).map_err(there(&file.to));
    let (told, size) = (told(run, &before), before.size());
    let done = written.and(closed).and_then(|()| {
        let (draft, to) = (draft.clone(), file.to.clone());
        let complete = vec![Complete { draft, to, size, told, key }];
        match settling {
            Some(settling) => settling.add(run, complete),
            None => name(run, complete),
        }
    });
    match done {
        Ok(()) => Ok(()),
        Err(trouble @ (Trouble::Stopped | Trouble::End(_))) if is_resumable(run, &before) => {
            Err(trouble)
        }
        Err(trouble) => {
            // Where the connection is lost, it stays: nobody can remove it then.
            let _ = client.done(&Request::Remove(&draft));
            Err(trouble)
        }
    }
}

/// Whether what is there decides if the file is copied at all.
pub(super) fn may_stay(run: &Run<'_>, key: Key) -> bool {
    let past = run.journal.and_then(|journal| journal.past(key));
    run.options.rules.existing != Existing::Replaced || matches!(past, Some(Past::Done { .. }))
}

/// The version of a source of this machine.
pub(super) fn key_of(file: &Upload, found: &Metadata) -> Key {
    let nanos = found.mtime().saturating_mul(1_000_000_000).saturating_add(found.mtime_nsec());
    Key::new(file.from.as_os_str().as_bytes(), &file.to, found.size(), nanos)
}

/// Whether a part of a file is kept for another attempt.
fn is_resumable(run: &Run<'_>, found: &Metadata) -> bool {
    run.journal.is_some() && found.size() >= RESUMED_BYTES_MIN
}

/// Opens a new file on the server, under a temporary name.
fn opened(
    run: &Run<'_>,
    file: &Upload,
    before: &Metadata,
) -> Result<(Vec<u8>, Handle, u64), Trouble> {
    let draft = draft_path(&file.to)?;
    let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
    let attributes = Attributes { mode: Some(opening_mode(before)), ..Attributes::default() };
    let open = Request::Open { path: &draft, flags, attributes };
    let handle = run.server.client.open(&open).map_err(there(&file.to))?;
    if let Some(journal) = run.journal.filter(|_| is_resumable(run, before)) {
        // How much of it there is, the server tells.
        journal.add(key_of(file, before), &Past::Part { bytes: 0, token: draft.clone() });
    }
    Ok((draft, handle, 0))
}

/// Opens what an earlier attempt has left of the file on the server, and tells how much there is.
fn resumed(
    run: &Run<'_>,
    (source, before): (&File, &Metadata),
    file: &Upload,
    key: Key,
) -> Result<Option<(Vec<u8>, Handle, u64)>, Trouble> {
    let client = &run.server.client;
    let Some(Past::Part { token: draft, .. }) = run.journal.and_then(|journal| journal.past(key))
    else {
        return Ok(None);
    };
    let attributes = Attributes::default();
    let flags = Request::READ | Request::WRITE;
    let handle = match client.open(&Request::Open { path: draft, flags, attributes }) {
        Ok(handle) => handle,
        Err(Failed::Refused { .. }) => return Ok(None),
        Err(error) => return Err(there(&file.to)(error)),
    };
    let found = client.attributes(&Request::LStat(draft)).map_err(there(&file.to))?;
    let bytes = found.size.filter(|_| found.kind() == Some(Kind::File)).unwrap_or(0);
    if bytes > 0
        && bytes <= before.size()
        && is_begun_there(client, (&file.to, &handle), (&file.from, source), bytes)?
    {
        return Ok(Some((draft.clone(), handle, bytes)));
    }
    let removed = client.ask(&Request::Remove(draft));
    client.close(&handle).map_err(there(&file.to))?;
    // If it cannot be removed, it stays beside the new one.
    let _ = client.wait(removed);
    Ok(None)
}

/// Whether what has the name on the server stays: an earlier attempt has copied it, or the user wants that.
fn stays(
    run: &Run<'_>,
    present: Option<&Attributes>,
    key: Key,
    modified: u32,
    path: &[u8],
) -> Result<bool, Trouble> {
    let Some(present) = present else { return Ok(false) };
    if present.kind() == Some(Kind::Dir) {
        return replaceable(Some(*present), path).map(|_| false);
    }
    let (size, time) = (present.size, present.times.map(|(_, modified)| modified));
    let is_done = match run.journal.and_then(|journal| journal.past(key)) {
        Some(Past::Done { size: was, modified }) => {
            size == Some(*was) && time.map(i64::from) == Some(*modified)
        }
        _ => false,
    };
    let existing = run.options.rules.existing;
    let is_kept = |time| existing.keeps(in_seconds(modified), in_seconds(time));
    Ok(is_done || existing == Existing::Kept || time.is_some_and(is_kept))
}

/// Tells what would become of a file.
pub(super) fn rehearse_upload(run: &Run<'_>, file: &Upload) -> Result<(), Trouble> {
    let before = fs::metadata(&file.from).map_err(here("look at", &file.from))?;
    let client = &run.server.client;
    let present = present_at(client.attributes(&Request::LStat(&file.to)), &file.to)?;
    let key = key_of(file, &before);
    if !stays(run, present.as_ref(), key, seconds(before.mtime()), &file.to)? {
        replaceable(present, &file.to)?;
        run.meter.add_note(Shown::new(&file.to).to_string());
    }
    Ok(())
}

/// Requests whose answers have not come.
#[derive(Default)]
struct Sent {
    writes: VecDeque<(Ticket, u64)>,
    others: Vec<Ticket>,
}

impl Sent {
    /// Waits for the first write.
    fn settle_one(&mut self, run: &Run<'_>, path: &[u8]) -> Result<(), Trouble> {
        let Some((ticket, length)) = self.writes.pop_front() else { return Ok(()) };
        run.server.client.is_done(ticket).map_err(there(path))?;
        run.meter.add_bytes(length);
        Ok(())
    }

    /// Waits for all of them.
    fn settle(mut self, run: &Run<'_>, path: &[u8]) -> Result<(), Trouble> {
        while !self.writes.is_empty() {
            self.settle_one(run, path)?;
        }
        let client = &run.server.client;
        self.others.into_iter().try_for_each(|ticket| client.is_done(ticket)).map_err(there(path))
    }
}

/// Sends contents and metadata. `present` is the mode of a file that is replaced.
fn send(
    run: &Run<'_>,
    limit: &Limit,
    (source, before): (&File, &Metadata),
    file: &Upload,
    (draft, handle, present, begin): (&[u8], &Handle, Option<u32>, u64),
) -> Result<Sent, Trouble> {
    let client = &run.server.client;
    let (mut sent, mut buffer, mut offset) = (Sent::default(), vec![0; DATA_BYTES_MAX], begin);
    loop {
        run.go_on()?;
        let length = source.read_at(&mut buffer, offset).map_err(here("read", &file.from))?;
        if length == 0 {
            break;
        }
        if sent.writes.len() >= WINDOW {
            sent.settle_one(run, &file.to)?;
        }
        paced(run, limit, length)?;
        let write = Request::Write { handle: handle.bytes(), offset, data: &buffer[..length] };
        sent.writes.push_back((client.ask(&write), length as u64));
        offset += length as u64;
        if offset == before.size() {
            break;
        }
    }
    let after = check_unchanged(source, before, &file.from)?;
    // Files of /proc are told to be empty: what reading gives is their content.
    if offset != after.size() && after.size() != 0 {
        return Err(changed(End::Here, file.from.as_os_str().as_encoded_bytes()));
    }
    if let Some(attributes) = kept(run, before, (&file.to, draft), present)? {
        sent.others.push(client.ask(&Request::FSetStat(handle.bytes(), attributes)));
    }
    Ok(sent)
}

/// The metadata that a file gets when it has its bytes. `present` is the mode of a file that is replaced.
pub(super) fn kept(
    run: &Run<'_>,
    before: &Metadata,
    (to, draft): (&[u8], &[u8]),
    present: Option<u32>,
) -> Result<Option<Attributes>, Trouble> {
    let preserve = run.options.rules.preserve;
    let mode = match present {
        _ if preserve.modes() => Some(before.mode() & 0o7777),
        // As with scp, a replaced file keeps its mode.
        Some(mode) => Some(mode & 0o777),
        // It was made such that it can be opened again. The other bits are what the server's umask has left.
        None if before.mode() & 0o200 == 0 => {
            let made = run.server.client.attributes(&Request::LStat(draft)).map_err(there(to))?;
            Some(made.mode.map_or(0o600, |mode| mode & 0o577))
        }
        None => None,
    };
    let times = if preserve.times() { times(run, before, to) } else { None };
    let is_due = mode.is_some() || times.is_some();
    Ok(is_due.then_some(Attributes { mode, times, ..Attributes::default() }))
}

/// The mode with which a file is made: this end can open it again. The server takes its umask away from it.
pub(super) fn opening_mode(before: &Metadata) -> u32 {
    before.mode() & 0o777 | 0o200
}

/// Whether the server syncs files.
pub(super) fn syncs(run: &Run<'_>) -> bool {
    run.options.rules.durable == Durable::Disk && run.server.client.version().has(Extension::Sync)
}

/// Until when the server is busy with a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Until {
    Written,
    Synced,
}

/// Has the server sync the file, if it is not synced together with others.
fn synced(run: &Run<'_>, mut sent: Sent, handle: &Handle, until: Until) -> Sent {
    if until == Until::Synced && syncs(run) {
        sent.others.push(run.server.client.ask(&Request::Sync(handle.bytes())));
    }
    sent
}

/// What has the name on the server; `None` if nothing has.
pub(super) fn present_at(
    found: Asked<Attributes>,
    path: &[u8],
) -> Result<Option<Attributes>, Trouble> {
    match found {
        Ok(attributes) => Ok(Some(attributes)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(there(path)(error)),
    }
}

/// The mode of the file whose place a new one takes, if there is one. Anything else keeps its place: a rename would
/// destroy a device.
pub(super) fn replaceable(
    present: Option<Attributes>,
    path: &[u8],
) -> Result<Option<u32>, Trouble> {
    match present.as_ref().and_then(Attributes::kind) {
        Some(Kind::Dir) => {
            let text = "a directory has this name, and is not replaced by a file";
            Err(Trouble::of(End::There, path, FailureKind::IsDirectory, text))
        }
        Some(Kind::Special) => {
            let text = "not a regular file; it is left unchanged";
            Err(Trouble::of(End::There, path, FailureKind::Special, text))
        }
        Some(Kind::File) => Ok(present.and_then(|present| present.mode)),
        Some(Kind::Link) | None => Ok(None),
    }
}

/// The metadata that a copy of this source has been given, if the server need not be asked.
pub(super) fn told(run: &Run<'_>, before: &Metadata) -> Option<Attributes> {
    let modified =
        u32::try_from(before.mtime()).ok().filter(|_| run.options.rules.preserve.times())?;
    let times = Some((seconds(before.atime()), modified));
    Some(Attributes { size: Some(before.size()), times, ..Attributes::default() })
}
