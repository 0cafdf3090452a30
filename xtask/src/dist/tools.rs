//! What a static program is built with: zig as C compiler and linker, cargo-zigbuild, and Rust's library for musl. What is
//! missing is fetched: the first two into a virtual environment of Python below cargo's target folder.

use super::target::target_folder;
use crate::process::run;
use crate::{on_path, workspace};
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::iter::once;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Packages of PyPI. Equal versions give equal programs.
const PACKAGES: [&str; 2] = ["ziglang==0.17.1", "cargo-zigbuild==0.24.1"];
const BUILDER: &str = "cargo-zigbuild";
/// A slow path takes this long for the tools: 0.1 GB.
const FETCH_TIME_MAX: Duration = Duration::from_secs(1800);

/// Fetches what is missing for programs of a target. Returns the search path with which cargo finds the tools.
///
/// # Errors
///
/// A tool is missing, and cannot be had.
pub(super) fn search_path(triple: &str) -> Result<OsString> {
    library(triple)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    if on_path(BUILDER) {
        return Ok(path);
    }
    let folder = target_folder().join("tools");
    let bin = folder.join("bin");
    if !bin.join(BUILDER).is_file() {
        println!("fetching zig and {BUILDER} into {}", folder.display());
        step(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let quiet = ["install", "--quiet", "--disable-pip-version-check"];
        step(Command::new(bin.join("pip")).args(quiet).args(PACKAGES))?;
    }
    std::env::join_paths(once(bin).chain(std::env::split_paths(&path))).context("PATH")
}

/// Makes sure of Rust's library for a target.
fn library(triple: &str) -> Result<()> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let mut asked = Command::new(rustc);
    asked.args(["--print", "sysroot"]).current_dir(workspace());
    let root = run(&mut asked, FETCH_TIME_MAX)?.success()?;
    if Path::new(root.trim()).join("lib/rustlib").join(triple).join("lib").is_dir() {
        return Ok(());
    }
    ensure!(
        on_path("rustup"),
        "Rust's library for {triple} is missing, and rustup, which fetches it"
    );
    println!("fetching Rust's library for {triple}");
    step(Command::new("rustup").args(["target", "add", triple]))
}

fn step(command: &mut Command) -> Result<()> {
    let shown = format!("{} does not run", command.get_program().to_string_lossy());
    run(command.current_dir(workspace()), FETCH_TIME_MAX)?.success().map(drop).context(shown)
}
