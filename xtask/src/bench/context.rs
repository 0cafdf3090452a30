//! What a bench gets to work with.

use super::BenchArgs;
use super::peers::Peers;
use super::record::{Cell, Row};
use super::{host, store};
use crate::process;
use anyhow::{Context, Result, ensure};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The surroundings of a measurement.
pub(super) struct Ctx {
    root: PathBuf,
    out: PathBuf,
    runs: u32,
    round: u32,
    is_quick: bool,
    hikyaku: OnceCell<PathBuf>,
    rawloop: OnceCell<PathBuf>,
    exact: OnceCell<PathBuf>,
    flood: OnceCell<PathBuf>,
    peers: Peers,
}

impl Ctx {
    pub(super) fn new(root: &Path, args: &BenchArgs) -> Self {
        let out = if args.quick { args.out.join("quick") } else { args.out.clone() };
        Self {
            root: root.to_path_buf(),
            out,
            runs: args.runs,
            round: 1,
            is_quick: args.quick,
            hikyaku: OnceCell::new(),
            rawloop: OnceCell::new(),
            exact: OnceCell::new(),
            flood: OnceCell::new(),
            peers: Peers::default(),
        }
    }

    #[cfg(test)]
    pub(super) fn for_tests(runs: u32, out: &Path) -> Self {
        let args = BenchArgs { runs, out: out.to_path_buf(), ..BenchArgs::default() };
        Self::new(&crate::root::workspace(), &args)
    }

    /// How often each cell is measured.
    pub(super) fn runs(&self) -> u32 {
        self.runs
    }

    /// Which measurement of the cell this is, from 1: a seed that is the same in every session.
    pub(super) fn round(&self) -> u32 {
        self.round
    }

    pub(super) fn set_round(&mut self, round: u32) {
        self.round = round;
    }

    /// Where results are kept.
    pub(super) fn out(&self) -> &Path {
        &self.out
    }

    /// The row of this round that another bench has kept for a cell, if it was measured with
    /// the programs that are checked out.
    pub(super) fn kept(&self, bench: &str, cell: &Cell) -> Option<Row> {
        let kept = store::read_cell(&store::cell_path(&self.out, bench, cell.id()))?;
        let is_current = self.is_same_product(&kept.commit, &host::commit(&self.root));
        let row = kept.runs.into_iter().nth(self.round as usize - 1);
        row.filter(|_| is_current)
    }

    /// Whether the same programs are measured at two commits: a page that changed between them
    /// changes no figure.
    pub(super) fn is_same_product(&self, one: &str, other: &str) -> bool {
        one == other || host::is_same_product(&self.root, one, other)
    }

    /// How many seconds to take where `full` are due: a fifth, but not under five, for a try.
    pub(super) fn seconds(&self, full: f64) -> f64 {
        if self.is_quick { full.min((full / 5.0).max(5.0)) } else { full }
    }

    /// Whether this is only a try.
    pub(super) fn is_quick(&self) -> bool {
        self.is_quick
    }

    /// How often to measure until a run is valid.
    pub(super) fn attempts(&self) -> u32 {
        if self.is_quick { 1 } else { 3 }
    }

    /// The programs of other transports, built when first asked for.
    pub(super) fn peer(&self, name: &str) -> Result<PathBuf> {
        self.peers.program(&self.root, name)
    }

    /// The raw loop, built when first asked for.
    pub(super) fn rawloop(&self) -> Result<&Path> {
        self.built(&self.rawloop, "hikyaku-bench-raw", "rawloop")
    }

    /// The transfer of known bytes, built when first asked for.
    pub(super) fn exact(&self) -> Result<&Path> {
        self.built(&self.exact, "hikyaku-bench-exact", "exact")
    }

    /// The flood of first packets, built when first asked for.
    pub(super) fn flood(&self) -> Result<&Path> {
        self.built(&self.flood, "hikyaku-bench-flood", "flood")
    }

    /// The release binary `hikyaku`, built when first asked for.
    pub(super) fn hikyaku(&self) -> Result<&Path> {
        self.built(&self.hikyaku, "hikyaku-cli", "hikyaku")
    }

    fn built<'a>(
        &self,
        kept: &'a OnceCell<PathBuf>,
        package: &str,
        binary: &str,
    ) -> Result<&'a Path> {
        if let Some(path) = kept.get() {
            return Ok(path);
        }
        let path = build_release(&self.root, package, binary)?;
        Ok(kept.get_or_init(|| path))
    }

    /// Runs a program without a shell and returns its standard output; an error if it fails or
    /// does not end in time.
    pub(super) fn output(&self, command: &mut Command, limit: Duration) -> Result<String> {
        let name = command.get_program().to_string_lossy().into_owned();
        process::run(command, limit)?.success().with_context(|| format!("{name} failed"))
    }
}

fn build_release(root: &Path, package: &str, binary: &str) -> Result<PathBuf> {
    println!("building {binary}");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["build", "--release", "--quiet", "--package", package])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot run cargo")?;
    ensure!(output.status.success(), "{binary} does not build");
    executable(&String::from_utf8_lossy(&output.stdout), binary)
        .with_context(|| format!("cargo built no {binary}"))
}

/// The path of a binary in cargo's messages, one JSON object a line.
fn executable(messages: &str, binary: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = message["executable"].as_str()?;
        (message["target"]["name"] == binary).then(|| path.into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_binary_is_found_in_cargos_messages() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"a"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"hikyaku"},"executable":"t/release/hikyaku"}
{"reason":"build-finished","success":true}"#;
        assert_eq!(executable(messages, "hikyaku"), Some("t/release/hikyaku".into()));
        assert_eq!(executable(messages, "other"), None);
    }
}
