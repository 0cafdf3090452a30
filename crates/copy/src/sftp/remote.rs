//! Paths on the server, and what patterns mean there.

use super::Run;
use super::fault::{Trouble, there};
use crate::outcome::failed;
use anyhow::Result;
use hikyaku_fs::{Name, Shown};
use hikyaku_job::{Asked, End, is_home, is_users_home};
use hikyaku_sftp::{Entry, Request};
use hikyaku_transfer::FailureKind;

/// Entries of one directory that are taken.
const ENTRIES_MAX: usize = 1 << 20;

/// A path as the server takes it: relative ones begin at the home directory.
pub(super) fn resolved(path: &[u8]) -> Result<Vec<u8>> {
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
pub(super) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
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

/// What a source means: what matches it, sorted, with patterns in any of its names; or itself, if there is something of
/// that name, or nothing matches.
pub(super) fn expanded(run: &Run<'_>, path: &[u8]) -> Result<Vec<Vec<u8>>, Trouble> {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').collect();
    let Some(last) = parts.iter().rposition(|name| Asked::new(name).is_pattern()) else {
        return Ok(vec![path.to_vec()]);
    };
    let client = &run.server.client;
    match client.attributes(&Request::LStat(path)) {
        Err(error) if error.is_absent() => {}
        Err(error) => return Err(there(path)(error)),
        Ok(_) => return Ok(vec![path.to_vec()]),
    }
    // Each ends with a slash, unless it is empty.
    let mut found = vec![Vec::new()];
    for (number, name) in parts[..=last].iter().enumerate() {
        let asked = Asked::new(name);
        if !asked.is_pattern() {
            found.iter_mut().for_each(|dir| dir.extend([name, &b"/"[..]].concat()));
            continue;
        }
        let mut matching = Vec::new();
        for dir in found {
            let listed = match entries(run, if dir.is_empty() { b"." } else { &dir }) {
                Ok(listed) => listed,
                // A directory that cannot be read, or is none, matches nothing, as in a shell.
                Err(Trouble::File(..)) => continue,
                Err(end) => return Err(end),
            };
            let fits = listed.iter().filter(|entry| asked.fits(&entry.name));
            let slash = if number < last { &b"/"[..] } else { b"" };
            matching.extend(fits.map(|entry| [&dir[..], &entry.name, slash].concat()));
        }
        if matching.len() > ENTRIES_MAX {
            let text = "the pattern matches more names than are taken by SFTP";
            return Err(Trouble::of(End::There, path, FailureKind::TooLarge, text));
        }
        found = matching;
    }
    let rest: Vec<u8> =
        parts[last + 1..].iter().flat_map(|name| [&b"/"[..], name].concat()).collect();
    if !rest.is_empty() {
        found.iter_mut().for_each(|path| path.extend(&rest));
        found.retain(|path| client.attributes(&Request::LStat(path)).is_ok());
    }
    found.sort();
    Ok(if found.is_empty() { vec![path.to_vec()] } else { found })
}

/// The entries of a directory, in the order of their names. A name that cannot be one of a file is left out.
pub(super) fn entries(run: &Run<'_>, dir: &[u8]) -> Result<Vec<Entry>, Trouble> {
    let client = &run.server.client;
    let failed = there(dir);
    let handle = client.open(&Request::OpenDir(dir)).map_err(&failed)?;
    let mut all: Vec<Entry> = Vec::new();
    let listed = loop {
        match client.entries(&handle) {
            Ok(Some(entries)) => all.extend(entries),
            Ok(None) => break Ok(()),
            Err(error) => break Err(failed(error)),
        }
        if all.len() > ENTRIES_MAX {
            let text = "the directory has more entries than are taken by SFTP";
            break Err(Trouble::of(End::There, dir, FailureKind::TooLarge, text));
        }
        run.go_on()?;
    };
    let closed = client.close(&handle);
    listed?;
    closed.map_err(&failed)?;
    all.retain(|entry| Name::new(&entry.name).is_ok());
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
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
