//! The writes in the journal, and those of them that need not be sent.

use super::log::{self, Logged, Record};
use super::{Place, Stage};
use hikyaku_store::StorePath;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

impl Stage {
    /// Keeps the writes of a segment to a file aside, as far as its disk and that of the copies allow.
    ///
    /// # Errors
    ///
    /// Those of the file systems of this machine.
    pub(crate) fn keep_aside(&self, number: u64, path: &StorePath, why: &str) -> io::Result<()> {
        let file = self.state().segments.get(&number).map(|segment| segment.file.clone());
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        let mut aside = self.aside();
        let mut numbers = Vec::new();
        for Logged { record, from, length } in log::read(&file)? {
            match record {
                Record::File(target) => {
                    numbers.retain(|&number| number != target.file);
                    if target.path == path.as_bytes() {
                        numbers.push(target.file);
                    }
                }
                Record::Write { file: of, at } if numbers.contains(&of) => {
                    let mut bytes = vec![0; length as usize];
                    file.read_exact_at(&mut bytes, from)?;
                    aside.keep(path, why, (at, &bytes))?;
                }
                Record::Write { .. } => {}
            }
        }
        aside.sync()
    }

    /// The writes to a node at these places, and those that the server has confirmed, need not be sent. Returns how many there
    /// were in all.
    pub(crate) fn dropped(&self, node: u64, places: &[Place]) -> u64 {
        let mut state = self.state();
        let mut count = places.len() as u64;
        for (number, segment) in &mut state.segments {
            let here = places.iter().filter(|place| place.segment == *number).count();
            segment.unconfirmed -= here as u64;
            let before = segment.confirmed.len();
            segment.confirmed.retain(|write| write.node != node);
            count += (before - segment.confirmed.len()) as u64;
            segment.files.remove(&node);
        }
        count
    }

    /// Whether writes are under way to the server.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.state().in_flight > 0
    }

    /// The files that the journal has writes to.
    pub(crate) fn paths(&self) -> Vec<StorePath> {
        let state = self.state();
        state.segments.values().flat_map(|segment| segment.files.values().cloned()).collect()
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Bytes of the journal.
    pub(crate) fn bytes(&self) -> u64 {
        self.state().segments.values().map(|segment| segment.length).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state().segments.is_empty()
    }
}
