//! What the small programs `hscp` and `hsftp` do: each executes the `hikyaku` in its own directory, or else the first one
//! in `PATH`, with its own name as argument 0. `hikyaku` recognizes that name.

#[path = "standard.rs"]
mod standard;

use hikyaku_console::{ExitCode, leave};
use std::ffi::OsString;
use std::io::{ErrorKind, Write, stderr};
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Executes `hikyaku` under this name.
pub(crate) fn execute(name: &str) -> ! {
    // What cannot be replaced stays as it is.
    let _ = standard::replace_unusable();
    let beside = std::env::current_exe().ok().map(|own| own.with_file_name("hikyaku"));
    let beside = beside.filter(|path| path.is_file()).map(OsString::from);
    let program = beside.unwrap_or_else(|| "hikyaku".into());
    let error = Command::new(&program).arg0(name).args(std::env::args_os().skip(1)).exec();
    let text = format!("{name}: cannot run {}: {error}\n", program.display());
    let remedy = format!("try: install hikyaku beside {name}\n");
    // If standard error cannot be written, there is nowhere to report that.
    let _ = stderr().write_all([text, remedy].concat().as_bytes());
    leave(match error.kind() {
        ErrorKind::NotFound => ExitCode::NoCommand,
        _ => ExitCode::CannotExecute,
    })
}
