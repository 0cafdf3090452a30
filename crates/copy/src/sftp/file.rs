//! One file, in either direction: its requests are sent ahead of the answers.

use super::Run;
use super::fault::{Trouble, here, stored, there};
use super::remote::{join, split};
use crate::engine::End;
use hikyaku_fs::{Name, Shown, Token};
use hikyaku_sftp::{
    Asked, Attributes, DATA_BYTES_MAX, Failed, Handle, Kind, Request, Response, Ticket,
};
use hikyaku_store::{Finish, Make, Naming, Store, StorePath, Time};
use hikyaku_transfer::FailureKind;
use std::collections::VecDeque;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

/// Requests of one file that are under way at once: 2 MiB, the window of OpenSSH's channels.
pub(super) const WINDOW: usize = 64;

/// A file of this machine, to be written on the server.
pub(super) struct Upload {
    pub(super) from: PathBuf,
    pub(super) to: Vec<u8>,
}

/// A file of the server, to be written on this machine.
pub(super) struct Download {
    pub(super) from: Vec<u8>,
    pub(super) to: StorePath,
    pub(super) attributes: Attributes,
}

/// Limits the rate of a copy.
pub(super) struct Pace {
    begin: Instant,
    limit: Option<u64>,
}

impl Pace {
    /// `limit` is in bits per second.
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self { begin: Instant::now(), limit: limit.filter(|&limit| limit > 0) }
    }

    /// Waits until so many bytes of the whole copy may have been copied.
    fn keep(&self, run: &Run<'_>) {
        let Some(limit) = self.limit else { return };
        let due = run.meter.tally().bytes as f64 * 8.0 / limit as f64;
        let early = due - self.begin.elapsed().as_secs_f64();
        if early > 0.0 {
            thread::sleep(Duration::from_secs_f64(early.min(1.0)));
        }
    }
}

/// Times as version 3 has them.
pub(super) fn seconds(time: i64) -> u32 {
    u32::try_from(time.max(0)).unwrap_or(u32::MAX)
}

/// Writes a file on the server: under a temporary name first, which is removed if anything fails.
pub(super) fn upload(run: &Run<'_>, pace: &Pace, file: &Upload) -> Result<(), Trouble> {
    let client = &run.server.client;
    let mut source = File::open(&file.from).map_err(here("open", &file.from))?;
    let before = source.metadata().map_err(here("look at", &file.from))?;
    let draft = draft_path(&file.to)?;
    // What is there is asked of the server while the file is opened there.
    let present = client.ask(&Request::LStat(&file.to));
    let flags = Request::WRITE | Request::CREATE | Request::EXCLUSIVE;
    // The server takes its umask away from the mode.
    let mode = Some(before.mode() & 0o777 | 0o200);
    let attributes = Attributes { mode, ..Attributes::default() };
    let open = Request::Open { path: &draft, flags, attributes };
    let handle = client.open(&open).map_err(there(&file.to))?;
    let present = present_at(client.wait(present), &file.to);
    let sent = present.and_then(|present| {
        let present = replaceable(present, &file.to)?;
        send(run, pace, (&mut source, &before), file, (&handle, present))
    });
    let closing = client.ask(&Request::Close(handle.bytes()));
    let written = sent.and_then(|sent| sent.settle(run, &file.to));
    let closed = client.is_done(closing).map_err(there(&file.to));
    let named = written.and(closed).and_then(|()| rename(run, &draft, &file.to));
    if named.is_err() {
        // Where the connection is lost, it stays: nobody can remove it then.
        let _ = client.done(&Request::Remove(&draft));
    }
    named?;
    run.meter.add_file();
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
    pace: &Pace,
    (source, before): (&mut File, &Metadata),
    file: &Upload,
    (handle, present): (&Handle, Option<u32>),
) -> Result<Sent, Trouble> {
    let client = &run.server.client;
    let (mut sent, mut buffer, mut offset) = (Sent::default(), vec![0; DATA_BYTES_MAX], 0);
    loop {
        run.go_on()?;
        pace.keep(run);
        let length = source.read(&mut buffer).map_err(here("read", &file.from))?;
        if length == 0 {
            break;
        }
        if sent.writes.len() >= WINDOW {
            sent.settle_one(run, &file.to)?;
        }
        let write = Request::Write { handle: handle.bytes(), offset, data: &buffer[..length] };
        sent.writes.push_back((client.ask(&write), length as u64));
        offset += length as u64;
    }
    let after = source.metadata().map_err(here("look at", &file.from))?;
    let is_same = before.mtime() == after.mtime() && before.size() == after.size();
    if !is_same || offset != after.size() {
        return Err(changed(End::Here, file.from.as_os_str().as_encoded_bytes()));
    }
    let attributes = match (run.options.preserve, present) {
        (true, _) => Attributes {
            mode: Some(before.mode() & 0o7777),
            times: Some((seconds(before.atime()), seconds(before.mtime()))),
            ..Attributes::default()
        },
        // As with scp, a replaced file keeps its mode.
        (false, Some(mode)) => Attributes { mode: Some(mode & 0o777), ..Attributes::default() },
        (false, None) if before.mode() & 0o200 == 0 => {
            Attributes { mode: Some(before.mode() & 0o777), ..Attributes::default() }
        }
        (false, None) => Attributes::default(),
    };
    if attributes != Attributes::default() {
        sent.others.push(client.ask(&Request::FSetStat(handle.bytes(), attributes)));
    }
    if run.options.durable && client.version().has("fsync@openssh.com", "1") {
        sent.others.push(client.ask(&Request::Sync(handle.bytes())));
    }
    Ok(sent)
}

