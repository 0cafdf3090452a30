//! Symbolic links that stay links (`-a`).

use super::Run;
use super::fault::{Trouble, here, there};
use super::file::{draft_path, in_seconds, seconds, times};
use hikyaku_fs::Shown;
use hikyaku_job::End;
use hikyaku_sftp::{Attributes, Extension, Kind, Request};
use hikyaku_transfer::{Existing, FailureKind, Pass};
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What has the name of a link is a directory, or what a link must not replace.
fn in_the_way(end: End, path: &[u8]) -> Trouble {
    let text = "something that is no file or link has this name, and is not replaced by a link";
    Trouble::of(end, path, FailureKind::IsDirectory, text)
}

/// Makes a link of this machine on the server.
pub(super) fn link_there(run: &Run<'_>, from: &Path, to: &[u8]) -> Result<(), Trouble> {
    let client = &run.server.client;
    let source = fs::symlink_metadata(from).map_err(here("look at", from))?;
    let text = fs::read_link(from).map_err(here("read the link", from))?;
    let text = text.as_os_str().as_bytes();
    let found = match client.attributes(&Request::LStat(to)) {
        Ok(found) => Some(found),
        Err(error) if error.is_absent() => None,
        Err(error) => return Err(there(to)(error)),
    };
    let existing = run.options.rules.existing;
    let stays = |found: &Attributes| {
        let time = found.times.map(|(_, modified)| in_seconds(modified));
        let new = in_seconds(seconds(source.mtime()));
        existing == Existing::Kept || time.is_some_and(|time| existing.keeps(new, time))
    };
    match found.map(|found| found.kind()) {
        None => {}
        Some(_) if found.as_ref().is_some_and(stays) => return Ok(()),
        Some(Some(Kind::Link))
            if client.name(&Request::ReadLink(to)).is_ok_and(|present| present == text) =>
        {
            return Ok(());
        }
        Some(Some(Kind::Link | Kind::File)) => {}
        Some(_) => return Err(in_the_way(End::There, to)),
    }
    if run.options.rules.pass == Pass::DryRun {
        run.meter.add_note(Shown::new(to).to_string());
        return Ok(());
    }
    if found.is_none() {
        client.done(&Request::MakeLink(text, to)).map_err(there(to))?;
        return keep_time(run, &source, (to, to));
    }
    // It is made under another name and then takes the place, so that there is always one of the two.
    let draft = draft_path(to)?;
    client.done(&Request::MakeLink(text, &draft)).map_err(there(to))?;
    let timed = keep_time(run, &source, (&draft, to));
    let renamed = timed.and_then(|()| match client.version().has(Extension::PosixRename) {
        true => client.done(&Request::PosixRename(&draft, to)).map_err(there(to)),
        false => {
            let text =
                "the name exists, and this server cannot replace a link by renaming; try: remove it first";
            Err(Trouble::of(End::There, to, FailureKind::Exists, text))
        }
    });
    if let Err(Trouble::File(..)) = &renamed {
        let _ = client.done(&Request::Remove(&draft));
    }
    renamed
}

/// Gives the link at `at` the time of its source with `-p`, where the server sets times of links. It is called `shown`.
fn keep_time(run: &Run<'_>, source: &Metadata, (at, shown): (&[u8], &[u8])) -> Result<(), Trouble> {
    let client = &run.server.client;
    if !run.options.rules.preserve.times() || !client.version().has(Extension::SetOfLink) {
        return Ok(());
    }
    let times = times(run, source, shown);
    let attributes = Attributes { times, ..Attributes::default() };
    let set = || client.done(&Request::SetOfLink(at, attributes));
    times.map_or(Ok(()), |_| set()).map_err(there(shown))
}
