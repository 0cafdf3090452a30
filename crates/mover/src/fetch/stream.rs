//! A file that no server has: its bytes come through a FIFO or an open descriptor of this process.

use super::{FetchError, Fetched, Hashes, Job, Taking};
use crate::bottleneck::{Ends, Gauge, Waits};
use crate::census::{File, ServerId};
use crate::target::Target;
use hikyaku_fs::{Incoming, read_incoming};
use hikyaku_run_log::FileStage;
use hikyaku_store::{ErrorKind, Latency, StoreError, StorePath};
use hikyaku_transfer::{FileHash, Limit};
use rustix::io::Errno;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Bytes that are read at once: more than a pipe gives.
const PIECE_BYTES: usize = 1 << 20;

/// Writes the bytes of the stream to the only file of the plan, unless the rules keep the existing one.
pub(super) fn take(
    job: &Job<'_>,
    (stream, targets): (&Incoming, &[Option<Target<'_>>]),
    fetched: &mut Fetched,
) {
    let mut wanted = job.plan.files.iter().zip(targets);
    if let Some((file, target)) = wanted.find_map(|(file, target)| Some((file, target.as_ref()?))) {
        let path = file.path.as_bytes();
        job.meter.file_begins(path, 0, ServerId(0));
        let before = job.meter.written();
        match pour(job, stream, (file, target)) {
            Ok((size, hash)) => {
                fetched.files += 1;
                fetched.bytes += size;
                if job.hashes == Hashes::Listed {
                    fetched.hashes.insert(file.to.as_bytes().to_vec(), hash);
                }
                job.meter.add_file();
                job.meter.tell_file(FileStage::End, path, size);
            }
            Err(error) => {
                job.meter.tell_file(FileStage::Failed, path, 0);
                if job.taking == Taking::AnyOrder {
                    let written = job.meter.written().saturating_sub(before);
                    job.meter.take_back_written(written);
                }
                fetched.failed.push((path.to_vec(), error));
            }
        }
    }
    job.meter.set_found();
}

fn pour(
    job: &Job<'_>,
    stream: &Incoming,
    (file, target): (&File, &Target<'_>),
) -> Result<(u64, FileHash), FetchError> {
    let of_source = |kind: ErrorKind| {
        FetchError::Source(StoreError::new("read", &StorePath::from(file.path.clone()), kind))
    };
    let goes_on = || !job.stop.load(Ordering::Relaxed) && job.store.lost().is_none();
    let mut source = stream.open().map_err(|error| of_source(error.into()))?;
    let mut poured = target.pour()?;
    let rate = [job.parameters.client.rate, job.parameters.servers.rate];
    let limit = Limit::new(rate.into_iter().flatten().min());
    let mut bytes = vec![0; limit.piece_bytes(PIECE_BYTES)];
    job.meter.set_spent();
    let ends = Ends { source: Latency::Local, target: job.store.abilities().latency };
    let mut gauge = Gauge::new(ends, job.parameters.client.rate);
    let mut waits = Waits::default();
    loop {
        let begin = Instant::now();
        let length = match read_incoming(&mut source, &mut bytes, &goes_on) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if Errno::from_io_error(&error) == Some(Errno::CANCELED) => {
                return Err(canceled(job, target));
            }
            Err(error) => return Err(of_source(error.into())),
        };
        waits.reading += begin.elapsed();
        limit.wait(length as u64, || !goes_on());
        if !goes_on() {
            return Err(canceled(job, target));
        }
        let begin = Instant::now();
        poured.write(&bytes[..length])?;
        waits.writing += begin.elapsed();
        job.meter.add_found(0, length as u64);
        job.meter.add_written(length as u64);
        waits.bytes += length as u64;
        if let Some(limited_by) = gauge.look(Instant::now(), waits) {
            job.meter.set_limited_by(limited_by);
        }
    }
    Ok(poured.finish()?)
}

/// Why no more bytes were taken: the target is lost, or the user has stopped the copy.
fn canceled(job: &Job<'_>, target: &Target<'_>) -> FetchError {
    match job.store.lost() {
        Some(kind) => FetchError::Target(StoreError::new("write", target.path(), kind)),
        None => FetchError::Stopped,
    }
}
