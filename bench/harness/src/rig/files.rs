//! Files to copy, the folder that they are in, and whether two trees are the same.

use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use xtask::run;

/// A folder that is gone with the rig.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Empty, beneath `parent`.
    pub(crate) fn new(parent: &Path) -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder = Self(parent.join(format!("hikyaku-rig-{}-{number}", std::process::id())));
        for end in ["near", "far", "far-state"] {
            let path = folder.0.join(end);
            fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        }
        Ok(folder)
    }

    /// A path in it.
    pub(crate) fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A leftover is no reason to fail.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Random bytes in a file.
pub(crate) fn random_file(path: &Path, size: u64, seed: u64) -> Result<()> {
    use std::io::Write;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut block = vec![0; 1 << 20];
    let mut file = std::io::BufWriter::new(fs::File::create(path)?);
    let mut left = size;
    while left > 0 {
        rng.fill(&mut block);
        let now = left.min(block.len() as u64) as usize;
        file.write_all(&block[..now])?;
        left -= now as u64;
    }
    Ok(file.flush()?)
}

/// The number of bytes of an unfinished copy that are equal to those of the source. Zeros of the copy are bytes that were not
/// written yet: the source is a random file, which has no page of zeros.
///
/// # Errors
/// The copy has other bytes.
pub(crate) fn arrived(source: &Path, copy: &Path) -> Result<u64> {
    use std::io::Read;
    const PIECE_BYTES: u64 = 1 << 20;
    const PAGE_BYTES: usize = 4096;
    let [mut source, mut copy] = [fs::File::open(source)?, fs::File::open(copy)?];
    let (mut sent, mut come, mut sum) = (Vec::new(), Vec::new(), 0);
    loop {
        sent.clear();
        come.clear();
        (&mut copy).take(PIECE_BYTES).read_to_end(&mut come)?;
        (&mut source).take(come.len() as u64).read_to_end(&mut sent)?;
        if come.is_empty() {
            return Ok(sum);
        }
        ensure!(come.len() == sent.len(), "the copy is longer than the source");
        for (sent, come) in sent.chunks(PAGE_BYTES).zip(come.chunks(PAGE_BYTES)) {
            if sent == come {
                sum += come.len() as u64;
                continue;
            }
            for (sent, come) in sent.iter().zip(come).filter(|(_, come)| **come != 0) {
                ensure!(sent == come, "the copy has bytes that are not the source's");
                sum += 1;
            }
        }
    }
}

/// Bytes of `source` in the unfinished file of a folder, whatever its name is: each program has another.
pub(crate) fn written(source: &Path, folder: &Path) -> Result<u64> {
    let mut largest: Option<(u64, PathBuf)> = None;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let length = entry.metadata()?.len();
        if largest.as_ref().is_none_or(|(most, _)| length > *most) {
            largest = Some((length, entry.path()));
        }
    }
    largest.map_or(Ok(0), |(_, path)| arrived(source, &path))
}

/// Whether other people's programs find both the same.
pub(crate) fn same(a: &Path, b: &Path) -> Result<()> {
    let mut diff = Command::new("diff");
    diff.args(["-r", "--no-dereference"]).args([a, b]);
    let said = run(&mut diff, Duration::from_secs(120))?;
    if !said.status.success() {
        bail!("what arrived is not what was sent: {}", said.stdout.lines().next().unwrap_or(""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_written_has_arrived() {
        let folder = std::env::temp_dir().join(format!("bench-arrived-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [source, copy] = ["source", "copy"].map(|name| folder.join(name));
        random_file(&source, 3 << 20, 1).unwrap();
        let bytes = fs::read(&source).unwrap();
        let arrived = |written: &[u8]| {
            fs::write(&copy, written).unwrap();
            arrived(&source, &copy)
        };
        assert_eq!(arrived(&bytes).unwrap(), 3 << 20);
        assert_eq!(arrived(&[]).unwrap(), 0);
        let mut part = vec![0; 2 << 20];
        part[1 << 20..][..10_000].copy_from_slice(&bytes[1 << 20..][..10_000]);
        let zeros = bytes[1 << 20..][8192..10_000].iter().filter(|byte| **byte == 0).count();
        assert_eq!(arrived(&part).unwrap(), 10_000 - zeros as u64);
        part[1 << 20] ^= 1;
        assert!(part[1 << 20] == 0 || arrived(&part).is_err());
        assert!(arrived(&[bytes, vec![1]].concat()).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
