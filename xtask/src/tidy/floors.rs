//! Crates stand on floors, and an arrow points down only. No circle can be drawn that way.

use super::Finding;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

#[cfg(test)]
mod tests;

/// A crate's place in the house. Same floor means: neither may know the other.
struct Place {
    name: &'static str,
    floor: u8,
}

const fn place(name: &'static str, floor: u8) -> Place {
    Place { name, floor }
}

/// The ground is 0; the floors of `ARCHITECTURE.md` follow from 1.
const HOUSE: &[Place] = &[
    place("hikyaku-units", 0),
    place("hikyaku-wire", 1),
    place("hikyaku-cc", 1),
    place("hikyaku-proto", 2),
    place("hikyaku-link", 2),
    place("hikyaku-spread", 2),
    place("hikyaku-forward", 2),
    place("hikyaku-read-ahead", 2),
    place("hikyaku-tuner", 2),
    place("hikyaku-udp", 3),
    place("hikyaku-tcp", 3),
    place("hikyaku-fs", 3),
    place("hikyaku-tun", 3),
    place("hikyaku-crypto", 3),
    place("hikyaku-console", 4),
    place("hikyaku-page", 4),
    place("hikyaku-run-log", 4),
    place("hikyaku-transfer", 3),
    place("hikyaku-net", 4),
    place("hikyaku-store", 4),
    place("hikyaku-pipes", 4),
    place("hikyaku-gfarm", 4),
    place("hikyaku-gridftp", 4),
    place("hikyaku-sftp", 4),
    place("hikyaku-sim", 4),
    place("hikyaku-reach", 5),
    place("hikyaku-http", 5),
    place("hikyaku-store-local", 5),
    place("hikyaku-store-gfarm", 5),
    place("hikyaku-store-s3", 5),
    place("hikyaku-store-http", 6),
    place("hikyaku-store-sftp", 6),
    place("hikyaku-store-ftp", 6),
    place("hikyaku-remote", 6),
    place("hikyaku-session", 6),
    place("hikyaku-job", 6),
    place("hikyaku-pair", 7),
    place("hikyaku-stores", 7),
    place("hikyaku-copy", 8),
    place("hikyaku-perf", 8),
    place("hikyaku-lab", 8),
    place("hikyaku-proxy", 8),
    place("hikyaku-mover", 7),
    place("hikyaku-image-source", 7),
    place("hikyaku-serve", 8),
    place("hikyaku-mount", 8),
    place("hikyaku-guc", 8),
    place("hikyaku-doctor", 9),
    place("hikyaku-web-get", 9),
    place("hikyaku-report", 8),
    place("hikyaku-view", 8),
    place("hikyaku-shell", 8),
    place("hikyaku-ls", 8),
    place("hikyaku-sync", 9),
    place("hikyaku-capi", 9),
    place("hikyaku-python", 9),
    place("hikyaku-cli", 10),
];

/// Crates that serve tests: only dev-dependencies may name them.
pub(super) const DEV_ONLY: &[&str] = &["hikyaku-sim"];

/// The package with these rules in it.
const CHECKS: &str = "xtask";

/// Crates without I/O, clock or global state.
pub(super) const PURE: &[&str] =
    &["units", "wire", "cc", "proto", "link", "spread", "forward", "read-ahead", "tuner"];

/// What a pure crate may use from outside: `no_std` libraries that compute and do nothing else.
const PURE_MAY_USE: &[&str] = &["bytes", "fastrand", "libm", "serde", "thiserror", "zeroize"];

/// The floor on which commands begin. Their errors are texts for users, so they may use `anyhow`.
const COMMANDS: u8 = 8;
/// Crates below the commands that make texts for users as well: of the command line, and of connections that fail.
const TEXTS: &[&str] = &["hikyaku-console", "hikyaku-reach", "hikyaku-session", "hikyaku-stores"];
/// Libraries for programs on the floors of commands. Like the crates below them they return errors that a caller can match.
const LIBRARIES: &[&str] = &["hikyaku-capi", "hikyaku-python"];

/// A package of the workspace.
#[derive(Deserialize)]
pub(super) struct Package {
    name: String,
    manifest_path: String,
    dependencies: Vec<Dependency>,
}

