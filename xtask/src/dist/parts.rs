//! The parts of the program: the crates that are linked into it, and those that only build it.
//!
//! cargo tells them. The list for users is a CycloneDX document (version 1.5, JSON).

use crate::workspace;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crate whose program is packed.
const ROOT: &str = "hikyaku-cli";

/// The crates of one build.
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
    nodes: HashMap<String, Node>,
    /// Checksums of `Cargo.lock` by name and version.
    checksums: HashMap<(String, String), String>,
    root: String,
}

/// A crate, as cargo describes it.
#[derive(Deserialize)]
pub(super) struct Package {
    id: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
    targets: Vec<Made>,
}

/// What is compiled of a crate.
#[derive(Deserialize)]
struct Made {
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Arrow>,
}

#[derive(Deserialize)]
struct Arrow {
    pkg: String,
    dep_kinds: Vec<Kind>,
}

#[derive(Deserialize)]
struct Kind {
    /// `dev`, `build`, or absent for a normal dependency.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

/// `Cargo.lock`.
#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Whether the program holds a part.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Use {
    /// It runs when the program is built.
    Builds,
    /// It is in the program.
    Linked,
}

impl Package {
    /// Whether others wrote it.
    pub(super) fn is_foreign(&self) -> bool {
        self.source.is_some()
    }

    /// The directory of its sources.
    pub(super) fn folder(&self) -> &Path {
        self.manifest_path.parent().unwrap_or(&self.manifest_path)
    }

    fn is_macro(&self) -> bool {
        self.targets.iter().any(|made| made.kind.iter().any(|kind| kind == "proc-macro"))
    }

    fn url(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

impl Graph {
    /// Asks cargo for the crates of a build for a target.
    pub(super) fn of(triple: &str) -> Result<Self> {
        let asked = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", triple])
            .current_dir(workspace())
            .output()
            .context("cannot run cargo")?;
        ensure!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
        let lock = fs::read_to_string(workspace().join("Cargo.lock"))?;
        Self::read(&asked.stdout, &lock)
    }

    fn read(metadata: &[u8], lock: &str) -> Result<Self> {
        let metadata: Metadata = serde_json::from_slice(metadata)?;
        let lock: Lock = toml::from_str(lock)?;
        let root = metadata.packages.iter().find(|package| package.name == ROOT);
        let root = root.context("cargo tells nothing of the program's crate")?.id.clone();
        let checksum = |locked: Locked| Some(((locked.name, locked.version), locked.checksum?));
        Ok(Self {
            packages: by(metadata.packages, |package| package.id.clone()),
            nodes: metadata.resolve.nodes.into_iter().map(|node| (node.id.clone(), node)).collect(),
            checksums: lock.package.into_iter().filter_map(checksum).collect(),
            root,
        })
    }

    /// The version of the program.
    pub(super) fn version(&self) -> &str {
        self.packages.get(&self.root).map_or("", |root| &root.version)
    }

    /// All parts, without the program's own crate, in the order of their names.
    pub(super) fn parts(&self) -> Vec<(&Package, Use)> {
        let mut found = BTreeMap::new();
        let mut waiting = vec![(self.root.as_str(), Use::Linked)];
        while let Some((id, used)) = waiting.pop() {
            let Some(package) = self.packages.get(id) else { continue };
            // What a macro needs runs in the compiler.
            let used = if package.is_macro() { Use::Builds } else { used };
            if found.get(id).is_some_and(|known| *known >= used) {
                continue;
            }
            found.insert(id, used);
            waiting.extend(self.arrows(id).map(|(to, of)| (to, of.min(used))));
        }
        found.remove(self.root.as_str());
        let mut parts: Vec<_> =
            found.into_iter().map(|(id, used)| (&self.packages[id], used)).collect();
        parts.sort_by(|(a, _), (b, _)| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        parts
    }

    /// What a crate is built with; tests do not count.
    fn arrows(&self, id: &str) -> impl Iterator<Item = (&str, Use)> {
        let arrows = self.nodes.get(id).map_or(&[][..], |node| &node.deps);
        arrows.iter().filter_map(|arrow| {
            let uses = arrow.dep_kinds.iter().filter_map(|kind| match kind.kind.as_deref() {
                None => Some(Use::Linked),
                Some("build") => Some(Use::Builds),
                Some(_) => None,
            });
            Some((arrow.pkg.as_str(), uses.max()?))
        })
    }

    /// The list for users. `time` is in seconds since 1970.
    pub(super) fn document(&self, time: u64) -> Result<Vec<u8>> {
        let root = &self.packages[&self.root];
        let parts = self.parts();
        let components: Vec<Value> =
            parts.iter().map(|&(part, used)| self.component(part, used)).collect();
        let ids = parts.iter().map(|(part, _)| part.id.as_str()).chain([self.root.as_str()]);
        let dependencies: Vec<Value> = ids
            .map(|id| {
                let mut on: Vec<String> = self
                    .arrows(id)
                    .filter_map(|(to, _)| Some(self.packages.get(to)?.url()))
                    .collect();
                on.sort();
                on.dedup();
                json!({"ref": self.packages[id].url(), "dependsOn": on})
            })
            .collect();
        let document = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "version": 1,
            "metadata": {
                "timestamp": timestamp(time),
                "component": {
                    "type": "application",
                    "bom-ref": root.url(),
                    "name": "hikyaku",
                    "version": root.version,
                    "licenses": licences(root),
                },
            },
            "components": components,
            "dependencies": dependencies,
        });
        let mut text = serde_json::to_vec_pretty(&document)?;
        text.push(b'\n');
        Ok(text)
    }

    fn component(&self, part: &Package, used: Use) -> Value {
        let mut component = json!({
            "type": "library",
            "bom-ref": part.url(),
            "name": part.name,
            "version": part.version,
            "scope": match used { Use::Linked => "required", Use::Builds => "excluded" },
            "licenses": licences(part),
        });
        if part.is_foreign() {
            component["purl"] = part.url().into();
        }
        let key = (part.name.clone(), part.version.clone());
        if let Some(sum) = self.checksums.get(&key) {
            component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
        }
        component
    }
}

fn licences(package: &Package) -> Value {
    // Before SPDX expressions, cargo allowed a slash for "or".
    let expression = package.license.as_deref().map(|text| text.replace('/', " OR "));
    expression.map_or_else(|| json!([]), |text| json!([{"expression": text}]))
}

fn by(packages: Vec<Package>, key: impl Fn(&Package) -> String) -> BTreeMap<String, Package> {
    packages.into_iter().map(|package| (key(&package), package)).collect()
}

/// Seconds since 1970 as `2026-01-31T12:00:00Z`.
fn timestamp(time: u64) -> String {
    let (days, second) = (time / 86_400, time % 86_400);
    // Years that begin in March, in eras of 400 years: the day of the leap year is then the last one.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

#[cfg(test)]
mod tests;
