//! What a gigabyte costs, in seconds of one processor: to hash, to read from RAM disk, to write there.

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Seconds for a gigabyte.
pub(crate) struct Costs {
    pub(crate) hash: f64,
    pub(crate) read: f64,
    pub(crate) write: f64,
}

/// As `hikyaku cp` does it: pieces of a mebibyte.
const PIECE: usize = 1 << 20;
const PIECES: u64 = 1024;
/// Pieces that take turns: as in a copy, none is still in the processor's cache.
const TURNS: usize = 128;

/// Measures all three on this thread, with a file in `folder`.
pub(crate) fn measure(folder: &Path) -> Result<Costs> {
    let file = nameless(folder)?;
    let mut pieces = vec![vec![0; PIECE]; TURNS];
    let mut rng = fastrand::Rng::with_seed(1);
    pieces.iter_mut().for_each(|piece| rng.fill(piece));
    warm(folder, PIECES * PIECE as u64 * 2)?;
    let gigabytes = (PIECES * PIECE as u64) as f64 / 1e9;
    let mut each = |work: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>| -> Result<f64> {
        let begin = processor_time();
        for (at, turn) in (0..PIECES).zip((0..TURNS).cycle()) {
            work(at * PIECE as u64, &mut pieces[turn])?;
        }
        Ok((processor_time() - begin) / gigabytes)
    };
    let write = each(&mut |at, piece| Ok(file.write_all_at(piece, at)?))?;
    let read = each(&mut |at, piece| Ok(file.read_exact_at(piece, at)?))?;
    let hash = each(&mut |_, piece| {
        black_box(blake3::hash(piece));
        Ok(())
    })?;
    Ok(Costs { hash, read, write })
}

/// A file without a name: it is gone with whoever has it open.
fn nameless(folder: &Path) -> Result<File> {
    let path = folder.join("hikyaku-costs");
    let file = File::options().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Takes so much memory for files in `folder` and gives it back: what a machine under this one has taken away in
/// the meantime comes back, and costs nobody anything while it is timed.
pub(crate) fn warm(folder: &Path, bytes: u64) -> Result<()> {
    let file = nameless(folder)?;
    let piece = vec![1; PIECE];
    (0..bytes / PIECE as u64).try_for_each(|at| Ok(file.write_all_at(&piece, at * PIECE as u64)?))
}

/// Seconds that this thread has worked.
fn processor_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// What the whole machine has worked until some moment, in seconds of a processor.
pub(crate) struct Busy(f64);

/// The kernel counts processor time in these.
const TICKS_PER_SECOND: f64 = 100.0;

impl Busy {
    pub(crate) fn now() -> Result<Self> {
        let stat = fs::read_to_string("/proc/stat")?;
        busy(&stat).map(Self).context("/proc/stat reads strangely")
    }

    /// Seconds of a processor since.
    pub(crate) fn since(&self) -> Result<f64> {
        Ok(Self::now()?.0 - self.0)
    }
}

/// User, nice, system, irq and softirq of all processors.
fn busy(stat: &str) -> Option<f64> {
    let fields: Vec<f64> =
        stat.lines().next()?.split_whitespace().skip(1).map_while(|f| f.parse().ok()).collect();
    let ticks = [0, 1, 2, 5, 6].map(|at| fields.get(at).copied());
    Some(ticks.into_iter().sum::<Option<f64>>()? / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_waits_is_not_busy() {
        let stat = "cpu  100 10 50 9999 777 20 20 5 0 0\ncpu0 1 1\n";
        assert_eq!(busy(stat), Some(2.0));
        assert_eq!(busy("cpu 1 2"), None);
    }
}
