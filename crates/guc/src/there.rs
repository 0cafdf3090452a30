//! What a server has under the name of a target.
//!
//! A file gets its name by a rename, which puts it in the place of whatever has that name. So a device, FIFO or socket of
//! the server must never be taken for a file: the rename would destroy it. A file behind a link is meant, and not the link.

use anyhow::{Error, Result};
use hikyaku_fs::FsError;
use hikyaku_gridftp::{Channel, Facts, FtpError, Kind, Listed};
use std::collections::HashMap;

/// The path of the file that the user means by `path`, for a source of this name: what `cp` would write. `look` asks the
/// server.
///
/// # Errors
/// Something else than a file or a directory has the name.
pub(crate) fn meant(
    path: &[u8],
    source: &[u8],
    mut look: impl FnMut(&[u8]) -> Result<Option<Facts>>,
) -> Result<Vec<u8>> {
    let beneath = match path.ends_with(b"/") {
        true => [path, source].concat(),
        false => match look(path)? {
            None => return Ok(path.to_vec()),
            Some(facts) if is_dir(facts.kind) => [path, b"/", source].concat(),
            Some(facts) => {
                check(path, facts.kind)?;
                return Ok(facts.link.unwrap_or_else(|| path.to_vec()));
            }
        },
    };
    if let Some(facts) = look(&beneath)? {
        check(&beneath, facts.kind)?;
    }
    Ok(beneath)
}

/// What has this path; `None` if nothing has it, or if the server cannot tell it.
pub(crate) fn look(channel: &mut Channel, path: &[u8]) -> Result<Option<Facts>, FtpError> {
    if channel.features().has("MLST") { channel.facts(path) } else { Ok(None) }
}

/// The names of a directory, and what has them.
#[derive(Debug, Default)]
pub(crate) struct Entries(HashMap<Vec<u8>, Kind>);

impl Entries {
    /// Of the answer to [`list`]. A directory that may be written to but not read has none that are known.
    pub(crate) fn of(listed: Result<Vec<Listed>>) -> Result<Self> {
        let is_refusal = |error: &Error| {
            error.chain().any(|link| {
                matches!(link.downcast_ref(), Some(FtpError::Refused { code: 500.., .. }))
            })
        };
        let listed = match listed {
            Err(error) if is_refusal(&error) => Vec::new(),
            listed => listed?,
        };
        let known = listed.into_iter().filter_map(|entry| {
            let name = entry.name.ok()?;
            Some((name.as_bytes().to_vec(), entry.facts.kind))
        });
        Ok(Self(known.collect()))
    }

    /// Refuses to write a file of this name, the last part of `path`, in place of what is no file.
    // fuzz: none, what `ftp_replies` has read
    pub(crate) fn check(&self, name: &[u8], path: &[u8]) -> Result<()> {
        self.0.get(name).map_or(Ok(()), |&kind| check(path, kind))
    }
}

/// The entries of a directory; none if the server cannot tell them.
pub(crate) fn list(channel: &mut Channel, path: &[u8]) -> Result<Vec<Listed>, FtpError> {
    if channel.features().has("MLST") { channel.list(path) } else { Ok(Vec::new()) }
}

// fuzz: none, the path is the user's, and `ftp_replies` has read the kind
fn check(path: &[u8], kind: Kind) -> Result<()> {
    match kind {
        // A rename puts the file in the place of the link.
        Kind::File | Kind::Link => Ok(()),
        Kind::Directory | Kind::Listed => Err(FsError::is_dir(path).into()),
        Kind::Other => Err(FsError::is_special(path).into()),
    }
}

const fn is_dir(kind: Kind) -> bool {
    matches!(kind, Kind::Directory | Kind::Listed)
}