/// What has the name on the server; `None` if nothing has.
fn present_at(answer: Asked<Response>, path: &[u8]) -> Result<Option<Attributes>, Trouble> {
    match answer {
        Ok(Response::Attributes(attributes)) => Ok(Some(attributes)),
        Ok(_) => Err(there(path)(Failed::Odd)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(there(path)(error)),
    }
}

/// The mode of the file whose place a new one takes, if there is one. Anything else keeps its place: a rename would
/// destroy a device.
fn replaceable(present: Option<Attributes>, path: &[u8]) -> Result<Option<u32>, Trouble> {
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

/// Gives a complete file its name; what had it is replaced.
fn rename(run: &Run<'_>, draft: &[u8], to: &[u8]) -> Result<(), Trouble> {
    let client = &run.server.client;
    if client.version().has("posix-rename@openssh.com", "1") {
        return client.done(&Request::PosixRename(draft, to)).map_err(there(to));
    }
    match client.done(&Request::Rename(draft, to)) {
        Err(Failed::Refused { .. }) if client.attributes(&Request::LStat(to)).is_ok() => {
            let text = "it is there, and this server cannot replace a file by renaming; try: remove it first";
            Err(Trouble::of(End::There, to, FailureKind::Exists, text))
        }
        done => done.map_err(there(to)),
    }
}

/// Reads a file of the server into one of this machine, which gets its name when it is complete.
pub(super) fn download(
    run: &Run<'_>,
    pace: &Pace,
    (store, umask): (&dyn Store, u32),
    file: &Download,
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let flags = Request::READ;
    let open = Request::Open { path: &file.from, flags, attributes: Attributes::default() };
    let handle = client.open(&open).map_err(there(&file.from))?;
    let done = receive(run, pace, (store, umask), file, &handle);
    // Nothing was written through it, so nobody waits for the answer.
    drop(client.ask(&Request::Close(handle.bytes())));
    done?;
    run.meter.add_file();
    Ok(())
}

fn receive(
    run: &Run<'_>,
    pace: &Pace,
    (store, umask): (&dyn Store, u32),
    file: &Download,
    handle: &Handle,
) -> Result<(), Trouble> {
    let client = &run.server.client;
    let size = file.attributes.size.unwrap_or_default();
    let draft = store.create(&file.to, &Make { size: Some(size) }).map_err(stored)?;
    let ask = |offset: u64, length: usize| {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        client.ask(&Request::Read { handle: handle.bytes(), offset, length })
    };
    let mut under_way: VecDeque<(u64, usize, Ticket)> = VecDeque::new();
    let (mut asked, mut end) = (0_u64, None::<u64>);
    while end.is_none() {
        run.go_on()?;
        pace.keep(run);
        // Behind the size that the server told one request asks whether the file goes on.
        while under_way.len() < WINDOW && (asked <= size || under_way.is_empty()) {
            let left = usize::try_from(size.saturating_sub(asked)).unwrap_or(usize::MAX);
            let length = if left == 0 { DATA_BYTES_MAX } else { left.min(DATA_BYTES_MAX) };
            under_way.push_back((asked, length, ask(asked, length)));
            asked += length as u64;
        }
        let Some((offset, length, ticket)) = under_way.pop_front() else { break };
        let data = client.data(ticket, length).map_err(there(&file.from))?;
        draft.write_at(offset, &data).map_err(stored)?;
        run.meter.add_bytes(data.len() as u64);
        if data.is_empty() {
            end = Some(offset);
        } else if data.len() < length {
            let rest = offset + data.len() as u64;
            under_way.push_front((rest, length - data.len(), ask(rest, length - data.len())));
        }
    }
    let end = end.unwrap_or_default();
    // What was asked for behind the end must be empty too.
    for (_, length, ticket) in under_way {
        if !client.data(ticket, length).map_err(there(&file.from))?.is_empty() {
            return Err(changed(End::There, &file.from));
        }
    }
    if file.attributes.size.is_some_and(|size| size != end) {
        return Err(changed(End::There, &file.from));
    }
    if run.options.durable {
        draft.sync().map_err(stored)?;
    }
    draft.name(Naming::Replace, &finish(run, umask, &file.attributes)).map_err(stored)?;
    Ok(())
}

/// The metadata of a new file.
fn finish(run: &Run<'_>, umask: u32, attributes: &Attributes) -> Finish {
    let preserve = run.options.preserve;
    let mode = attributes.mode.map(|mode| match preserve {
        true => mode & 0o7777,
        false => mode & 0o777 & !umask,
    });
    let modified = attributes.times.filter(|_| preserve);
    let modified = modified.map(|(_, modified)| Time { secs: modified.into(), nanos: 0 });
    Finish { mode, modified, ..Finish::default() }
}

fn changed(end: End, path: &[u8]) -> Trouble {
    Trouble::of(end, path, FailureKind::Changed, "it was changed while it was copied")
}

fn no_name(path: &[u8]) -> Trouble {
    let text = format!("{} is no name of a file", Shown::new(path));
    Trouble::of(End::There, path, FailureKind::BadName, &text)
}

/// A temporary path for the file, in the same directory, as unfinished files have everywhere.
fn draft_path(path: &[u8]) -> Result<Vec<u8>, Trouble> {
    let (dir, name) = split(path);
    let name = name.and_then(|name| Name::new(name).ok()).ok_or_else(|| no_name(path))?;
    let draft = Token::random().and_then(|token| token.partial(&name));
    let draft = draft.map_err(|error| Trouble::End(error.into()))?;
    Ok(join(dir, draft.as_bytes()))
}

/// Whether a name is that of an unfinished file.
pub(super) fn is_draft(name: &[u8]) -> bool {
    Name::new(name).is_ok_and(|name| Token::of(&name).is_some())
}
