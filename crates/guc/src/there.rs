//! What a server has under the name of a target.
//!
//! A file gets its name by a rename, which puts it in the place of whatever has that name. So a device, FIFO or socket of
//! the server must never be taken for a file: the rename would destroy it. A file behind a link is meant, and not the link.

use anyhow::Result;
use hikyaku_fs::FsError;
use hikyaku_gridftp::{Facts, Kind};

/// Entries of a directory that are looked at before the first of them is copied.
pub(crate) const GROUP: usize = 256;

/// The path of the file that the user means by `path`, for a source of this name: what `cp` would write; and the mode of the
/// file that has it. `look` asks the server.
///
/// # Errors
/// Something else than a file or a directory has the name.
pub(crate) fn meant(
    path: &[u8],
    source: &[u8],
    mut look: impl FnMut(&[u8]) -> Result<Option<Facts>>,
) -> Result<(Vec<u8>, Option<u32>)> {
    let beneath = match path.ends_with(b"/") {
        true => [path, source].concat(),
        false => match look(path)? {
            None => return Ok((path.to_vec(), None)),
            Some(facts) if is_dir(facts.kind) => [path, b"/", source].concat(),
            Some(facts) => {
                check(path, facts.kind)?;
                let mode = mode_of(&facts);
                return Ok((facts.link.unwrap_or_else(|| path.to_vec()), mode));
            }
        },
    };
    let facts = look(&beneath)?;
    if let Some(facts) = &facts {
        check(&beneath, facts.kind)?;
    }
    let mode = facts.as_ref().and_then(mode_of);
    Ok((beneath, mode))
}

/// The mode of a file of a server, which a copy in its place keeps.
// fuzz: none, what `ftp_replies` has read
pub(crate) fn mode_of(facts: &Facts) -> Option<u32> {
    facts.mode.filter(|_| facts.kind == Kind::File)
}

/// Refuses to write a file to this path, in place of what is no file.
// fuzz: none, what `ftp_replies` has read
pub(crate) fn check_file(path: &[u8], before: Option<&Facts>) -> Result<()> {
    before.map_or(Ok(()), |facts| check(path, facts.kind))
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
