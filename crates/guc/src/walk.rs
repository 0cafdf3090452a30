//! Walks of a directory of a server: several directories are listed at once, by the store of the server.

use crate::session::Session;
use anyhow::{Error, Result, anyhow};
use hikyaku_fs::Shown;
use hikyaku_store::StorePath;
use hikyaku_store_ftp::{Enter, Ftp, Item, Next, Visited};
use hikyaku_transfer::Links;

/// Directories within each other at most.
const DEPTH_MAX: usize = 256;

/// An event of a walk.
pub(crate) enum Seen<'s> {
    /// All entries of a directory whose names can be used.
    Entries(&'s mut [Item]),
    /// The directory cannot be listed, or has a name that cannot be used.
    Failed(Error),
}

/// Walks the directory at `path` of the server of a session, which `session` returns. `each` gets the path of each directory
/// below that one, and may use the session. Links are followed. Returns the store of the directory, with the sessions that have
/// listed.
///
/// # Errors
/// The directory does not exist, or the error of `each`, which ends the walk.
pub(crate) fn walk<'a, T>(
    of: &mut T,
    session: impl Fn(&mut T) -> &mut Session<'a>,
    path: &[u8],
    mut each: impl FnMut(&mut T, &StorePath, Seen<'_>) -> Result<()>,
) -> Result<Ftp> {
    let (store, facts) = session(of).store(path)?;
    // Of the directory that was not listed last, and its remaining attempts.
    let mut attempts = (StorePath::ROOT, session(of).retries());
    let mut failed = None;
    store.visit((&StorePath::ROOT, &facts), Links::Followed, &mut |dir, visited| {
        session(of).borrow_from(&store);
        let next = match visited {
            Visited::Listed { entries, skipped } => {
                let too_deep = too_deep(dir, entries);
                let bad_name =
                    (skipped > 0).then(|| anyhow!("the server sends a name that cannot be used"));
                let mut done = each(of, dir, Seen::Entries(entries));
                for error in too_deep.into_iter().chain(bad_name) {
                    done = done.and_then(|()| each(of, dir, Seen::Failed(error)));
                }
                done.map(|()| Next::Go)
            }
            Visited::Unlisted(error) => {
                if attempts.0 != *dir {
                    attempts = (dir.clone(), session(of).retries());
                }
                match session(of).after(error, &mut attempts.1) {
                    Ok(()) => Ok(Next::Again),
                    Err(error) => each(of, dir, Seen::Failed(error)).map(|()| Next::Go),
                }
            }
        };
        session(of).return_to(&store);
        next.unwrap_or_else(|error| {
            failed = Some(error);
            Next::Stop
        })
    });
    session(of).borrow_from(&store);
    failed.map_or(Ok(store), Err)
}

/// The error of directories that are too many within each other. They are not entered.
fn too_deep(dir: &StorePath, entries: &mut [Item]) -> Option<Error> {
    if dir.names().count() + 1 < DEPTH_MAX {
        return None;
    }
    let mut error = None;
    for entry in entries.iter_mut().filter(|entry| entry.enter == Enter::Yes) {
        entry.enter = Enter::No;
        let path = Shown::new(entry.path.as_bytes());
        error =
            Some(anyhow!("{path}: the server has more than {DEPTH_MAX} directories in each other"));
    }
    error
}
