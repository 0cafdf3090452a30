//! `hscp`: executes the `hikyaku` in its own directory, or else the first one in `PATH`, with
//! `hscp` as argument 0. `hikyaku` recognizes that name.
#![forbid(unsafe_code)]

#[path = "../standard.rs"]
mod standard;

use std::ffi::OsString;
use std::io::{ErrorKind, Write, stderr};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    // What cannot be replaced stays as it is.
    let _ = standard::replace_unusable();
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("hikyaku"));
    let beside = beside.filter(|path| path.is_file()).map(OsString::from);
    let program = beside.unwrap_or_else(|| "hikyaku".into());
    let error = Command::new(&program).arg0("hscp").args(std::env::args_os().skip(1)).exec();
    let text = format!("hscp: cannot run {}: {error}\n", program.display());
    let remedy = "try: install hikyaku beside hscp\n";
    // If standard error cannot be written, there is nowhere to report that.
    let _ = stderr().write_all([text.as_str(), remedy].concat().as_bytes());
    // The same codes as those of a shell.
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}
