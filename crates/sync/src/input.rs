//! Files that options name. `-` is standard input, as in rsync.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The bytes of a file, or of standard input.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match path.as_os_str() == "-" {
        true => io::stdin().read_to_end(&mut bytes)?,
        false => File::open(path)?.read_to_end(&mut bytes)?,
    };
    Ok(bytes)
}
