//! Hashes of files that were there already, for the list of a copy.

use super::{FetchError, Fetched, Job};
use hikyaku_store::{Access, ErrorKind, StoreError, StorePath};
use hikyaku_transfer::{FileHash, Geometry, SegmentHash};
use std::sync::atomic::Ordering;

/// Adds the hashes of these files, which are at the target and were not fetched.
pub(super) fn add(job: &Job<'_>, same: &[usize], fetched: &mut Fetched) {
    for number in same {
        let file = &job.plan.files[*number];
        match hash(job, &file.to, file.seen.size) {
            Ok(hash) => drop(fetched.hashes.insert(file.to.as_bytes().to_vec(), hash)),
            Err(error) => fetched.failed.push((file.path.as_bytes().to_vec(), error)),
        }
    }
}

/// The hash of a file at the target.
fn hash(job: &Job<'_>, path: &StorePath, size: u64) -> Result<FileHash, FetchError> {
    let changed = || StoreError::new("read", path, ErrorKind::Changed);
    let file = Geometry::new(size).ok_or(FetchError::TooLarge)?;
    let open = job.store.open(path, Access::Read)?;
    let (mut hashes, mut bytes) = (Vec::new(), Vec::new());
    for index in file.indices() {
        if job.stop.load(Ordering::Relaxed) {
            return Err(FetchError::Stopped);
        }
        let range = file.range(index).unwrap_or_default();
        bytes.resize((range.end - range.start) as usize, 0);
        if open.read_at(range.start, &mut bytes)? != bytes.len() {
            return Err(changed().into());
        }
        hashes.extend(SegmentHash::new(file, index, &bytes));
    }
    FileHash::new(file, &hashes).ok_or_else(|| changed().into())
}