/// An arrow of the dependency graph.
#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `dev`, `build`, or absent for a normal one.
    kind: Option<String>,
}

#[cfg(test)]
impl Package {
    fn for_test(name: &str, dependencies: &[(&str, Option<&str>)]) -> Self {
        let dependency = |&(name, kind): &(&str, Option<&str>)| Dependency {
            name: name.to_owned(),
            kind: kind.map(str::to_owned),
        };
        let dependencies = dependencies.iter().map(dependency).collect();
        let manifest_path = format!("crates/{name}/Cargo.toml");
        Self { name: name.to_owned(), manifest_path, dependencies }
    }
}

/// Asks cargo for the workspace's packages; nothing is resolved or downloaded.
pub(super) fn packages(root: &Path) -> Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    let prefix = format!("{}/", root.display());
    let relative = |package: Package| Package {
        manifest_path: package.manifest_path.trim_start_matches(&prefix).to_owned(),
        ..package
    };
    Ok(metadata.packages.into_iter().map(relative).collect())
}

/// The crates that each crate depends on outside its tests, by their folder names.
pub(super) fn uses(packages: &[Package]) -> BTreeMap<&str, Vec<&str>> {
    let used = |package| {
        let Package { dependencies, .. }: &Package = package;
        let used = dependencies.iter().filter(|used| used.kind.as_deref() != Some("dev"));
        used.filter_map(|used| used.name.strip_prefix("hikyaku-")).collect()
    };
    let row = |package| {
        let Package { name, .. }: &Package = package;
        Some((name.strip_prefix("hikyaku-")?, used(package)))
    };
    packages.iter().filter_map(row).collect()
}

/// Checks that each crate depends only on crates of lower floors, and that pure crates depend only on the libraries in
/// [`PURE_MAY_USE`].
pub(super) fn check(packages: &[Package]) -> Vec<Finding> {
    let check = |package: &Package| match package {
        _ if package.name == CHECKS => check_checks(package),
        // Tooling stands beside the house and may look into every window.
        _ if ["bench/", "fuzz/"].iter().any(|beside| package.manifest_path.starts_with(beside)) => {
            Vec::new()
        }
        _ => check_package(package),
    };
    packages.iter().flat_map(check).collect()
}

/// What checks the house is built when the house is not.
fn check_checks(package: &Package) -> Vec<Finding> {
    let dependencies = package.dependencies.iter().map(|dependency| dependency.name.as_str());
    let products = dependencies.filter(|name| name.starts_with("hikyaku-"));
    let error = |name| {
        let text =
            format!("{CHECKS} may not know {name}: it checks a product that does not compile");
        Finding::error(&package.manifest_path, 1, text)
    };
    products.map(error).collect()
}

fn check_package(package: &Package) -> Vec<Finding> {
    let error = |text: String| Finding::error(&package.manifest_path, 1, text);
    let Some(floor) = floor_of(&package.name) else {
        return vec![error(format!("{} has no floor in xtask's table", package.name))];
    };
    let mut findings = Vec::new();
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        if floor_of(name).is_some_and(|below| below >= floor) {
            findings
                .push(error(format!("{} may not know {name}: not a lower floor", package.name)));
        }
        let is_dev = dependency.kind.as_deref() == Some("dev");
        if DEV_ONLY.contains(&name) && !is_dev {
            findings.push(error(format!("{name} is for tests: make it a dev-dependency")));
        }
        if is_pure(&package.name) && !is_dev && !may_enter_pure(name) {
            findings.push(error(format!("{} is pure and may not use {name}", package.name)));
        }
        let faces_users = TEXTS.contains(&package.name.as_str())
            || (floor >= COMMANDS && !LIBRARIES.contains(&package.name.as_str()));
        if name == "anyhow" && !is_dev && !faces_users {
            let text = format!("{} faces programs: its errors are enums, no anyhow", package.name);
            findings.push(error(text));
        }
    }
    findings
}

fn floor_of(name: &str) -> Option<u8> {
    HOUSE.iter().find(|place| place.name == name).map(|place| place.floor)
}

fn is_pure(package: &str) -> bool {
    package.strip_prefix("hikyaku-").is_some_and(|name| PURE.contains(&name))
}

fn may_enter_pure(name: &str) -> bool {
    is_pure(name) || PURE_MAY_USE.contains(&name)
}
