//! Lists of the files that are copied (`--files-from`).

use anyhow::{Context, Result, ensure};
use hikyaku_console::At;
use hikyaku_fs::{PeerPath, Shown};
use std::io::Read;
use std::path::Path;

/// The names in a list of files, each a path below a source, as 'find' and 'rsync' write them: with `./` before
/// or a slash before or behind.
pub(super) fn read(path: &Path, end: u8) -> Result<Vec<Vec<u8>>> {
    let shown = Shown::new(path.as_os_str().as_encoded_bytes());
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().read_to_end(&mut bytes),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)),
    };
    read.at(shown)?;
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
