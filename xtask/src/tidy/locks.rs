//! The lock file of `fuzz/`, which is a workspace of its own, knows the dependencies that the crates have now.
//!
//! `cargo xtask test` builds the fuzz targets with `--locked`. A crate that gets a dependency changes the lock file
//! of the workspace by itself, and that of `fuzz/` only when somebody builds there.

use super::floors::Package;
use super::{Finding, TextFile};
use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
mod tests;

/// The lock file that is looked at.
const LOCK: &str = "fuzz/Cargo.lock";

/// Each house crate that the lock file names has there all its dependencies, but for those of tests and optional ones.
pub(super) fn check(packages: &[Package], files: &[TextFile]) -> Vec<Finding> {
    let Some(lock) = files.iter().find(|file| file.path == LOCK) else { return Vec::new() };
    let locked = dependencies(&lock.text);
    let known = packages.iter().filter_map(|package| Some((package, locked.get(package.name())?)));
    let missing = known.flat_map(|(package, known)| {
        package.needed().filter(|name| !known.contains(name)).map(move |name| {
            let remedy = "cargo metadata --manifest-path fuzz/Cargo.toml";
            let text = format!("does not know that {} uses {name}: {remedy}", package.name());
            Finding::error(LOCK, 1, text)
        })
    });
    missing.collect()
}

/// The names of what each package in a lock file depends on.
fn dependencies(lock: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    fn read(block: &str) -> Option<(&str, BTreeSet<&str>)> {
        let (_, name) = block.split_once("name = \"")?;
        let (name, _) = name.split_once('"')?;
        let list = block.split_once("dependencies = [").map_or("", |(_, list)| list);
        let list = list.split_once(']').map_or(list, |(list, _)| list);
        let entries = list.split('"').skip(1).step_by(2);
        Some((name, entries.filter_map(|entry| entry.split(' ').next()).collect()))
    }
    lock.split("[[package]]").skip(1).filter_map(read).collect()
}
