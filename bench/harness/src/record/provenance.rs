//! Where a number comes from: machine, commit, date and command.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// What a reader needs to judge a number or to get it again.
#[derive(Serialize)]
pub(crate) struct Provenance {
    /// UTC, as in RFC 3339.
    pub(crate) date: String,
    /// The commit, with `+changes` if the tree had changes on top.
    pub(crate) commit: String,
    /// How it was asked for.
    pub(crate) command: String,
    /// What it ran on.
    pub(crate) machine: Machine,
}

/// The facts of a computer that bear on speed.
#[derive(Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory: String,
    pub(crate) kernel: String,
}

impl Provenance {
    pub(crate) fn collect(root: &Path) -> Result<Self> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        Ok(Self {
            date: said("date", &["-u", "+%Y-%m-%dT%H:%M:%SZ"], root)?,
            commit: commit(root),
            command: format!("cargo xtask {}", args.join(" ")),
            machine: Machine::this(),
        })
    }
}

impl Machine {
    fn this() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name"),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory: gibibytes(&field(&read("/proc/meminfo"), "MemTotal")),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
        }
    }
}

/// The short commit id, or `unknown` outside a repository.
pub(crate) fn commit(root: &Path) -> String {
    let Ok(id) = said("git", &["rev-parse", "--short=10", "HEAD"], root) else {
        return "unknown".to_owned();
    };
    // The published tables are what a bench writes itself.
    let other_files = format!(":!{}", super::publish::DOCUMENT);
    let tree = ["status", "--porcelain", "--untracked-files=no", "--", ".", &other_files];
    let changes = said("git", &tree, root);
    if changes.is_ok_and(|changes| changes.is_empty()) { id } else { format!("{id}+changes") }
}

/// The name of a program that was built elsewhere, in place of a commit: the first digits of its hash.
pub(crate) fn of_program(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(format!("program {}", &blake3::hash(&bytes).to_hex()[..10]))
}

/// Whether nothing that is built into the product differs between two commits. Changes that are in
/// no commit, or a commit that is not there, make it another.
pub(crate) fn is_same_product(root: &Path, one: &str, other: &str) -> bool {
    let is_commit = |id: &str| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let product = ["--", "crates", "Cargo.toml", "Cargo.lock"];
    is_commit(one)
        && is_commit(other)
        && said("git", &[&["diff", "--quiet", one, other], &product[..]].concat(), root).is_ok()
}

fn said(program: &str, args: &[&str], root: &Path) -> Result<String> {
    let mut command = Command::new(program);
    let done = xtask::run(command.args(args).current_dir(root), Duration::from_secs(20))?;
    Ok(done.success()?.trim().to_owned())
}

/// The value of the first `name : value` line.
fn field(text: &str, name: &str) -> String {
    let line = text.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_once(':')).map_or("unknown", |(_, value)| value);
    value.trim().to_owned()
}

/// `16318412 kB` as `15.6 GiB`; other text as it is.
fn gibibytes(text: &str) -> String {
    let kilobytes: Option<f64> = text.strip_suffix(" kB").and_then(|number| number.parse().ok());
    kilobytes.map_or_else(|| text.to_owned(), |count| format!("{:.1} GiB", count / 1_048_576.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_differ_by_what_is_built() {
        let root = std::env::temp_dir().join(format!("bench-product-{}", std::process::id()));
        fs::create_dir_all(root.join("crates")).unwrap();
        let keep = |file: &str| {
            fs::write(root.join(file), file).unwrap();
            let who = ["-c", "user.name=x", "-c", "user.email=x@localhost"];
            said("git", &["add", "-A"], &root).unwrap();
            said("git", &[&who[..], &["commit", "-q", "-m", file]].concat(), &root).unwrap();
            commit(&root)
        };
        said("git", &["init", "-q"], &root).unwrap();
        let product = ["Cargo.toml", "Cargo.lock", "crates/a"].map(keep)[2].clone();
        let page = keep("page");
        let other = keep("crates/b");
        assert!(is_same_product(&root, &product, &page));
        assert!(!is_same_product(&root, &product, &other));
        assert!(!is_same_product(&root, &product, &format!("{page}+changes")));
        assert!(!is_same_product(&root, "--help", &page));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn memory_is_readable() {
        assert_eq!(gibibytes("16318412 kB"), "15.6 GiB");
        assert_eq!(gibibytes("unknown"), "unknown");
    }

    #[test]
    fn fields_are_read() {
        let text = "processor : 0\nmodel name\t: A CPU @ 2 GHz\nmodel name\t: B\n";
        assert_eq!(field(text, "model name"), "A CPU @ 2 GHz");
        assert_eq!(field(text, "nothing"), "unknown");
    }
}
