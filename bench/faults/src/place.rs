//! Where a copy under test works: a folder of its own with the source, the target and the state of the program.

use anyhow::{Context, Result};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Which part of it a file belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Area {
    /// What is copied.
    Source,
    /// Where it is copied to.
    Target,
    /// What the program remembers (journals).
    State,
}

const AREAS: [(Area, &str); 3] =
    [(Area::Source, "source"), (Area::Target, "target"), (Area::State, "state")];

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(AREAS.iter().find(|(area, _)| area == self).map_or("?", |(_, name)| name))
    }
}

impl FromStr for Area {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let found = AREAS.iter().find(|(_, name)| *name == text);
        found.map(|(area, _)| *area).with_context(|| format!("{text}: no such place"))
    }
}

/// A folder for one run after the other; it is gone when this is dropped.
pub(crate) struct Place {
    root: PathBuf,
}

impl Place {
    /// Makes it anew below `scratch`.
    pub(crate) fn make(scratch: &Path, name: &str) -> Result<Self> {
        let root = scratch.join(name);
        let place = Self { root };
        place.clear()?;
        Ok(place)
    }

    /// Empties it.
    pub(crate) fn clear(&self) -> Result<()> {
        // The first time there is nothing.
        let _ = fs::remove_dir_all(&self.root);
        for (_, name) in AREAS {
            fs::create_dir_all(self.root.join(name))
                .with_context(|| format!("cannot make {}", self.root.display()))?;
        }
        Ok(())
    }

    /// The folder itself.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The folder of an area.
    pub(crate) fn area(&self, area: Area) -> PathBuf {
        self.root.join(area.to_string())
    }

    /// Which area a path belongs to; `None` if it is none of ours.
    pub(crate) fn find(&self, path: &Path) -> Option<Area> {
        let below = path.strip_prefix(&self.root).ok()?;
        let first = below.components().next()?.as_os_str().to_str()?;
        first.parse().ok()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed harms nobody.
        let _ = fs::remove_dir_all(&self.root);
    }
}

/// A folder for places, in memory where that can be: thousands of runs are made. It is gone when this
/// is dropped.
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes it; `name` is for who looks at it.
    pub fn make(name: &str) -> Result<Self> {
        let shared = Path::new("/dev/shm");
        let base = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
        let path = base.join(format!("hikyaku-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}
