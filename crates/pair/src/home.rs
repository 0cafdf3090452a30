//! Home directories in paths: what `~` and `~user` mean, which no shell is asked.

use crate::failure::Fatal;
use hikyaku_fs::Shown;
use hikyaku_transfer::FailureKind;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A path as a user wrote it: relative to the home directory, where ssh has put us.
pub(crate) fn expanded(path: &[u8]) -> Result<PathBuf, Fatal> {
    let literal = || PathBuf::from(OsString::from_vec(path.to_vec()));
    let home = || std::env::var_os("HOME").map(PathBuf::from);
    let Some(rest) = path.strip_prefix(b"~") else {
        let is_home = path.is_empty();
        return Ok(is_home.then(home).flatten().unwrap_or_else(literal));
    };
    let slash = rest.iter().position(|&byte| byte == b'/');
    let (name, below) = slash.map_or((rest, None), |at| (&rest[..at], Some(&rest[at + 1..])));
    let home = match name {
        b"" => home(),
        name => home_of(name),
    };
    match (home, below) {
        (Some(home), None) => Ok(home),
        // The rest is relative to the home directory, however many slashes it begins with.
        (Some(home), Some(below)) => Ok(home.join(OsStr::from_bytes(trimmed(below)))),
        (None, _) if name.is_empty() || is_there(path) => Ok(literal()),
        (None, _) => {
            let text = format!("{}: no such user", Shown::new(name));
            let remedy = format!("try: ./{} for a file of that name", Shown::new(path));
            Err(Fatal::of(FailureKind::Other, text).with_remedy(remedy))
        }
    }
}

fn trimmed(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"/") {
        path = rest;
    }
    path
}

/// Whether the first part of it is a file's name.
fn is_there(path: &[u8]) -> bool {
    let first = path.split(|&byte| byte == b'/').next().unwrap_or_default();
    fs::symlink_metadata(Path::new(OsStr::from_bytes(first))).is_ok()
}

/// The home directory of the user `name`. `getent` knows all users; on a machine without it, /etc/passwd is read.
fn home_of(name: &[u8]) -> Option<PathBuf> {
    let is_name = !name.starts_with(b"-") && !name.iter().any(|byte| b":\n\0".contains(byte));
    let name = is_name.then_some(name)?;
    let mut getent = Command::new("getent");
    getent.arg("passwd").arg(OsStr::from_bytes(name)).stdin(Stdio::null()).stderr(Stdio::null());
    let entries = match getent.output() {
        Ok(output) => output.stdout,
        Err(_) => fs::read("/etc/passwd").ok()?,
    };
    home_in(&entries, name)
}

/// The home directory of the user `name` in lines as of passwd(5).
fn home_in(entries: &[u8], name: &[u8]) -> Option<PathBuf> {
    let fields =
        |line: &[u8]| line.split(|&byte| byte == b':').map(<[u8]>::to_vec).collect::<Vec<_>>();
    // A number that is no name would be taken for the user's.
    let mut of_user = entries.split(|&byte| byte == b'\n').map(fields);
    let fields = of_user.find(|fields| fields.first().is_some_and(|first| first == name))?;
    let home = fields.into_iter().nth(5).filter(|home| home.starts_with(b"/"))?;
    Some(PathBuf::from(OsString::from_vec(home)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const USERS: &[u8] = b"root:x:0:0:root:/r:/bin/bash\nDOM\\ann:*:7:7:::/bin/sh\n\
        bob:x:1000:1000:Bob:/users/bob:/bin/bash\nodd:x:1:1::relative:/bin/sh\nshort:x\n";

    #[test]
    fn homes_are_those_of_the_directory_of_users() {
        assert_eq!(home_in(USERS, b"bob"), Some("/users/bob".into()));
        for nobody in [&b"0"[..], b"1000", b"bo", b"", b"odd", b"short", b"DOM\\ann"] {
            assert_eq!(home_in(USERS, nobody), None, "{nobody:?}");
        }
    }

    #[test]
    fn a_tilde_is_a_home() {
        let home = |path: &str| expanded(path.as_bytes()).unwrap();
        // Every machine has this user.
        let root = home_of(b"root").unwrap();
        assert!(root.is_absolute());
        assert_eq!(home("~root"), root);
        assert_eq!(home("~root/a/b*"), root.join("a/b*"));
        assert_eq!(home("~root//a"), root.join("a"));
        assert!(home("~root/").as_os_str().as_bytes().ends_with(b"/"));
        let own = PathBuf::from(std::env::var_os("HOME").unwrap());
        assert_eq!((home(""), home("~"), home("~/a")), (own.clone(), own.clone(), own.join("a")));
        for literal in ["a", "/a", "./~root", "a~root", "a/~root"] {
            assert_eq!(home(literal), PathBuf::from(literal));
        }
    }

    #[test]
    fn nobody_has_no_home() {
        for nobody in ["~no-such-user", "~no-such-user/a", "~0", "~-x", "~$(id)", "~a:b"] {
            let error = expanded(nobody.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("no such user"), "{nobody}: {error}");
        }
    }
}
