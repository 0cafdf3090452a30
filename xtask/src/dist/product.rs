//! What a user gets, before it is packed.

use super::target::{Libc, Target, asked};
use super::{licences, parts};
use crate::workspace;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program for one kind of machine, with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Product {
    /// As in the manifests.
    pub version: String,
    /// The kind of machine.
    pub target: Target,
    /// The program.
    pub program: Vec<u8>,
    /// Static programs for other machines, by their processors, which `hikyaku cp --bootstrap` copies to far sides.
    pub far: Vec<(&'static str, Vec<u8>)>,
    /// What the program says of itself.
    pub texts: Texts,
    /// The parts of the program, as CycloneDX JSON.
    pub parts: Vec<u8>,
    /// The licences of the parts that others wrote.
    pub licences: Vec<u8>,
    /// Seconds since 1970 that all files have.
    pub time: u64,
}

/// Texts that a program prints of itself. They are the same for all kinds of machine.
#[derive(Clone, Debug)]
pub struct Texts {
    /// Manual pages by their file names.
    pub pages: Vec<(String, Vec<u8>)>,
    /// Completion scripts by their shells and commands.
    pub completions: Vec<((&'static str, &'static str), Vec<u8>)>,
}

/// The shells that completion scripts are made for.
const SHELLS: [&str; 3] = ["bash", "zsh", "fish"];
/// The names under which the program completes arguments.
const COMMANDS: [&str; 3] = ["hikyaku", "hscp", "hsftp"];

impl Texts {
    /// Asks `program`; `None` if it does not run here.
    ///
    /// # Errors
    ///
    /// It runs and does not print them.
    pub fn of(program: &Path) -> Result<Option<Self>> {
        let folder = std::env::temp_dir().join(format!("hikyaku-pages-{}", std::process::id()));
        let pages = asked(program, &["man", "--all", &folder.to_string_lossy()])?;
        let Some(pages) = pages else { return Ok(None) };
        pages.success().context("the program does not print its manual pages")?;
        let pages = read_all(&folder);
        fs::remove_dir_all(&folder)?;
        let pages = pages?;
        ensure!(!pages.is_empty(), "the program has no manual pages");
        let mut completions = Vec::new();
        for (shell, command) in SHELLS.into_iter().flat_map(|of| COMMANDS.map(|name| (of, name))) {
            let script = asked(program, &["completions", shell, "--command", command])?;
            let script = script.context("the program runs no more")?.success()?;
            completions.push(((shell, command), script.into_bytes()));
        }
        Ok(Some(Self { pages, completions }))
    }
}

fn read_all(folder: &Path) -> Result<Vec<(String, Vec<u8>)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

impl Product {
    /// The product around a program that was built for `target`. Its files have this time, in seconds since 1970.
    ///
    /// # Errors
    ///
    /// The program cannot be read, or cargo does not tell the parts of it.
    pub fn new(program: &Path, target: Target, texts: Texts, time: u64) -> Result<Self> {
        let cannot = || format!("cannot read {}", program.display());
        let program = fs::read(program).with_context(cannot)?;
        let graph = parts::Graph::of(target.triple)?;
        let (parts, licences) = (graph.document(time)?, licences::text(&graph)?);
        let version = graph.version().to_owned();
        let far = Vec::new();
        Ok(Self { version, target, program, far, texts, parts, licences, time })
    }

    /// With those of `programs` that are static and of another kind of machine than the product itself.
    ///
    /// # Errors
    ///
    /// One cannot be read.
    pub fn with_far<'a>(
        mut self,
        programs: impl IntoIterator<Item = (&'a Target, &'a PathBuf)>,
    ) -> Result<Self> {
        let is_for_far = |(target, _): &(&Target, &PathBuf)| {
            target.libc == Libc::Musl && **target != self.target
        };
        let programs: Vec<_> = programs.into_iter().filter(is_for_far).collect();
        for (target, program) in programs {
            let cannot = || format!("cannot read {}", program.display());
            self.far.push((target.processor, fs::read(program).with_context(cannot)?));
        }
        Ok(self)
    }
}

/// A document of the tree, by its path from the root.
pub(super) fn document(path: &str) -> Result<Vec<u8>> {
    fs::read(workspace().join(path)).with_context(|| format!("cannot read {path}"))
}

/// The names of the documents for users: the pages of `docs`, without the folder `docs/internals` for contributors.
pub(super) fn documents() -> Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(workspace().join("docs"))? {
        names.push(Path::new("docs").join(entry?.file_name()));
    }
    names.retain(|name| name.extension().is_some_and(|extension| extension == "md"));
    names.sort();
    Ok(names)
}

/// The time of the files in packages, in seconds since 1970: `SOURCE_DATE_EPOCH` if it is set, else that of the commit.
///
/// # Errors
///
/// The tree is no git repository, and `SOURCE_DATE_EPOCH` is not set.
pub fn commit_time() -> Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time.parse().context("SOURCE_DATE_EPOCH is not a number of seconds");
    }
    let asked = Command::new("git")
        .args(["log", "-1", "--format=%ct"])
        .current_dir(workspace())
        .output()
        .context("cannot run git")?;
    let text = String::from_utf8_lossy(&asked.stdout);
    text.trim().parse().context(
        "try: SOURCE_DATE_EPOCH=$(date +%s); the time of the commit is not known outside of git",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_have_the_pages_for_users_and_no_others() {
        let names = documents().unwrap();
        assert!(names.contains(&PathBuf::from("docs/copy.md")), "{names:?}");
        let is_page = |name: &PathBuf| name.parent() == Some(Path::new("docs"));
        assert!(names.iter().all(is_page), "{names:?}");
    }
}
