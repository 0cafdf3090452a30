//! Mounts of this process's namespace, from the file of proc_pid_mountinfo(5).

use std::ffi::OsString;
use std::fmt::Display;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// A mount by FUSE.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Mounted {
    /// The device as `MAJOR:MINOR`, which no other mount has.
    pub(crate) device: String,
    /// The user who mounted it.
    pub(crate) user: Option<u32>,
}

/// The mount by FUSE that is visible at `directory`.
pub(crate) fn at(directory: &Path) -> Option<Mounted> {
    let text = fs::read("/proc/self/mountinfo").ok()?;
    // A later line hides an earlier one.
    lines(&text).filter(|(path, _)| path == directory).last().and_then(|(_, mounted)| mounted)
}

/// Whether the device is mounted anywhere in the namespace of a process, such as `self`; also true if that is unknown.
pub(crate) fn is_there(process: impl Display, device: &str) -> bool {
    let Ok(text) = fs::read(format!("/proc/{process}/mountinfo")) else { return true };
    lines(&text).any(|(_, mounted)| mounted.is_some_and(|mounted| mounted.device == device))
}

/// The directory of each mount, and what is known of those by FUSE.
fn lines(text: &[u8]) -> impl Iterator<Item = (PathBuf, Option<Mounted>)> {
    text.split(|&byte| byte == b'\n').filter_map(line)
}

// fuzz: none, the kernel's own words
fn line(line: &[u8]) -> Option<(PathBuf, Option<Mounted>)> {
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let path = PathBuf::from(OsString::from_vec(unescaped(words.get(4)?)));
    let after = words.iter().position(|word| word == b"-")?;
    let text = |at: usize| words.get(at).map(|word| String::from_utf8_lossy(word).into_owned());
    if !text(after + 1)?.starts_with("fuse") {
        return Some((path, None));
    }
    let options = text(after + 3).unwrap_or_default();
    let user = options.split(',').find_map(|option| option.strip_prefix("user_id="));
    let user = user.and_then(|user| user.parse().ok());
    Some((path, Some(Mounted { device: text(2)?, user })))
}

/// Without the octal escapes of spaces and the like.
fn unescaped(word: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&first, after)) = rest.split_first() {
        let code = || std::str::from_utf8(after.get(..3)?).ok();
        let byte = code().filter(|_| first == b'\\').and_then(|c| u8::from_str_radix(c, 8).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// The directory as the kernel writes it, without symbolic links. The directory itself is not looked at: a mount whose
/// process is dead cannot be.
///
/// # Errors
///
/// Its parent is not there, or links lead in a circle.
pub(crate) fn absolute(directory: &Path) -> std::io::Result<PathBuf> {
    let mut place = unlinked_parent(directory)?;
    for _ in 0..LINKS_MAX {
        // Of a mount whose process is dead this is ENOTCONN, and it is no link.
        let Ok(text) = fs::read_link(&place) else { return Ok(place) };
        place = unlinked_parent(&place.parent().unwrap_or(&place).join(text))?;
    }
    Err(rustix::io::Errno::LOOP.into())
}

/// Links behind each other, as many as the kernel follows (path_resolution(7)).
const LINKS_MAX: usize = 40;

/// The path without symbolic links but for its last component.
fn unlinked_parent(directory: &Path) -> std::io::Result<PathBuf> {
    let whole = std::path::absolute(directory)?;
    let is_plain = !matches!(whole.as_os_str().as_bytes(), [.., b'/', b'.', b'.']);
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) if is_plain => Ok(fs::canonicalize(parent)?.join(name)),
        _ => fs::canonicalize(whole),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = b"21 1 0:20 / /proc rw - proc proc rw\n\
        90 1 0:77 / /mnt/a\\040b ro,nosuid - fuse.hikyaku hikyaku://h/x ro,user_id=1000,group_id=5\n\
        91 1 0:78 / /mnt/c ro - fuse x ro\n";

    #[test]
    fn mounts_by_fuse_are_found_by_their_directory() {
        let all: Vec<_> = lines(TEXT).collect();
        assert_eq!(all[0], (PathBuf::from("/proc"), None));
        let mounted = Mounted { device: "0:77".to_owned(), user: Some(1000) };
        assert_eq!(all[1], (PathBuf::from("/mnt/a b"), Some(mounted)));
        assert_eq!(all[2].1.as_ref().unwrap().user, None);
        assert_eq!(all.len(), 3);
    }
}
