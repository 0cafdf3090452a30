//! Folders that a program takes for its user's own: nothing is known from earlier runs.

use crate::rig::line::{End, Line, NOBODY};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder for each end, open to every user, removed when this is dropped.
#[derive(Debug)]
pub(crate) struct Home {
    folder: PathBuf,
}

impl Home {
    /// New and empty.
    pub(crate) fn new() -> Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("hikyaku-bench-{}-{number}", std::process::id());
        let home = Self { folder: std::env::temp_dir().join(name) };
        let make = || -> std::io::Result<()> {
            fs::create_dir_all(&home.folder)?;
            fs::set_permissions(&home.folder, fs::Permissions::from_mode(0o755))?;
            for end in [End::Client, End::Server] {
                fs::create_dir_all(home.of(end))?;
                // Keys are refused in a folder of somebody else's, so it is whose it will be.
                fs::set_permissions(home.of(end), fs::Permissions::from_mode(0o700))?;
            }
            Ok(())
        };
        make().with_context(|| format!("cannot make {}", home.folder.display()))?;
        Ok(home)
    }

    /// The folder of one end.
    pub(crate) fn of(&self, end: End) -> PathBuf {
        self.folder.join(match end {
            End::Client => "client",
            End::Server => "server",
        })
    }

    /// Lets `line` live here.
    pub(crate) fn of_line(&self, line: Line, end: End) -> Line {
        let folder = self.of(end);
        ["HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"]
            .into_iter()
            .fold(line, |line, name| line.variable(name, &folder))
    }

    /// Gives the folders to the user without rights, with a copy of `program` that it can run.
    pub(crate) fn give_to_nobody(&self, program: &Path) -> Result<PathBuf> {
        for end in [End::Client, End::Server] {
            chown(self.of(end), Some(NOBODY), Some(NOBODY))?;
        }
        let copy = self.folder.join("program");
        fs::copy(program, &copy).with_context(|| format!("cannot copy {}", program.display()))?;
        fs::set_permissions(&copy, fs::Permissions::from_mode(0o755))?;
        Ok(copy)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // A leftover in the temporary folder is no reason to fail.
        let _ = fs::remove_dir_all(&self.folder);
    }
}
