//! What the server has under the names of small files. Where many of them go into one directory, the directory is listed
//! once: to look at each name would be one of six requests a file.

use super::Run;
use super::remote::split;
use hikyaku_sftp::{Attributes, Handle, Request};
use std::collections::HashMap;
use std::mem::take;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// From so many names in one directory on, it is listed.
const NAMES_MIN: usize = 16;
/// Entries of a directory that are heard. If it has more, its names are looked at.
const ENTRIES_MAX: usize = 1000;
/// Directories that are remembered.
const DIRECTORIES_MAX: usize = 64;

/// The entries of a directory by their names; `None` if they are not known.
type Listing = Option<HashMap<Vec<u8>, Attributes>>;

/// Directories of the server that were listed.
#[derive(Default)]
pub(super) struct Present(Mutex<HashMap<Vec<u8>, Arc<OnceLock<Listing>>>>);

/// What is known of a name of the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Seen {
    /// Nothing has it, or something of this kind.
    Told(Option<Attributes>),
    /// It is to be looked at.
    Unknown,
}

impl Present {
    /// What is known of the names of files.
    pub(super) fn of(&self, run: &Run<'_>, files: &[&[u8]]) -> Vec<Seen> {
        let mut counts: HashMap<&[u8], usize> = HashMap::new();
        for file in files {
            *counts.entry(split(file).0).or_default() += 1;
        }
        let listings: HashMap<&[u8], Arc<OnceLock<Listing>>> = counts
            .into_iter()
            .filter(|(_, count)| *count >= NAMES_MIN)
            .map(|(dir, _)| (dir, self.place(dir)))
            .collect();
        let known = files.iter().map(|file| {
            let (dir, name) = split(file);
            let listing = listings.get(dir).map(|listing| listing.get_or_init(|| list(run, dir)));
            match (listing, name) {
                (Some(Some(all)), Some(name)) => Seen::Told(all.get(name).copied()),
                _ => Seen::Unknown,
            }
        });
        known.collect()
    }

    /// Where the listing of a directory is, or is to be.
    fn place(&self, dir: &[u8]) -> Arc<OnceLock<Listing>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= DIRECTORIES_MAX && !all.contains_key(dir) {
            drop(take(&mut *all));
        }
        all.entry(dir.to_vec()).or_default().clone()
    }
}

/// Lists a directory, unless it has many entries or an entry without a kind.
fn list(run: &Run<'_>, dir: &[u8]) -> Listing {
    let client = &run.server.client;
    let handle: Handle = client.open(&Request::OpenDir(dir)).ok()?;
    let mut all = HashMap::new();
    let whole = loop {
        match client.entries(&handle) {
            Ok(Some(entries)) => {
                all.extend(entries.into_iter().map(|entry| (entry.name, entry.attributes)));
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
        if all.len() > ENTRIES_MAX {
            break false;
        }
    };
    drop(client.ask(&Request::Close(handle.bytes())));
    let is_told = all.values().all(|found: &Attributes| found.kind().is_some());
    (whole && is_told).then_some(all)
}
