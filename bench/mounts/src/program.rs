//! Runs of the program under test.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// What a run of the program said.
#[derive(Clone, Debug)]
pub struct Said {
    /// The exit code, if it was not a signal that ended it.
    pub code: Option<i32>,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// Somebody who is not root: the user and the group that own nothing.
const NOBODY: &str = "65534";

/// Where the program is.
pub fn program() -> &'static Path {
    static FOUND: OnceLock<PathBuf> = OnceLock::new();
    FOUND.get_or_init(|| match xtask::program() {
        Ok(program) => program,
        Err(error) => panic!("{error:#}"),
    })
}

/// Runs `hikyaku cp`; what it remembers is kept in `state`.
pub fn cp<S: AsRef<OsStr>>(state: &Path, arguments: &[S]) -> io::Result<Said> {
    let mut command = Command::new(program());
    command.arg("cp").args(arguments);
    run(command, state)
}

/// Runs `hikyaku cp` as an ordinary user, from a copy of the program that this user may read.
pub fn cp_as_nobody<S: AsRef<OsStr>>(state: &Path, arguments: &[S]) -> io::Result<Said> {
    let copy = state.join("program");
    if !copy.exists() {
        fs::create_dir_all(state)?;
        fs::hard_link(program(), &copy).or_else(|_| fs::copy(program(), &copy).map(drop))?;
        rustix::fs::chown(state, Some(nobody().0), Some(nobody().1))?;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(copy).arg("cp").args(arguments);
    run(command, state)
}

/// Who runs [`cp_as_nobody`].
pub fn nobody() -> (rustix::fs::Uid, rustix::fs::Gid) {
    let number = NOBODY.parse().unwrap_or(u32::MAX - 1);
    (rustix::fs::Uid::from_raw(number), rustix::fs::Gid::from_raw(number))
}

/// Runs a command that runs `hikyaku`.
pub fn run(mut command: Command, state: &Path) -> io::Result<Said> {
    command.env("XDG_STATE_HOME", state).env("XDG_CONFIG_HOME", state).stdin(Stdio::null());
    let output = command.output()?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output.status.code();
    Ok(Said { code, stdout: text(&output.stdout), stderr: text(&output.stderr) })
}
