//! Names and ranges of files of the servers, for programs that read parts of files.

use super::{Session, SessionError};
use crate::census::ServerId;
use crate::kind::Kind;
use hikyaku_reach::daemon::PICKS;
use hikyaku_remote::{Class, Client, Give, Listing, PICKED_RANGES_MAX, RemoteError, Seen};
use hikyaku_store::{ErrorKind, Found, Kind as FileKind, StorePath};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::thread;

/// A file, directory or link, and the servers that have it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Held {
    /// The newest metadata that a server tells.
    pub found: Found,
    /// The servers that tell the same kind, size and time.
    pub at: Vec<ServerId>,
}

impl Session {
    /// The metadata of a name, from all servers at once.
    ///
    /// # Errors
    ///
    /// No server has it, or none answers.
    pub fn look(&self, path: &StorePath) -> Result<Held, SessionError> {
        let found = self.each(|client| client.look(path));
        let newest =
            newest(found.iter().filter_map(|(at, found)| Some((*at, found.as_ref().ok()?))));
        newest.ok_or_else(|| {
            self.failure(path, found.into_iter().filter_map(|(_, found)| found.err()))
        })
    }

    /// The names in a directory, from all servers at once, in their order.
    ///
    /// # Errors
    ///
    /// No server has the directory, or none answers.
    pub fn list(&self, path: &StorePath) -> Result<Vec<(Vec<u8>, Held)>, SessionError> {
        let told = self.each(|client| list(client, path));
        let mut names: BTreeMap<&[u8], Vec<(ServerId, &Found)>> = BTreeMap::new();
        for (at, list) in &told {
            for (name, found) in list.iter().flatten() {
                names.entry(name).or_default().push((*at, found));
            }
        }
        if told.iter().all(|(_, list)| list.is_err()) {
            return Err(self.failure(path, told.into_iter().filter_map(|(_, list)| list.err())));
        }
        let held = names.into_iter().filter_map(|(name, all)| Some((name.to_vec(), newest(all)?)));
        Ok(held.collect())
    }

    /// Reads ranges of a file, which may overlap, from one of the servers that have it. What lies behind its end is left out.
    /// All ranges of a call are one request.
    ///
    /// # Errors
    ///
    /// The file is no file, has changed since it was looked at, or no server that has it answers.
    pub fn read(
        &self,
        path: &StorePath,
        held: &Held,
        ranges: &[Range<u64>],
    ) -> Result<Vec<Vec<u8>>, SessionError> {
        if held.found.kind != FileKind::File {
            let text = format!("{}: {}", self.shown(path), ErrorKind::IsDir);
            return Err(SessionError::refused(ErrorKind::IsDir, text));
        }
        let size = held.found.size;
        let ranges: Vec<Range<u64>> =
            ranges.iter().map(|range| range.start.min(size)..range.end.min(size)).collect();
        let joined = joined(&ranges);
        // Each call begins with another server, so that many calls are divided among them.
        let first = self.reads.fetch_add(1, Ordering::Relaxed);
        let has_picks = |at: &ServerId| self.members[at.0].line().client.has(PICKS);
        let at: Vec<ServerId> = held.at.iter().copied().filter(has_picks).collect();
        if at.is_empty() {
            let text = "the servers have an older hikyaku, which sends whole files only";
            return Err(SessionError::refused(
                Kind::OtherVersion,
                format!("{}: {text}", self.shown(path)),
            ));
        }
        let mut last = None;
        for n in 0..at.len() {
            let server = at[(first + n) % at.len()];
            match self.read_from(server, path, held.found, &joined) {
                Ok(bytes) => return Ok(cut(&ranges, &joined, &bytes)),
                Err(error) => last = Some(error),
            }
        }
        Err(self.failure(path, last))
    }

    fn read_from(
        &self,
        server: ServerId,
        path: &StorePath,
        found: Found,
        ranges: &[Range<u64>],
    ) -> Result<Vec<u8>, RemoteError> {
        let member = &self.members[server.0];
        if !member.line().is_up() {
            let _ = self.again(server);
        }
        let client = member.line().client.clone();
        let length: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        // The size of the file is the server's word.
        let mut bytes = Vec::new();
        let room =
            usize::try_from(length).map(|length| bytes.try_reserve_exact(length).map(|()| length));
        let Ok(Ok(length)) = room else {
            let (kind, text) = (ErrorKind::NoSpace, format!("no memory for {length} bytes"));
            return Err(RemoteError::Refused { kind, text });
        };
        bytes.resize(length, 0);
        let mut begin = 0;
        for some in ranges.chunks(PICKED_RANGES_MAX) {
            let incoming = client.pick(Give {
                path: path.as_bytes().to_vec(),
                seen: Seen::from(&found),
                ranges: some.iter().map(|range| (range.start, range.end)).collect(),
                class: Class::Urgent,
            })?;
            let here = &mut bytes[begin..];
            begin += incoming.asked() as usize;
            let outcome = incoming.receive(
                |_| {},
                |part| {
                    let from = part.offset as usize;
                    here[from..from + part.bytes.len()].copy_from_slice(part.bytes);
                },
            )?;
            if !outcome.damaged.is_empty() || !outcome.missing.is_empty() {
                let (kind, text) = (ErrorKind::Damaged, ErrorKind::Damaged.to_string());
                return Err(RemoteError::Refused { kind, text });
            }
        }
        Ok(bytes)
    }

