//! What both tests of the rigs need.
#![allow(clippy::unwrap_used, reason = "a test that cannot begin has failed")]

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program under test, built as this test is.
pub(crate) fn program() -> PathBuf {
    let rig = Path::new(env!("CARGO_BIN_EXE_faults"));
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "--quiet", "-p", "hikyaku-cli", "--bin", "hikyaku"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    assert!(build.status().unwrap().success(), "hikyaku does not build");
    rig.with_file_name("hikyaku")
}
