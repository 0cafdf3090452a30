//! A control group (cgroups(7), version 2) of its own for a command: the kernel knows by it which packets are those of the
//! command and of the programs that it starts.

use anyhow::{Context, Error, Result};
use hikyaku_console::with_remedy;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A control group below that of this process, so that the limits of the user's session hold for the command. Dropping it
/// removes it, if the programs in it have ended.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folder: PathBuf,
    /// The path that `nft` has it by: below `/sys/fs/cgroup`.
    name: String,
    /// How deep it is below the root of the hierarchy.
    level: usize,
}

/// Where `nft` looks for control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// Begins the name of each of ours; the number of the gateway's process ends it.
const PREFIX: &str = "hikyaku-";
/// Moves itself into the control group, and becomes the command.
const ENTER: &str = "echo $$ >\"$1/cgroup.procs\" && shift && exec \"$@\"";

impl Cgroup {
    /// Makes it. Needs root.
    ///
    /// # Errors
    ///
    /// This machine has no such control groups, or the kernel refuses to make one.
    pub(super) fn make() -> Result<Self> {
        let remedy = || "try: as root, on a system that has /sys/fs/cgroup of version 2".to_owned();
        let found = place().context("this system has no control groups of version 2");
        let (parent, depth) = found.map_err(|error| with_remedy(error, Some(remedy())))?;
        remove_left(&parent);
        let folder = parent.join(format!("{PREFIX}{}", std::process::id()));
        let name = folder.strip_prefix(ROOT).ok().and_then(Path::to_str);
        // It stands between quotes in a rule.
        let name = name.filter(|name| !name.contains(|c: char| c == '"' || c.is_control()));
        let name = name.context("the control group of this process has a strange name")?.to_owned();
        fs::create_dir(&folder).map_err(|error| {
            let error = Error::from(error).context(format!("cannot make {}", folder.display()));
            with_remedy(error, Some(remedy()))
        })?;
        Ok(Self { folder, name, level: depth + 1 })
    }

    /// The path that `nft` has it by.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// How deep it is below the root of the hierarchy, of which the children have 1.
    pub(super) const fn level(&self) -> usize {
        self.level
    }

    /// The command that runs these words in it.
    pub(crate) fn command(&self, words: &[OsString]) -> Command {
        let mut command = Command::new("/bin/sh");
        // The first word after the script is what the shell calls itself in its errors.
        command.arg("-c").arg(ENTER).arg("hikyaku").arg(&self.folder).args(words);
        command
    }

    #[cfg(test)]
    pub(super) fn for_test(name: &str, level: usize) -> Self {
        Self { folder: PathBuf::from("/nonexistent"), name: name.to_owned(), level }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // It stays as long as a program of the command runs.
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The control group of this process, and how deep it is.
fn place() -> Option<(PathBuf, usize)> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    let (mount, path) = (mount(&mounts)?, own.lines().find_map(|line| line.strip_prefix("0::/"))?);
    let folder = mount.join(path);
    folder.is_dir().then(|| (folder, Path::new(path).components().count()))
}

/// Where the whole hierarchy is mounted, of what proc(5) says of mounts.
fn mount(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (fields, kind) = line.split_once(" - ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let is_whole = kind.starts_with("cgroup2 ") && fields.get(3) == Some(&"/");
        let path = fields.get(4).filter(|_| is_whole)?;
        path.starts_with(ROOT).then(|| PathBuf::from(path))
    })
}

/// Removes control groups of gateways that were killed. One with a program in it stays.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let process = name.strip_prefix(PREFIX).and_then(|number| number.parse::<u32>().ok());
        let is_over = |process: u32| !Path::new(&format!("/proc/{process}")).exists();
        if process.is_some_and(is_over) {
            let _: io::Result<()> = fs::remove_dir(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hierarchy_of_version_2_is_found_where_nft_looks_for_it() {
        let line = |root: &str, at: &str, kind: &str| {
            format!("31 23 0:26 {root} {at} rw,nosuid shared:9 - {kind} none rw\n")
        };
        let old = line("/", "/sys/fs/cgroup/cpu", "cgroup");
        for (mounts, wanted) in [
            (old.clone(), None),
            (line("/", "/sys/fs/cgroup", "cgroup2"), Some("/sys/fs/cgroup")),
            (old + &line("/", "/sys/fs/cgroup/unified", "cgroup2"), Some("/sys/fs/cgroup/unified")),
            (line("/a", "/sys/fs/cgroup", "cgroup2"), None),
            (line("/", "/mnt", "cgroup2"), None),
        ] {
            assert_eq!(mount(&mounts), wanted.map(PathBuf::from), "{mounts}");
        }
    }
}