    /// Asks all servers at once.
    pub(super) fn each<T: Send>(
        &self,
        ask: impl Fn(&Client) -> Result<T, RemoteError> + Sync,
    ) -> Vec<(ServerId, Result<T, RemoteError>)> {
        let (clients, ask) = (self.clients(), &ask);
        let answers: Vec<_> = thread::scope(|scope| {
            let all: Vec<_> =
                clients.iter().map(|client| scope.spawn(move || ask(client))).collect();
            let closed = |_| Err(RemoteError::Closed(None));
            all.into_iter().map(|one| one.join().unwrap_or_else(closed)).collect()
        });
        (0..).map(ServerId).zip(answers).collect()
    }

    /// The error of all servers together: that of one that answers, if there is one.
    pub(super) fn failure(
        &self,
        path: &StorePath,
        errors: impl IntoIterator<Item = RemoteError>,
    ) -> SessionError {
        let shown = self.shown(path);
        let is_answer = |error: &RemoteError| !error.is_of_server();
        let errors: Vec<RemoteError> = errors.into_iter().collect();
        match errors.iter().find(|error| is_answer(error)).or_else(|| errors.first()) {
            Some(RemoteError::Refused { kind, .. }) => {
                SessionError::refused(*kind, format!("{shown}: {kind}"))
            }
            Some(error) => SessionError::refused(Kind::from(error), format!("{shown}: {error}")),
            None => SessionError::refused(
                ErrorKind::NotFound,
                format!("{shown}: {}", ErrorKind::NotFound),
            ),
        }
    }
}

/// The names in a directory of one server.
fn list(client: &Client, path: &StorePath) -> Result<Vec<(Vec<u8>, Found)>, RemoteError> {
    let (say, told) = channel();
    // Nobody listens any more if the first part was an error.
    client.list_then(path, 0, move |part| drop(say.send(part)));
    let mut all = Vec::new();
    loop {
        match told.recv() {
            Ok(Ok(Listing::Entries { entries, .. })) => {
                all.extend(entries.into_iter().map(|entry| (entry.name, entry.found)));
            }
            // It was asked for by nobody here.
            Ok(Ok(Listing::Leased { .. })) => {}
            Ok(Ok(Listing::End)) => return Ok(all),
            Ok(Err(error)) => return Err(error),
            Err(_) => return Err(RemoteError::Closed(None)),
        }
    }
}

/// The newest of what servers tell of a name, and those that tell the same.
fn newest<'a>(all: impl IntoIterator<Item = (ServerId, &'a Found)>) -> Option<Held> {
    let all: Vec<_> = all.into_iter().collect();
    let age = |found: &Found| (found.modified.secs, found.modified.nanos, found.size);
    let (_, found) = *all.iter().max_by_key(|(_, found)| age(found))?;
    let is_same = |other: &Found| other.kind == found.kind && age(other) == age(found);
    let at = all.iter().filter(|(_, other)| is_same(other)).map(|(at, _)| *at).collect();
    Some(Held { found: *found, at })
}

/// Ranges in ascending order that cover these and do not touch each other.
fn joined(ranges: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// The bytes of `ranges`, of those of `joined` one after the other.
fn cut(ranges: &[Range<u64>], joined: &[Range<u64>], bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut places = Vec::with_capacity(joined.len());
    let mut before = 0;
    for range in joined {
        places.push(before);
        before += range.end - range.start;
    }
    let of = |range: &Range<u64>| {
        if range.is_empty() {
            return Vec::new();
        }
        let at = joined.partition_point(|joined| joined.start <= range.start) - 1;
        let from = (places[at] + range.start - joined[at].start) as usize;
        bytes[from..from + (range.end - range.start) as usize].to_vec()
    };
    ranges.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_read_once_and_cut_out_again() {
        let ranges = [5..9, 0..0, 2..6, 20..30, 9..11];
        let joined = joined(&ranges);
        assert_eq!(joined, [2..11, 20..30]);
        let bytes: Vec<u8> = (2..11).chain(20..30).collect();
        let parts = cut(&ranges, &joined, &bytes);
        for (range, part) in ranges.iter().zip(parts) {
            assert_eq!(part, (range.start as u8..range.end as u8).collect::<Vec<_>>(), "{range:?}");
        }
    }
}
