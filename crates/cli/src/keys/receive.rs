//! `hikyaku keys receive`: the end of `hikyaku keys install` at the host of a daemon.

use super::exchange::{Answer, REQUEST_BYTES_MAX, Request, Was};
use anyhow::{Context, Result, bail};
use hikyaku_console::{Folder, causes, print};
use hikyaku_crypto::{Identity, PublicKey};
use hikyaku_serve::{Added, NotAdded, add_key};
use std::env;
use std::io::{BufRead, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

/// Adds the key of the request on standard input, and prints the answer. Also a refusal is an answer: standard error may
/// not reach the user.
pub(super) fn run() -> Result<()> {
    let answer = receive().unwrap_or_else(|error| Answer::Refused { why: causes(&error) });
    print(answer.line()?)
}

fn receive() -> Result<Answer> {
    let mut line = Vec::new();
    let mut input = BufReader::new(stdin().take(REQUEST_BYTES_MAX));
    input.read_until(b'\n', &mut line).context("cannot read standard input")?;
    let request: Request = serde_json::from_slice(&line)
        .context("the request is none that this version of hikyaku knows")?;
    let state = Folder::State.of_user()?;
    let list = request.list.map_or_else(|| state.join("authorized_keys"), PathBuf::from);
    let is_usual = list.parent() == Some(&state);
    if !is_usual && matches!(list.try_exists(), Ok(false)) {
        // The daemon of that list may run as another user, which must be able to read the list.
        bail!("{} does not exist", list.display());
    }
    let was = match add_key(&list, &request.line) {
        Ok(Added::Now) => Was::Absent,
        Ok(Added::Before) => Was::Present,
        Err(NotAdded::Denied { .. }) if !is_usual => return Ok(Answer::Denied),
        Err(error) => return Err(error.into()),
    };
    // The key of the daemon with another list is known only from the file beside that list.
    let key = match is_usual {
        true => Some(Identity::load_or_create(&state.join("server_key"))?.public_key()),
        false => beside(&list),
    };
    Ok(Answer::Done { list: short(&list), was, key: key.map(|key| key.to_string()) })
}

/// The key of a daemon that keeps it beside its list.
fn beside(list: &Path) -> Option<PublicKey> {
    Some(Identity::load(&list.with_file_name("server_key")).ok()?.public_key())
}

/// The path with `~` for the home directory.
fn short(path: &Path) -> String {
    let home = env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match home.and_then(|home| path.strip_prefix(home).ok().map(Path::to_owned)) {
        Some(below) => format!("~/{}", below.display()),
        None => path.display().to_string(),
    }
}
