//! Where the workspace is, and which of its files count as its own.

use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder that holds the workspace manifest.
pub fn workspace() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Paths, relative to the root, of all files that are tracked or would be by `git add .`.
pub fn own_files(root: &Path) -> Result<Vec<String>> {
    let listing = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("cannot run git to list the files")?;
    ensure!(listing.status.success(), "{}", String::from_utf8_lossy(&listing.stderr).trim());
    let mut paths: Vec<String> = String::from_utf8(listing.stdout)?
        .split('\0')
        .filter(|path| !path.is_empty() && root.join(path).is_file())
        .map(str::to_owned)
        .collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}
