//! Files to copy, the folder that they are in, and whether two trees are the same.

use anyhow::{Context, Result, bail};
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
