//! Which of the names below a source are copied (`--files-from`).

use anyhow::{Context, Result, ensure};
use hikyaku_console::At;
use hikyaku_fs::{PeerPath, Shown, read_list};
use std::path::Path;

/// The names of a file, in which the byte `end` follows each; `-` is standard input.
///
/// # Errors
///
/// The file cannot be read, or those of [`names`].
pub(crate) fn read(path: &Path, end: u8) -> Result<Vec<Vec<u8>>> {
    let shown = Shown::new(path.as_os_str().as_encoded_bytes());
    let bytes = read_list(path).at(shown)?;
    names((&bytes, end), &shown)
}

/// The names of a list, in which the byte `end` follows each. They are paths below a source, as find(1) and rsync(1) write
/// them: with `./` before, or a slash before or behind.
///
/// # Errors
///
/// A name is no path below a source, or there are no names.
// fuzz: none, the user's own list, or that of sync
pub fn names((bytes, end): (&[u8], u8), shown: &dyn std::fmt::Display) -> Result<Vec<Vec<u8>>> {
    let mut files = Vec::new();
    for line in bytes.split(|&byte| byte == end) {
        let line = if end == 0 { line } else { line.strip_suffix(b"\r").unwrap_or(line) };
        if line.is_empty() {
            continue;
        }
        let names = line.split(|&byte| byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
        let path = names.collect::<Vec<_>>().join(&b'/');
        let path = PeerPath::new(&path).with_context(|| {
            format!("{shown}: {} is not a path below a source", Shown::new(line))
        })?;
        files.push(path.as_bytes().to_vec());
    }
    ensure!(!files.is_empty(), "{shown} names no files");
    Ok(files)
}
