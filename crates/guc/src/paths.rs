//! Paths of servers and of this machine, as the user has typed them.

use anyhow::{Context, Result};
use hikyaku_fs::{Name, Token};

/// The directory with its slash, and the name.
// fuzz: none, paths of the command line
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    let slash = path.iter().rposition(|&byte| byte == b'/').map_or(0, |at| at + 1);
    path.split_at(slash)
}

/// A new temporary name beside `path`.
pub(crate) fn partial_name(path: &[u8]) -> Result<Vec<u8>> {
    let (dir, name) = split(path);
    let name = Name::new(name).context("the target has no name")?;
    let partial = Token::random()?.partial(&name)?;
    Ok([dir, partial.as_bytes()].concat())
}
