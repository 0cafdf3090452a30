//! Patterns as shells have them: what a source on the far side means, and which names may come of it.

use anyhow::{Context, Result};
use globset::{GlobBuilder, GlobMatcher};
use hikyaku_fs::Shown;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Compiles one: `*` and `?` match no slash, `**` does.
pub(crate) fn compile(pattern: &str) -> Result<GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).backslash_escape(true).build();
    Ok(glob.with_context(|| format!("'{pattern}' is not a pattern"))?.compile_matcher())
}

/// Whether something stands for other characters in it.
fn is_pattern(name: &[u8]) -> bool {
    name.iter().any(|byte| b"*?[".contains(byte))
}

/// What `path` means: itself, or everything that matches, sorted. Names that begin with a dot match
/// only patterns that do.
pub(crate) fn expand(path: &Path) -> Result<Vec<PathBuf>> {
    let is_itself = !is_pattern(path.as_os_str().as_bytes()) || fs::symlink_metadata(path).is_ok();
    if is_itself {
        return Ok(vec![path.to_path_buf()]);
    }
    let mut found = vec![PathBuf::new()];
    for component in path.components() {
        found = match component {
            Component::Normal(name) if is_pattern(name.as_bytes()) => matching(&found, name)?,
            other => found.into_iter().map(|path| path.join(other)).collect(),
        };
    }
    found.retain(|path| fs::symlink_metadata(path).is_ok());
    anyhow::ensure!(
        !found.is_empty(),
        "{}: nothing matches",
        Shown::new(path.as_os_str().as_bytes())
    );
    Ok(found)
}

fn matching(dirs: &[PathBuf], name: &OsStr) -> Result<Vec<PathBuf>> {
    let matcher = compile(&name.to_string_lossy())?;
    let wants_hidden = name.as_bytes().starts_with(b".");
    let mut found = Vec::new();
    for dir in dirs {
        let here = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        // A directory that cannot be read matches nothing, as in a shell.
        let Ok(entries) = fs::read_dir(here) else { continue };
        let mut names: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        names.sort_unstable();
        let fits = |name: &OsStr| {
            (wants_hidden || !name.as_bytes().starts_with(b".")) && matcher.is_match(name)
        };
        found.extend(names.iter().filter(|name| fits(name)).map(|name| dir.join(name)));
    }
    Ok(found)
}

/// The names that a far side may send for what was asked of it. One that sends others is lying: a
/// file that nobody asked for must not be written (CVE-2019-6111).
#[derive(Clone, Debug, Default)]
pub(crate) struct Allowed {
    /// `None`: what is in a directory, of which nobody knows the names.
    names: Option<Vec<GlobMatcher>>,
}

impl Allowed {
    /// Whatever comes.
    pub(crate) fn anything() -> Self {
        Self::default()
    }

    /// What these sources may be called.
    pub(crate) fn of(sources: &[Vec<u8>]) -> Result<Self> {
        let mut names = Vec::new();
        for source in sources {
            let path = Path::new(OsStr::from_bytes(source));
            let ends_in_dot = source.ends_with(b"/.") || source == b"~" || source.is_empty();
            match path.components().next_back() {
                Some(Component::Normal(name)) if !ends_in_dot => {
                    let literal = !is_pattern(name.as_bytes());
                    let text = name.to_string_lossy();
                    let text = if literal { globset::escape(&text) } else { text.into_owned() };
                    names.push(compile(&text)?);
                }
                _ => return Ok(Self::anything()),
            }
        }
        Ok(Self { names: Some(names) })
    }

    /// Whether an entry with this path may come.
    // fuzz: lines
    pub(crate) fn admits(&self, path: &[u8]) -> bool {
        let Some(names) = &self.names else { return true };
        let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
        // What is no text was compared as the text that stands for it.
        let first = OsStr::from_bytes(first).to_string_lossy().into_owned();
        names.iter().any(|name| name.is_match(&first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(sources: &[&str]) -> Allowed {
        Allowed::of(&sources.iter().map(|s| s.as_bytes().to_vec()).collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn only_names_that_were_asked_for_may_come() {
        let some = allowed(&["run7/*.dat", "a/b/c", "[x]"]);
        for name in ["1.dat", "c", "c/below/that", "x"] {
            assert!(some.admits(name.as_bytes()), "{name}");
        }
        for name in ["1.txt", "b", "cc", ".bashrc", ".ssh/authorized_keys", "1.dat2"] {
            assert!(!some.admits(name.as_bytes()), "{name}");
        }
        for contents in [".", "run7/.", "/", "~", ""] {
            assert!(allowed(&[contents]).admits(b"whatever"), "{contents}");
        }
    }

    #[test]
    fn a_name_with_a_star_in_it_is_itself() {
        let scratch = std::env::temp_dir().join(format!("hikyaku-expand-{}", std::process::id()));
        fs::create_dir_all(scratch.join("d1")).unwrap();
        fs::create_dir_all(scratch.join("d2")).unwrap();
        for name in ["a.dat", "b.dat", ".c.dat", "x*y", "d1/f", "d2/f"] {
            fs::write(scratch.join(name), b"").unwrap();
        }
        let names = |pattern: &str| -> Vec<String> {
            let found = expand(&scratch.join(pattern)).unwrap_or_default();
            let relative = found.iter().map(|path| path.strip_prefix(&scratch).unwrap());
            relative.map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names("*.dat"), ["a.dat", "b.dat"]);
        assert_eq!(names(".*.dat"), [".c.dat"]);
        assert_eq!(names("x*y"), ["x*y"]);
        assert_eq!(names("d?/f"), ["d1/f", "d2/f"]);
        assert_eq!(names("no"), ["no"], "whoever reads it says that it is not there");
        assert!(expand(&scratch.join("*.none")).is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
