//! Checks that a command can be executed before a lab is created for it: `ip netns exec` exits with
//! the same code for every failure.

use crate::trouble::{CannotRun, Why};
use rustix::fs::{Access, access};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Search path if `PATH` is not set, as in the C library.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// Searches for `program` as the system would.
pub(super) fn check(program: &OsStr) -> Result<(), CannotRun> {
    let path = std::env::var_os("PATH").unwrap_or_else(|| DEFAULT_PATH.into());
    check_in(&path, program)
}

fn check_in(path: &OsStr, program: &OsStr) -> Result<(), CannotRun> {
    let candidates: Vec<PathBuf> = match program.as_bytes() {
        [] => Vec::new(),
        name if name.contains(&b'/') => vec![program.into()],
        // An empty entry of `PATH` means the current directory.
        _ => std::env::split_paths(path).map(|folder| folder.join(program)).collect(),
    };
    let fail = |why| Err(CannotRun { program: program.display().to_string(), why });
    match candidates.iter().map(|path| check_executable(path)).collect::<Vec<_>>() {
        found if found.contains(&Ok(())) => Ok(()),
        found if found.contains(&Err(Why::NotExecutable)) => fail(Why::NotExecutable),
        _ => fail(Why::NotFound),
    }
}

fn check_executable(path: &Path) -> Result<(), Why> {
    if !path.exists() {
        return Err(Why::NotFound);
    }
    match access(path, Access::EXEC_OK) {
        Ok(()) if path.is_file() => Ok(()),
        _ => Err(Why::NotExecutable),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hikyaku_console::ExitCode;

    #[test]
    fn commands_are_searched_as_in_a_shell() {
        let code = |program: &str| {
            let path = OsStr::new("/nowhere:/etc:/bin");
            check_in(path, OsStr::new(program)).map_err(|error| error.exit_code())
        };
        assert_eq!(code("sh"), Ok(()));
        assert_eq!(code("/bin/sh"), Ok(()));
        assert_eq!(code("no-such-command"), Err(ExitCode::NoCommand));
        assert_eq!(code("/no/such/command"), Err(ExitCode::NoCommand));
        assert_eq!(code(""), Err(ExitCode::NoCommand));
        assert_eq!(code("/etc"), Err(ExitCode::CannotExecute));
        assert_eq!(code("/etc/passwd"), Err(ExitCode::CannotExecute));
        assert_eq!(
            code("group"),
            Err(ExitCode::CannotExecute),
            "there is a file of that name, in /etc"
        );
    }
}
