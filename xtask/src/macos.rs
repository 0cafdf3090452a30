//! `cargo xtask check-macos`: the portable crates are compiled for macOS, as far as types go.
//!
//! Nothing runs, so this needs no Mac. It needs no SDK either, because none of these crates compiles C code. `crypto`
//! (aws-lc, aegis) and `transfer` (BLAKE3) do, so they and what stands above them are not among them.

use anyhow::{Result, ensure};
use std::process::{Command, ExitCode};
use xtask::workspace;

/// A Mac with a processor of Apple.
const TARGET: &str = "aarch64-apple-darwin";
/// Crates that compile there.
const PORTABLE: [&str; 15] = [
    "units",
    "wire",
    "cc",
    "proto",
    "link",
    "spread",
    "forward",
    "read-ahead",
    "tuner",
    "udp",
    "fs",
    "page",
    "pipes",
    "sftp",
    "store",
];

/// Whether the standard library for macOS is installed.
pub(crate) fn is_installed() -> bool {
    let asked =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|output| {
        let folder = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success() && std::path::Path::new(&folder).is_dir()
    })
}

/// The command that checks.
pub(crate) fn check() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["check", "--target", TARGET]);
    cargo.args(PORTABLE.iter().flat_map(|name| ["-p".to_owned(), format!("hikyaku-{name}")]));
    cargo
}

/// Checks.
pub(crate) fn run() -> Result<ExitCode> {
    ensure!(is_installed(), "no standard library for macOS\ntry: rustup target add {TARGET}");
    let status = check().current_dir(workspace()).status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
