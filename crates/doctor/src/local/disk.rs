//! The rates at which a disk writes and reads.
//!
//! The file has no name: it is removed as soon as it is open, so that nothing is left whatever happens. It is synced
//! before the clock is read, and dropped from the page cache before it is read again.

use crate::check::{Check, Id, State};
use hikyaku_fs::words;
use hikyaku_units::{DataSize, Rate};
use rustix::fs::{Advice, fadvise, fstatvfs};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much is written at most.
const BYTES_MAX: u64 = 256_000_000;
/// How long is written, and read, at most.
const TIME_MAX: Duration = Duration::from_secs(2);
/// Bytes of one call.
const BLOCK_BYTES: usize = 1 << 20;
/// The test uses at most this fraction of the free space: one part in `FREE_PARTS`.
const FREE_PARTS: u64 = 4;

/// Measures the disk of `dir`. Gives the rates of writing and reading.
pub(super) fn check(dir: Option<&Path>) -> (Check, Option<(Rate, Rate)>) {
    let Some(dir) = dir else {
        let skipped = Check::new(Id::Disk, State::Skip, "no directory was named");
        return (skipped.with_remedy("hikyaku doctor --dir DIR"), None);
    };
    match rates(dir) {
        Ok((write, read)) => {
            let found = format!("{}: writes {write}, reads {read}", dir.display());
            let check = Check::ok(Id::Disk, found);
            (check.measured(write.bits_per_sec() as f64, "bit/s"), Some((write, read)))
        }
        Err(error) => {
            let found = format!("{}: {}", dir.display(), words(&error));
            let check = Check::new(Id::Disk, State::Fail, found);
            let remedy = match error.kind() {
                ErrorKind::StorageFull => "free space on its disk, or name another directory",
                _ => "name a directory that you may write to: --dir DIR",
            };
            (check.with_remedy(remedy), None)
        }
    }
}

fn rates(dir: &Path) -> io::Result<(Rate, Rate)> {
    let name = dir.join(format!(".hikyaku-doctor-{:016x}", fastrand::u64(..)));
    let mut file = File::options().read(true).write(true).create_new(true).open(&name)?;
    fs::remove_file(&name)?;
    let space = fstatvfs(&file)?;
    let free = space.f_bavail.saturating_mul(space.f_frsize);
    let limit = BYTES_MAX.min(free / FREE_PARTS);
    if limit < BLOCK_BYTES as u64 {
        let text = format!("only {} are free, too little to try", DataSize::from_bytes(free));
        return Err(io::Error::new(ErrorKind::StorageFull, text));
    }
    // Random bytes: a file system may compress others.
    let mut block = vec![0; BLOCK_BYTES];
    fastrand::fill(&mut block);
    let (begin, mut written) = (Instant::now(), 0);
    while written + BLOCK_BYTES as u64 <= limit && begin.elapsed() < TIME_MAX {
        file.write_all(&block)?;
        written += BLOCK_BYTES as u64;
    }
    file.sync_data()?;
    let write = rate(written, begin.elapsed());
    // Advice only: where it has no effect, the cache is measured.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    file.rewind()?;
    let (begin, mut read) = (Instant::now(), 0);
    while begin.elapsed() < TIME_MAX {
        match file.read(&mut block)? {
            0 => break,
            bytes => read += bytes as u64,
        }
    }
    Ok((write, rate(read, begin.elapsed())))
}

fn rate(bytes: u64, time: Duration) -> Rate {
    Rate::from_bits_per_sec((bytes as f64 * 8.0 / time.as_secs_f64().max(1e-6)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_in_the_directory() {
        let dir = std::env::temp_dir().join(format!("hikyaku-doctor-disk-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (check, rates) = check(Some(&dir));
        assert_eq!(check.state, State::Ok, "{check:?}");
        assert!(rates.is_some());
        fs::remove_dir(&dir).unwrap();
        let (check, rates) = super::check(Some(&dir));
        assert_eq!((check.state, rates), (State::Fail, None));
        assert!(check.remedy.is_some());
    }
}
