//! What both directions have in common: the rate, names of unfinished files, and requests under way.

use super::Run;
use super::fault::{Trouble, here};
use super::remote::{join, split};
use hikyaku_fs::{CHANGED, Meta, Name, Shown, Token};
use hikyaku_job::End;
use hikyaku_sftp::NO_SUCH_TIME;
use hikyaku_store::Time;
use hikyaku_transfer::{FailureKind, Limit};
use hikyaku_units::Rate;
use std::fs::{File, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Requests of one file that are under way at once: 2 MiB, the window of OpenSSH's channels.
pub(super) const WINDOW: usize = 64;

/// The limit of a copy, which all of its files keep together.
pub(super) fn limit_of(run: &Run<'_>) -> Limit {
    let rate = run.options.limit.filter(|&limit| limit > 0);
    Limit::new(rate.map(Rate::from_bits_per_sec))
}

/// Waits until these bytes may be asked for or sent. Fails if the copy is stopped.
pub(super) fn paced(run: &Run<'_>, limit: &Limit, bytes: usize) -> Result<(), Trouble> {
    limit.wait(bytes as u64, || run.is_stopped());
    run.go_on()
}

/// Times as version 3 has them.
pub(super) fn seconds(time: i64) -> u32 {
    u32::try_from(time.max(0)).unwrap_or(u32::MAX)
}

/// A time of the server, which holds whole seconds.
pub(super) fn in_seconds(time: u32) -> Time {
    Time { secs: time.into(), nanos: 0 }
}

/// Access and modification time of a source, as version 3 sets them. If it cannot, that is a failure of the file at `to`.
pub(super) fn times(run: &Run<'_>, found: &Metadata, to: &[u8]) -> Option<(u32, u32)> {
    let modified = u32::try_from(found.mtime()).ok();
    if modified.is_none() {
        no_time(run, to);
    }
    Some((seconds(found.atime()), modified?))
}

/// Counts as a failure of the server's file at `path` that its time is not kept.
pub(super) fn no_time(run: &Run<'_>, path: &[u8]) {
    let text = format!("its time is not kept: {NO_SUCH_TIME}");
    let trouble = Trouble::of(End::There, path, FailureKind::Unsupported, &text);
    if let Trouble::File(end, failure) = trouble {
        run.meter.add_failure(end, &failure);
    }
}

pub(super) fn changed(end: End, path: &[u8]) -> Trouble {
    Trouble::of(end, path, FailureKind::Changed, CHANGED)
}

/// Checks that nobody has written to a source of this machine since `before`.
pub(super) fn check_unchanged(
    source: &File,
    before: &Metadata,
    from: &Path,
) -> Result<Metadata, Trouble> {
    let after = source.metadata().map_err(here("look at", from))?;
    match Meta::from(before).is_unchanged(&(&after).into()) {
        true => Ok(after),
        false => Err(changed(End::Here, from.as_os_str().as_bytes())),
    }
}

fn no_name(path: &[u8]) -> Trouble {
    let text = format!("{} is no name of a file", Shown::new(path));
    Trouble::of(End::There, path, FailureKind::BadName, &text)
}

/// A temporary path for the file, in the same directory, as unfinished files have everywhere.
pub(super) fn draft_path(path: &[u8]) -> Result<Vec<u8>, Trouble> {
    let (dir, name) = split(path);
    let name = name.and_then(|name| Name::new(name).ok()).ok_or_else(|| no_name(path))?;
    let draft = Token::random().and_then(|token| token.partial(&name));
    let draft = draft.map_err(|error| Trouble::End(error.into()))?;
    Ok(join(dir, draft.as_bytes()))
}

/// Whether a name is that of an unfinished file.
pub(super) fn is_draft(name: &[u8]) -> bool {
    Token::is_in(name)
}
