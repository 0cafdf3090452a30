//! The two places in which patterns are looked for: the server, and this machine.

use crate::glob::Tree;
use hikyaku_fs::Name;
use hikyaku_sftp::{Asked, Attributes, Client, Entry, Failed, Request};
use std::convert::Infallible;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The most entries of a directory of the server.
const ENTRIES_MAX: usize = 1 << 20;

/// Files of the server.
pub(crate) struct Remote<'a>(pub(crate) &'a Client);

/// Files of this machine.
pub(crate) struct Local;

impl Tree for Remote<'_> {
    type End = Failed;

    fn entries(&self, dir: &[u8]) -> Asked<Vec<Vec<u8>>> {
        let dir = if dir.is_empty() { b"." } else { dir };
        match listed(self.0, dir) {
            Ok(entries) => Ok(entries.into_iter().map(|entry| entry.name).collect()),
            Err(error) if error.is_end() => Err(error),
            Err(_) => Ok(Vec::new()),
        }
    }

    fn attributes(&self, path: &[u8]) -> Asked<Option<Attributes>> {
        let path = if path.is_empty() { b"." } else { path };
        match self.0.attributes(&Request::LStat(path)) {
            Ok(attributes) => Ok(Some(attributes)),
            Err(error) if error.is_end() => Err(error),
            Err(_) => Ok(None),
        }
    }
}

impl Tree for Local {
    type End = Infallible;

    fn entries(&self, dir: &[u8]) -> Result<Vec<Vec<u8>>, Infallible> {
        let dir = if dir.is_empty() { b"." } else { dir };
        let listed = fs::read_dir(Path::new(OsStr::from_bytes(dir)));
        let names = listed.into_iter().flatten().flatten();
        Ok(names.map(|entry| entry.file_name().into_vec()).collect())
    }

    fn attributes(&self, path: &[u8]) -> Result<Option<Attributes>, Infallible> {
        let path = if path.is_empty() { b"." } else { path };
        let found = fs::symlink_metadata(Path::new(OsStr::from_bytes(path)));
        Ok(found.ok().as_ref().map(attributes))
    }
}

/// Metadata as the protocol has them. It has no times that are outside of what it can set.
pub(crate) fn attributes(found: &Metadata) -> Attributes {
    Attributes {
        size: Some(found.size()),
        owner: Some((found.uid(), found.gid())),
        mode: Some(found.mode()),
        times: u32::try_from(found.mtime()).ok().map(|time| (seconds(found.atime()), time)),
    }
}

/// Times as version 3 has them.
fn seconds(time: i64) -> u32 {
    u32::try_from(time.max(0)).unwrap_or(u32::MAX)
}

/// The entries of a directory of the server. Names that cannot be one of a file are left out, but for `.` and `..`.
pub(crate) fn listed(client: &Client, dir: &[u8]) -> Asked<Vec<Entry>> {
    let handle = client.open(&Request::OpenDir(dir))?;
    let mut all: Vec<Entry> = Vec::new();
    let listed = loop {
        match client.entries(&handle) {
            Ok(Some(entries)) => all.extend(entries),
            Ok(None) => break Ok(()),
            Err(error) => break Err(error),
        }
        if all.len() > ENTRIES_MAX {
            break Err(Failed::Odd);
        }
    };
    let closed = client.close(&handle);
    listed?;
    // What was listed is right also where a server does not let directories be closed.
    match closed {
        Err(error) if error.is_end() => return Err(error),
        _ => {}
    }
    all.retain(|entry| matches!(&entry.name[..], b"." | b"..") || Name::new(&entry.name).is_ok());
    Ok(all)
}
