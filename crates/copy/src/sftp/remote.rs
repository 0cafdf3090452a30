//! Paths on the server, and the meaning of patterns in them.

use crate::outcome::failed;
use hikyaku_fs::Shown;
use hikyaku_job::{Asked, in_store, is_home, is_users_home};
use hikyaku_store::{ErrorKind, Last, StorePath};
use hikyaku_store_sftp::Sftp;
use hikyaku_transfer::FailureKind;

/// A path as the server takes it: relative ones begin at the home directory.
pub(super) fn resolved(path: &[u8]) -> anyhow::Result<Vec<u8>> {
    if is_home(path) {
        return Ok(b".".to_vec());
    }
    if let Some(rest) = path.strip_prefix(b"~/") {
        return Ok(rest.to_vec());
    }
    if is_users_home(path) || (path.starts_with(b"~") && path.contains(&b'/')) {
        let shown = Shown::new(path);
        let text = format!("{shown}: by SFTP the home directory of another user is not known");
        return Err(failed(FailureKind::Unsupported, text));
    }
    Ok(path.to_vec())
}

/// A path below a directory.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    match dir {
        b"" | b"." => name.to_vec(),
        dir if dir.ends_with(b"/") => [dir, name].concat(),
        dir => [dir, b"/", name].concat(),
    }
}

/// A path without the slashes at its end.
pub(super) fn without_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|&byte| byte != b'/');
    end.map_or(path, |at| &path[..=at])
}

/// The directory of a path, and the last name in it, which is `None` for `/`, `.` and `..`.
// fuzz: none, what the user or this program has put together
pub(super) fn split(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let trimmed = path.iter().rposition(|&byte| byte != b'/').map_or(&b""[..], |at| &path[..=at]);
    let (dir, name) = match trimmed.iter().rposition(|&byte| byte == b'/') {
        Some(0) => (&b"/"[..], &trimmed[1..]),
        Some(at) => (&trimmed[..at], &trimmed[at + 1..]),
        None => (&b"."[..], trimmed),
    };
    (dir, Some(name).filter(|name| !matches!(*name, b"" | b"." | b"..")))
}

/// The paths that a source means: what matches it, sorted, with patterns in any of its names; or itself, if a file has that
/// name, or nothing matches.
pub(super) fn expanded(store: &Sftp, typed: Vec<u8>) -> Result<Vec<Vec<u8>>, ErrorKind> {
    let names = typed.split(|&byte| byte == b'/');
    let literal: usize =
        names.take_while(|name| !Asked::new(name).is_pattern()).map(|name| name.len() + 1).sum();
    let Some((dir, pattern)) = typed.split_at_checked(literal) else { return Ok(vec![typed]) };
    let dir = match store.path_of(if dir.is_empty() { b"." } else { dir }, Last::Followed) {
        Err(ErrorKind::Unreachable) => return Err(ErrorKind::Unreachable),
        // To look at the path itself fails with the reason.
        Err(_) => return Ok(vec![typed]),
        Ok(dir) => dir,
    };
    // The contents of each directory may be meant.
    let end = without_slashes(pattern.strip_suffix(b"/.").unwrap_or(pattern)).len();
    let (pattern, end) = pattern.split_at(end);
    let pattern = StorePath::new(&join(dir.as_bytes(), pattern)).map_err(|_| ErrorKind::BadName)?;
    let found = in_store(store, &pattern).map_err(|error| error.kind)?;
    Ok(found.iter().map(|path| [b"/", path.as_bytes(), end].concat()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_before_its_last_name() {
        // An empty text stands for no name.
        for [path, dir, name] in [
            ["a/b", "a", "b"],
            ["/a", "/", "a"],
            ["a//", ".", "a"],
            ["/", ".", ""],
            ["a/..", "a", ""],
            [".", ".", ""],
        ] {
            let name = (!name.is_empty()).then_some(name.as_bytes());
            assert_eq!(split(path.as_bytes()), (dir.as_bytes(), name), "{path}");
        }
    }

    #[test]
    fn a_home_directory_is_where_relative_paths_begin() {
        assert_eq!(resolved(b"~/a").unwrap(), b"a");
        assert_eq!(resolved(b"").unwrap(), b".");
        assert_eq!(resolved(b"/a").unwrap(), b"/a");
        assert!(resolved(b"~anna").is_err());
        assert!(resolved(b"~anna/x").is_err());
        assert_eq!(join(b".", b"a"), b"a");
        assert_eq!(join(b"/", b"a"), b"/a");
        assert_eq!(join(b"b", b"a"), b"b/a");
    }
}
